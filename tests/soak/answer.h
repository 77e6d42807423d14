#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine_request.h"

namespace ingot::soak {

// All news of one request, joined.
struct Answer {
  std::vector<int32_t> tokens = {};
  std::vector<engine::TokenLogprobs> logprobs = {};
  std::vector<engine::TokenLogprobs> prompt_logprobs = {};
  engine::EngineReport report = {};  // once it came
};

void append(Answer& answer, engine::EngineUpdate&& update);

// It came to an end of its own: nobody cancelled it, nothing failed and no deadline passed.
bool is_whole(const Answer& answer);

// What is wrong with an answer to `request` in itself, in a few words. Empty: nothing.
std::string fault_of(const Answer& answer, const engine::EngineRequest& request);

// Where an answer is not bit for bit `whole`, which is whole, or, if it was ended before, a
// beginning of it. Empty: nowhere.
std::string difference(const Answer& answer, const Answer& whole);

}  // namespace ingot::soak
