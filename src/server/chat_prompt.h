#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model_text.h"
#include "text/chat_template.h"

namespace ingot::server {

// A conversation as the model reads it.
struct ChatPrompt {
  std::vector<int32_t> ids;
  bool ends_in_reasoning = false;  // the answer begins inside of the reasoning
};

// `now` is the local time, for templates that print the date. Errors: the model has no chat
// template, or the template refuses the conversation or makes nothing of it.
base::Result<ChatPrompt> render_chat(const engine::ModelText& model_text,
                                     const text::ChatInputs& inputs, const std::tm& now);

// Whether a chat template reads a variable, such as enable_thinking; what it does not read has no
// effect.
bool reads(const text::ChatTemplate& chat_template, std::string_view variable);

}  // namespace ingot::server
