#include "engine/step_drawer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "engine/caught_exception.h"

namespace ingot::engine {
namespace {

bool allows(std::span<const uint32_t> words, int32_t id) {
  const auto index = static_cast<size_t>(id);
  return ((words[index / TokenMask::kWordBits] >> (index % TokenMask::kWordBits)) & 1) != 0;
}

// Another token in the place of the drawn one.
void replace(DrawnToken& drawn, int32_t id, std::span<const float> logits,
             const SamplingParams& params, DrawScratch& scratch) {
  drawn.id = id;
  if (!params.num_top_logprobs) return;
  const Logprobs logprobs = logprobs_of(logits, id, *params.num_top_logprobs, scratch);
  drawn.logprob = logprobs.logprob;
  drawn.top_logprobs = logprobs.top;
}

}  // namespace

StepDrawer::StepDrawer(int64_t vocab_size, TokenMask drawable, base::ThreadTeam& team,
                       std::vector<double> simulated_acceptance)
    : vocab_size_(vocab_size),
      drawable_(std::move(drawable)),
      team_(team),
      simulated_acceptance_(std::move(simulated_acceptance)) {
  for (const double probability : simulated_acceptance_) {
    CHECK(0 <= probability && probability <= 1);
  }
  scratch_.reserve(static_cast<size_t>(team.size()));
  for (int member = 0; member < team.size(); ++member) {
    scratch_.push_back({.draw = DrawScratch(vocab_size), .mask = TokenMask(vocab_size)});
  }
}

void StepDrawer::add(scheduler::RequestId id, std::span<const int32_t> prompt,
                     DrawingOptions options) {
  Drawing drawing;
  if (uses_history(options.sampling)) drawing.history = TokenHistory(prompt);
  if (options.wants_prompt_logprobs) drawing.prompt.assign(prompt.begin(), prompt.end());
  if (options.min_tokens > 0) {
    drawing.mask = drawable_;
    for (const int32_t stop : options.stop_token_ids) drawing.mask->forbid(stop);
  }
  CHECK(!options.grammar || (options.grammar->allowed && options.grammar->tell));
  drawing.options = std::move(options);
  const bool is_new = drawings_.emplace(id, std::move(drawing)).second;
  CHECK(is_new, "a request is added twice");
}

void StepDrawer::remove(scheduler::RequestId id) { drawings_.erase(id); }

std::span<const float> StepDrawer::logit_row(int64_t row) const {
  return logits_.subspan(static_cast<size_t>(row * vocab_size_), static_cast<size_t>(vocab_size_));
}

void StepDrawer::draw(const scheduler::Batch& batch, const ComputedStep& step,
                      std::span<scheduler::StepResult::Sequence> results,
                      std::span<StepLogprobs> logprobs) {
  CHECK(step.sequences.size() == batch.sequences.size() && results.size() == logprobs.size() &&
        results.size() == batch.sequences.size());
  logits_ = step.logits;
  parts_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = drawings_.find(batch.sequences[i].request);
    CHECK(found != drawings_.end(), "a request was never added, or removed before its report");
    parts_.push_back({.sequence = batch.sequences[i],
                      .computed = step.sequences[i],
                      .drawing = found->second,
                      .result = results[i],
                      .logprobs = logprobs[i]});
  }
  if (parts_.size() == 1 || std::ssize(logits_) < kSharedLogitsMin) {
    for (const Part& part : parts_) draw_part(part, scratch_.front());
    return;
  }
  // One at a time to whoever is free, since one sequence may take many times as long as another.
  std::atomic<size_t> next{0};
  team_.run([&](int member) {
    Scratch& scratch = scratch_[static_cast<size_t>(member)];
    for (size_t i = next.fetch_add(1); i < parts_.size(); i = next.fetch_add(1)) {
      draw_part(parts_[i], scratch);
    }
  });
}

// A member of the team must not throw.
void StepDrawer::draw_part(const Part& part, Scratch& scratch) noexcept {
  std::string error;
  try {
    if (const base::Status status = draw_tokens(part, scratch); !status) {
      error = status.error().message;
    }
  } catch (...) {
    error = caught_message();
  }
  if (error.empty()) return;
  part.result.tokens.clear();
  part.result.error = std::move(error);
  part.logprobs.drawn.clear();
  part.logprobs.prompt.clear();
}

