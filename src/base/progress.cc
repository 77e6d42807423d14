#include "base/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

namespace ingot::base {
namespace {

std::string format_rate(double per_second, Progress::Unit unit) {
  switch (unit) {
    case Progress::Unit::kBytes:
      return format_bytes(static_cast<uint64_t>(std::min(per_second, 0x1p63))) + "/s";
    case Progress::Unit::kTokens:
      return fmt::format("{:.1f} tokens/s", per_second);
    case Progress::Unit::kTensors:
      return fmt::format("{:.0f} tensors/s", per_second);
    case Progress::Unit::kRequests:
      return fmt::format("{:.{}f} requests/s", per_second, per_second < 10 ? 1 : 0);
  }
  return "";
}

std::string format_time(double total_seconds) {
  const auto whole = static_cast<int64_t>(total_seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // Not 1000: what would be shown as 1000 kB is shown as 1.00 MB.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

Progress::Progress(std::string_view label, uint64_t total, Unit unit, const Clock& clock,
                   uint64_t already_done)
    : label_(label),
      total_(total),
      unit_(unit),
      clock_(clock),
      already_done_(already_done),
      start_(clock.now()),
      last_shown_(start_),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::update(uint64_t done, std::string_view note) {
  if (!terminal_) return;
  using namespace std::chrono_literals;
  const Instant now = clock_.now();
  if (now - start_ < 2s || now - last_shown_ < 200ms) return;
  last_shown_ = now;
  shown_ = true;
  const State state{
      .done = done, .total = total_, .already_done = already_done_, .elapsed = now - start_};
  std::fprintf(stderr, "\r\033[K%s", line(label_, state, unit_, note).c_str());
  std::fflush(stderr);
}

std::string Progress::line(std::string_view label, const State& state, Unit unit,
                           std::string_view note) {
  constexpr int kWidth = 24;
  const double share =
      state.total == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
  const uint64_t new_done = state.done - std::min(state.done, state.already_done);
  const double rate = static_cast<double>(new_done) / std::max(1e-9, seconds(state.elapsed));
  const int filled = static_cast<int>(share * kWidth);
  std::string bar(static_cast<size_t>(filled), '#');
  bar.resize(kWidth, '.');
  const uint64_t num_left = state.total - std::min(state.done, state.total);
  const std::string left = new_done == 0 ? "?" : format_time(static_cast<double>(num_left) / rate);
  return fmt::format("{} [{}] {:3.0f}%  {}{}{}  {} left", label, bar, share * 100,
                     format_rate(rate, unit), note.empty() ? "" : ", ", note, left);
}

}  // namespace ingot::base
