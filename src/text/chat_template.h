#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/prompt_text.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// Strings that a template may name: {"bos_token", "<s>"}, {"eos_token", ...} and so on. Trusted.
using SpecialTokensMap = std::vector<std::pair<std::string, std::string>>;

// What a chat is rendered from; the arguments of apply_chat_template in Hugging Face's library.
struct ChatInputs {
  TemplateValue messages;                           // list of dicts
  TemplateValue tools = TemplateValue::none();      // list of dicts, or none
  TemplateValue documents = TemplateValue::none();  // list of dicts, or none
  bool add_generation_prompt = true;
  // Further variables: enable_thinking, reasoning_effort, clear_thinking. They come before the
  // special tokens where they have the same name.
  std::vector<std::pair<std::string, TemplateValue>> extra;
};

// How a model wants a conversation written: the Jinja template that came with it, run as Hugging
// Face's library runs it, byte for byte. docs/formats/chat_template.md says what it may contain.
// Immutable, cheap to copy, safe from any thread.
//
// The prompt knows its data. Trusted are what the template writes itself (text and string
// literals), the special tokens, and strings made by TemplateValue::trusted; numbers, true, false
// and none print as trusted text, and so do the roles system, developer, user, assistant and tool.
// All else, keys and other roles included, is data and stays so through
// concatenation, slices, methods, filters, macros and blocks: a byte of a result is data when the
// byte that it was made from is, and where bytes cannot be told apart, when any of them is.
class ChatTemplate {
 public:
  // The template of a model directory: the file chat_template.jinja, else "chat_template" in
  // tokenizer_config.json, which is the template or a list of {name, template}. Nothing when the
  // model has none. Errors: a file that cannot be read, and a template that cannot be parsed, with
  // line and column.
  static base::Result<std::optional<ChatTemplate>> load(const std::filesystem::path& directory);

  // `name` is the template's in errors.
  static base::Result<ChatTemplate> parse(std::string_view source, std::string_view name,
                                          SpecialTokensMap tokens);

  // The prompt. `now` is the local time, for templates that print the date. Before it runs, and as
  // Hugging Face does, keys of a message whose value is none are dropped, and reasoning_content and
  // thinking are filled from the first of reasoning_content, thinking and reasoning that is there.
  // Errors say why by their kind: kRaised when the template refused the conversation.
  TemplateResult<PromptText> render(const ChatInputs& inputs, const std::tm& now) const;

  // What the template reads from outside, sorted: whether it knows enable_thinking, tools and
  // reasoning_effort. With templates for and without tools, what either reads.
  std::span<const std::string> variables() const;
  const SpecialTokensMap& special_tokens() const;
  // Special tokens, such as bos_token, that the template reads and the model's files do not give.
  std::vector<std::string> missing_special_tokens() const;
  // The texts and string literals of the template, or of both, in which its control tokens stand.
  std::span<const std::string> literals() const;

 private:
  struct Shared;
  explicit ChatTemplate(std::shared_ptr<const Shared> shared) : shared_(std::move(shared)) {}

  struct Source {
    std::string name;
    std::string text;
  };
  static base::Result<ChatTemplate> parse_all(const Source& source, const Source* with_tools,
                                              SpecialTokensMap tokens);

  std::shared_ptr<const Shared> shared_;
};

}  // namespace ingot::text
