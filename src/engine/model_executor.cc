#include "engine/model_executor.h"

#include <utility>

#include "base/check.h"

namespace ingot::engine {

ModelExecutor::ModelExecutor(ModelRunner& runner, TokenMask drawable)
    : runner_(runner), drawable_(std::move(drawable)), scratch_(runner.config().vocab_size) {}

void ModelExecutor::add(scheduler::RequestId id, std::span<const int32_t> prompt,
                        DrawingOptions options) {
  Drawing drawing;
  if (uses_history(options.sampling)) drawing.history = TokenHistory(prompt);
  if (options.wants_prompt_logprobs) drawing.prompt.assign(prompt.begin(), prompt.end());
  if (options.min_tokens > 0) {
    drawing.mask = drawable_;
    for (const int32_t stop : options.stop_token_ids) drawing.mask->forbid(stop);
  }
  drawing.options = std::move(options);
  const bool is_new = drawings_.emplace(id, std::move(drawing)).second;
  CHECK(is_new, "a request is added twice");
}

void ModelExecutor::remove(scheduler::RequestId id) { drawings_.erase(id); }

std::span<const float> ModelExecutor::logit_row(int64_t row) const {
  const auto vocabulary = static_cast<size_t>(runner_.config().vocab_size);
  return logits_.subspan(static_cast<size_t>(row) * vocabulary, vocabulary);
}

const scheduler::StepResult& ModelExecutor::execute(const scheduler::Batch& batch) {
  const ComputedStep& step = runner_.forward_with_drafts(batch);
  logits_ = step.logits;
  result_.sequences.assign(batch.sequences.size(), {});
  logprobs_.assign(batch.sequences.size(), {});
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const ComputedStep::Sequence& computed = step.sequences[i];
    const auto found = drawings_.find(batch.sequences[i].request);
    CHECK(found != drawings_.end(), "a request was never added, or removed before its report");
    Drawing& drawing = found->second;
    base::Status status;
    if (computed.error.empty()) {
      status = draw_sequence(batch.sequences[i], computed, drawing, i);
    } else {
      status = std::unexpected(base::Error{computed.error});
    }
    if (!status) {
      result_.sequences[i] = {.error = std::move(status).error().message};
      logprobs_[i] = {};
    }
  }
  return result_;
}

base::Status ModelExecutor::draw_sequence(const scheduler::Batch::Sequence& sequence,
                                          const ComputedStep::Sequence& computed, Drawing& drawing,
                                          size_t index) {
  if (drawing.options.wants_prompt_logprobs) {
    TRY(tell_prompt_logprobs(sequence, computed, drawing, logprobs_[index]));
  }
  if (!sequence.draws) return {};
  CHECK(!sequence.logit_rows.empty() &&
        sequence.logit_rows.back() + 1 == std::ssize(sequence.tokens));
  const int64_t first_row = computed.first_logit_row + std::ssize(sequence.logit_rows) - 1;
  const std::vector<int32_t>& drafts = computed.drafts;
  int32_t num_accepted = 0;
  for (size_t i = 0; i <= drafts.size(); ++i) {
    const std::span<const float> logits = logit_row(first_row + static_cast<int64_t>(i));
    const DrawnToken drawn = TRY(draw_next(logits, drawing));
    result_.sequences[index].tokens.push_back(drawn.id);
    if (drawn.logprob) {
      logprobs_[index].drawn.push_back(
          {.token = {.id = drawn.id, .logprob = *drawn.logprob},
           .top = {drawn.top_logprobs.begin(), drawn.top_logprobs.end()}});
    }
    if (i == drafts.size() || drafts[i] != drawn.id) break;
    ++num_accepted;
  }
  runner_.accept(index, num_accepted);
  return {};
}

base::Result<DrawnToken> ModelExecutor::draw_next(std::span<const float> logits, Drawing& drawing) {
  TRY(check_finite(logits, "that a token is drawn from"));
  const bool may_stop = drawing.num_drawn >= drawing.options.min_tokens;
  const TokenMask& mask = may_stop || !drawing.mask ? drawable_ : *drawing.mask;
  const DrawnToken drawn = TRY(draw(logits, drawing.options.sampling, drawing.history,
                                    drawing.num_drawn, mask.words(), scratch_));
  ++drawing.num_drawn;
  if (uses_history(drawing.options.sampling)) drawing.history.append_output(drawn.id);
  return drawn;
}

base::Status ModelExecutor::tell_prompt_logprobs(const scheduler::Batch::Sequence& sequence,
                                                 const ComputedStep::Sequence& computed,
                                                 const Drawing& drawing, StepLogprobs& told) {
  for (size_t i = 0; i < sequence.logit_rows.size(); ++i) {
    const auto next = static_cast<size_t>(sequence.first_position + sequence.logit_rows[i]) + 1;
    if (next >= drawing.prompt.size()) break;
    const std::span<const float> logits =
        logit_row(computed.first_logit_row + static_cast<int64_t>(i));
    TRY(check_finite(logits, "of the prompt"));
    const int32_t id = drawing.prompt[next];
    const Logprobs logprobs =
        logprobs_of(logits, id, drawing.options.sampling.num_top_logprobs.value_or(0), scratch_);
    told.prompt.push_back({.token = {.id = id, .logprob = logprobs.logprob},
                           .top = {logprobs.top.begin(), logprobs.top.end()}});
  }
  return {};
}

}  // namespace ingot::engine
