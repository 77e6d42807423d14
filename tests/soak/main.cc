// ingot_soak: the engine under random load, with a watch beside its model. Exit 0: nothing was
// found wrong; 1: something was; 2: usage.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/machine.h"
#include "soak/soak.h"

namespace {

// Beyond this an hour's growth is no allocator's.
constexpr int64_t kGrowthBytesMax = 8'000'000;

// A sanitizer's own memory grows with what it remembers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJudgesMemory = false;
#else
constexpr bool kJudgesMemory = true;
#endif

// "auto" or a depth; 0 is off.
bool parse_speculation(std::string_view text, ingot::soak::SoakOptions& options) {
  using ingot::scheduler::SpeculationMode;
  if (text == "auto") {
    options.speculation = SpeculationMode::kAuto;
    options.max_draft_tokens = 4;
    return true;
  }
  int32_t depth = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (failure != std::errc() || end != text.data() + text.size() || depth < 0 || depth > 8) {
    return false;
  }
  options.speculation = depth == 0 ? SpeculationMode::kOff : SpeculationMode::kFixed;
  options.max_draft_tokens = depth;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The engine on the bundled model under random load, checked all the time.");
  ingot::soak::SoakOptions options = {.model = INGOT_SOURCE_DIR "/models/ingot-3m",
                                      .threads = ingot::base::usable_threads(),
                                      .kv_tokens = 1536};
  double minutes = 1;
  uint64_t num_requests = 0;
  std::string speculation = "auto";
  app.add_option("--minutes", minutes, "How long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--requests", num_requests, "Ends it after as many, if not 0")
      ->capture_default_str();
  app.add_option("--plans", options.num_plans, "Different requests among them")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of all that is drawn")->capture_default_str();
  app.add_option("--threads", options.threads, "Of the model")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--speculative-tokens", speculation, "Drafts of a step: 0 to 8, or auto")
      ->capture_default_str();
  app.add_option("--kv-tokens", options.kv_tokens, "Positions of the cache; few make preemptions")
      ->check(CLI::Range(256, 1 << 24))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : 2;
  }
  if (!parse_speculation(speculation, options)) {
    fmt::print(stderr, "--speculative-tokens is '{}'; give 0 to 8, or auto\n", speculation);
    return 2;
  }
  options.length = std::chrono::duration_cast<ingot::base::Duration>(
      std::chrono::duration<double, std::ratio<60>>(minutes));
  if (const char* targets = std::getenv("INGOT_TARGETS")) options.targets = targets;
  if (num_requests > 0) options.num_offers_max = num_requests;
  if (kJudgesMemory) options.growth_bytes_max = kGrowthBytesMax;
  const ingot::base::SystemClock clock;
  ingot::soak::Soak soak(options, clock);
  if (const ingot::base::Status status = soak.run(); !status) {
    fmt::print("FAILED: {}\n", status.error().message);
    return 1;
  }
  fmt::print("passed\n");
  return 0;
}
