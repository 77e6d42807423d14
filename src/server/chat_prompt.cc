#include "server/chat_prompt.h"

#include <algorithm>

#include "text/answer_reader.h"

namespace ingot::server {

base::Result<ChatPrompt> render_chat(const engine::ModelText& model_text,
                                     const text::ChatInputs& inputs, const std::tm& now) {
  if (!model_text.chat_template) {
    return base::error("the model has no chat template, so it is not known how to talk to it");
  }
  const text::PromptText rendered = TRY(model_text.chat_template->render(inputs, now));
  ChatPrompt prompt;
  prompt.ids = TRY(model_text.tokenizer.encode(rendered));
  if (prompt.ids.empty()) {
    return base::error(
        "the model's chat template makes nothing of this conversation; it is not the published "
        "one");
  }
  prompt.ends_in_reasoning = text::ends_in_reasoning(rendered);
  return prompt;
}

bool reads(const text::ChatTemplate& chat_template, std::string_view variable) {
  return std::ranges::find(chat_template.variables(), variable) != chat_template.variables().end();
}

}  // namespace ingot::server
