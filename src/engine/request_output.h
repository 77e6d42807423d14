#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_request.h"
#include "engine/model_executor.h"
#include "scheduler/batch.h"
#include "scheduler/request.h"
#include "text/answer_pieces.h"

namespace ingot::engine {

// From what executor and scheduler tell of one request to its news: joins tokens with their
// logprobs, and finds stop strings. Used by the engine's thread.
class RequestOutput {
 public:
  // `request` as it was submitted, its prompt aside; `tokenizer` must outlive this, and may be null
  // where there are no stop strings.
  RequestOutput(const EngineRequest& request, int32_t num_prompt_tokens,
                const text::Tokenizer* tokenizer, UpdateSink sink);

  // What a step computed for it, before its events are added.
  void observe(const scheduler::Batch::Sequence& entry,
               const scheduler::StepResult::Sequence& result, StepLogprobs logprobs);

  // What the scheduler told of it. If its text met a stop string within these tokens: how many
  // output tokens it has with the one that completed the string.
  std::optional<int32_t> add(scheduler::RequestEvent event);

  // Tells what has come since, if anything. True: that was the last of it.
  bool send();

 private:
  std::optional<size_t> index_of_completing_token(std::span<const int32_t> tokens);

  UpdateSink sink_;
  const int32_t num_prompt_tokens_;
  std::optional<text::AnswerPieces> text_;  // where there are stop strings
  int32_t num_output_tokens_ = 0;
  std::vector<int32_t> drawn_;  // in the last step
  std::vector<TokenLogprobs> drawn_logprobs_;
  EngineUpdate update_;  // to be sent
  bool has_news_ = false;
};

}  // namespace ingot::engine
