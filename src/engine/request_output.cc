#include "engine/request_output.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace ingot::engine {

using scheduler::FinishReason;

RequestOutput::RequestOutput(const EngineRequest& request, int32_t num_prompt_tokens,
                             const text::Tokenizer* tokenizer, UpdateSink sink)
    : sink_(std::move(sink)), num_prompt_tokens_(num_prompt_tokens) {
  if (request.stop_strings.empty()) return;
  CHECK(tokenizer != nullptr);
  text_.emplace(*tokenizer, text::AnswerStops{.strings = request.stop_strings,
                                              .min_tokens = request.min_tokens});
}

void RequestOutput::observe(const scheduler::Batch::Sequence& entry,
                            const scheduler::StepResult::Sequence& result, StepLogprobs logprobs) {
  drawn_ = result.tokens;
  drawn_logprobs_ = std::move(logprobs.drawn);
  if (!logprobs.prompt.empty()) {
    std::ranges::move(logprobs.prompt, std::back_inserter(update_.prompt_logprobs));
    has_news_ = true;
  }
  if (!result.error.empty()) return;
  const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  const int32_t done = std::min(end, num_prompt_tokens_);
  if (done > update_.num_prompt_tokens_done) {
    update_.num_prompt_tokens_done = done;
    has_news_ = true;
  }
}

// Of the tokens that continue the output, the one with which its text first has a stop string.
std::optional<size_t> RequestOutput::index_of_completing_token(std::span<const int32_t> tokens) {
  if (!text_ || text_->match()) return std::nullopt;
  for (size_t i = 0; i < tokens.size(); ++i) {
    CHECK(text_->push(tokens[i]).has_value(), "an id was drawn that stands for no token");
    if (text_->match()) return i;
  }
  return std::nullopt;
}

std::optional<int32_t> RequestOutput::add(scheduler::RequestEvent event) {
  const size_t num_told = event.tokens.size();
  const auto completing = index_of_completing_token(event.tokens);
  if (completing) event.tokens.resize(*completing + 1);
  num_output_tokens_ += static_cast<int32_t>(event.tokens.size());
  drawn_logprobs_.resize(std::min(drawn_logprobs_.size(), event.tokens.size()));
  std::ranges::move(drawn_logprobs_, std::back_inserter(update_.logprobs));
  std::ranges::move(event.tokens, std::back_inserter(update_.tokens));
  drawn_logprobs_.clear();
  has_news_ = true;
  if (!event.report) {
    return completing ? std::optional(num_output_tokens_) : std::nullopt;
  }
  scheduler::RequestReport& report = *event.report;
  EngineReport& told = update_.report.emplace();
  told = {.reason = report.reason,
          .error = std::move(report.error),
          .usage = report.usage,
          .timings = report.timings};
  if (text_ && text_->match()) {
    // It may have ended for another reason in the very step that completed the string.
    told.reason = FinishReason::kStop;
    told.error.clear();
    told.stopped_by_string = text_->match()->index;
    told.usage.num_output_tokens = num_output_tokens_;
  } else if (report.reason == FinishReason::kStop && num_told < drawn_.size()) {
    told.stopped_by_id = drawn_[num_told];
  }
  return std::nullopt;
}

bool RequestOutput::send() {
  if (!has_news_) return false;
  has_news_ = false;
  const bool is_last = update_.report.has_value();
  EngineUpdate update =
      std::exchange(update_, {.num_prompt_tokens_done = update_.num_prompt_tokens_done});
  sink_(std::move(update));
  return is_last;
}

}  // namespace ingot::engine
