#include "simulation/journal.h"

#include <iterator>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"

namespace ingot::simulation {
namespace {

// A hash of a row of numbers, in which length and order count.
class Fingerprint {
 public:
  explicit Fingerprint(uint64_t state = 0) : state_(state) {}
  void add(uint64_t word) { state_ = base::splitmix64(state_ ^ word); }
  void add(std::span<const int32_t> numbers) {
    add(numbers.size());
    for (const int32_t number : numbers) add(static_cast<uint64_t>(number));
  }
  void add(std::string_view text) { add(base::fnv1a64(text)); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_;
};

double in_seconds(base::Instant instant) { return base::seconds(instant.time_since_epoch()); }

std::string describe(const scheduler::Batch::Sequence& entry) {
  std::string text =
      fmt::format("  request {} slot {}: {}..{}", entry.request, entry.slot, entry.first_position,
                  entry.first_position + static_cast<int32_t>(entry.tokens.size()) - 1);
  const auto out = std::back_inserter(text);
  if (entry.num_read_only_tokens > 0)
    fmt::format_to(out, ", {} read-only", entry.num_read_only_tokens);
  if (entry.num_draft_tokens > 0) fmt::format_to(out, " + {} drafts", entry.num_draft_tokens);
  if (entry.draws) text += ", draws";
  if (!entry.new_pages.empty()) fmt::format_to(out, ", pages {}", entry.new_pages);
  return text;
}

}  // namespace

uint64_t Journal::fingerprint(const scheduler::Batch& batch) {
  Fingerprint print;
  print.add(batch.released_slots);
  for (const scheduler::Batch::Sequence& entry : batch.sequences) {
    print.add(entry.request);
    print.add(static_cast<uint64_t>(entry.slot));
    print.add(static_cast<uint64_t>(entry.first_position));
    print.add(entry.tokens);
    print.add(static_cast<uint64_t>(entry.num_draft_tokens));
    print.add(entry.new_pages);
    print.add(entry.logit_rows);
    print.add(static_cast<uint64_t>(entry.num_read_only_tokens));
    print.add(uint64_t{entry.draws});
  }
  return print.value();
}

void Journal::mix(uint64_t word) { fingerprint_ = base::splitmix64(fingerprint_ ^ word); }

void Journal::enter(const scheduler::Batch& batch, base::Instant now) {
  mix(fingerprint(batch));
  if (!reader_) return;
  std::string line =
      fmt::format("{:.6f} s: a batch of {}", in_seconds(now), batch.sequences.size());
  if (!batch.released_slots.empty())
    line += fmt::format(", releases slots {}", batch.released_slots);
  reader_(line);
  for (const scheduler::Batch::Sequence& entry : batch.sequences) reader_(describe(entry));
}

void Journal::enter(const scheduler::RequestEvent& event, base::Instant now) {
  Fingerprint print(fingerprint_);
  print.add(event.request);
  print.add(event.tokens);
  if (event.report) {
    const scheduler::RequestReport& report = *event.report;
    const scheduler::Usage& usage = report.usage;
    print.add(name(report.reason));
    print.add(report.error);
    const int32_t counts[] = {usage.num_cached_tokens,   usage.num_prefill_tokens,
                              usage.num_output_tokens,   usage.num_draft_tokens,
                              usage.num_accepted_tokens, usage.num_recomputed_tokens,
                              usage.num_preemptions};
    print.add(counts);
  }
  fingerprint_ = print.value();
  if (!reader_) return;
  std::string line =
      fmt::format("{:.6f} s: request {} tells {}", in_seconds(now), event.request, event.tokens);
  if (event.report) {
    const scheduler::Usage& usage = event.report->usage;
    line += fmt::format(
        ", ends as {}: {} cached, {} prefilled, {} output, {} recomputed, {} preemptions",
        name(event.report->reason), usage.num_cached_tokens, usage.num_prefill_tokens,
        usage.num_output_tokens, usage.num_recomputed_tokens, usage.num_preemptions);
  }
  reader_(line);
}

void Journal::enter(std::string_view call, scheduler::RequestId request, base::Instant now) {
  Fingerprint print(fingerprint_);
  print.add(call);
  print.add(request);
  fingerprint_ = print.value();
  if (reader_) reader_(fmt::format("{:.6f} s: {} {}", in_seconds(now), call, request));
}

}  // namespace ingot::simulation