base::Status StepDrawer::draw_tokens(const Part& part, Scratch& scratch) {
  const ComputedStep::Sequence& computed = part.computed;
  if (!computed.error.empty()) return std::unexpected(base::Error{computed.error});
  if (part.drawing.options.wants_prompt_logprobs) TRY(tell_prompt_logprobs(part, scratch));
  const scheduler::Batch::Sequence& sequence = part.sequence;
  if (!sequence.draws) return {};
  CHECK(!sequence.logit_rows.empty() &&
        sequence.logit_rows.back() + 1 == std::ssize(sequence.tokens));
  const int64_t first_row = computed.first_logit_row + std::ssize(sequence.logit_rows) - 1;
  const std::vector<int32_t>& drafts = computed.drafts;
  bool goes_on = true;
  for (size_t i = 0; goes_on; ++i) {
    std::optional<Draft> draft;
    if (i < drafts.size()) draft = {.id = drafts[i], .index = i};
    const std::span<const float> logits = logit_row(first_row + static_cast<int64_t>(i));
    const auto [token, is_draft] = TRY(draw_next(logits, draft, part.drawing, scratch));
    part.result.tokens.push_back(token.id);
    if (token.logprob) {
      part.logprobs.drawn.push_back(
          {.token = {.id = token.id, .logprob = *token.logprob},
           .top = {token.top_logprobs.begin(), token.top_logprobs.end()}});
    }
    goes_on = is_draft;
  }
  return {};
}

// What padding, min_tokens and the grammar leave.
std::span<const uint32_t> StepDrawer::allowed_ids(Drawing& drawing, Scratch& scratch) const {
  const bool may_stop = drawing.num_drawn >= drawing.options.min_tokens;
  const TokenMask& mask = may_stop || !drawing.mask ? drawable_ : *drawing.mask;
  if (!drawing.options.grammar || drawing.drew_stop) return mask.words();
  const std::span<const uint32_t> by_grammar = drawing.options.grammar->allowed();
  if (by_grammar.empty()) return mask.words();
  scratch.mask = mask;
  scratch.mask.intersect(by_grammar);
  return scratch.mask.words();
}

bool StepDrawer::simulates(const Draft& draft, std::span<const uint32_t> allowed,
                           const Drawing& drawing) const {
  if (draft.index >= simulated_acceptance_.size()) return false;
  const base::RandomStream stream =
      base::random_stream(drawing.options.sampling.seed, "simulated acceptance");
  return stream.uniform(static_cast<uint64_t>(drawing.num_drawn)) <
             simulated_acceptance_[draft.index] &&
         allows(allowed, draft.id);
}

base::Result<StepDrawer::Drawn> StepDrawer::draw_next(std::span<const float> logits,
                                                      std::optional<Draft> draft, Drawing& drawing,
                                                      Scratch& scratch) {
  TRY(check_finite(logits, "that a token is drawn from"));
  const DrawingOptions& options = drawing.options;
  const std::span<const uint32_t> allowed = allowed_ids(drawing, scratch);
  DrawnToken drawn = TRY(engine::draw(logits, options.sampling, drawing.history, drawing.num_drawn,
                                      allowed, scratch.draw));
  bool is_draft = draft && draft->id == drawn.id;
  if (draft && !simulated_acceptance_.empty()) {
    is_draft = simulates(*draft, allowed, drawing);
    if (is_draft) replace(drawn, draft->id, logits, options.sampling, scratch.draw);
  }
  ++drawing.num_drawn;
  if (uses_history(options.sampling)) drawing.history.append_output(drawn.id);
  if (options.grammar && !drawing.drew_stop) {
    options.grammar->tell(drawn.id);
    const std::vector<int32_t>& stops = options.stop_token_ids;
    drawing.drew_stop = std::ranges::find(stops, drawn.id) != stops.end();
  }
  return Drawn{.token = drawn, .is_draft = is_draft};
}

base::Status StepDrawer::tell_prompt_logprobs(const Part& part, Scratch& scratch) {
  const scheduler::Batch::Sequence& sequence = part.sequence;
  const Drawing& drawing = part.drawing;
  for (size_t i = 0; i < sequence.logit_rows.size(); ++i) {
    const auto next = static_cast<size_t>(sequence.first_position + sequence.logit_rows[i]) + 1;
    if (next >= drawing.prompt.size()) break;
    const std::span<const float> logits =
        logit_row(part.computed.first_logit_row + static_cast<int64_t>(i));
    TRY(check_finite(logits, "of the prompt"));
    const int32_t id = drawing.prompt[next];
    const Logprobs logprobs = logprobs_of(
        logits, id, drawing.options.sampling.num_top_logprobs.value_or(0), scratch.draw);
    part.logprobs.prompt.push_back({.token = {.id = id, .logprob = logprobs.logprob},
                                    .top = {logprobs.top.begin(), logprobs.top.end()}});
  }
  return {};
}

}  // namespace ingot::engine
