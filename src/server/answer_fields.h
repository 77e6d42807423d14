#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling_params.h"
#include "server/field_reader.h"

namespace ingot::server {

inline constexpr int32_t kChoicesPerPromptMax = 128;
inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopStringBytesMax = 1024;
inline constexpr size_t kStopTokenIdsMax = 1024;

enum class Endpoint : uint8_t {
  kChatCompletions,  // /v1/chat/completions
  kCompletions,      // /v1/completions
};

// What a request of either endpoint says of the answer that it wants. Absent: as the model's files
// or the endpoint have it.
struct AnswerFields {
  std::string model = {};  // compared with what is served by the caller

  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<int32_t> top_k = {};  // 0: all; -1 in a request says the same
  std::optional<double> repetition_penalty = {};
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<engine::TokenBias> logit_bias = {};
  std::optional<uint64_t> seed = {};

  std::optional<int32_t> max_tokens = {};
  int32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop = {};
  std::vector<int32_t> stop_token_ids = {};

  int32_t n = 1;
  std::optional<int32_t> top_logprobs = {};     // of each token of the answer, with its own
  std::optional<int32_t> prompt_logprobs = {};  // of each token of the prompt, with its own
  bool stream = false;
  bool include_usage = false;  // a last chunk of a stream with the usage

  int32_t priority = 0;  // higher goes first
  std::string cache_salt = {};
};

// All of the above but max_tokens and top_logprobs, which the endpoints spell differently; fields
// that carry no behaviour; and those that are not honoured, where they ask for something.
void read_answer_fields(FieldReader& reader, AnswerFields& fields);

}  // namespace ingot::server
