#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/chat_request.h"
#include "cli/engine_session.h"
#include "cli/options.h"
#include "text/output_parser.h"

namespace ingot::cli {

// What was said in a chat, and how the next answer comes about. It prints answers as they arrive,
// and for --json a line for each. What it refers to must outlive it.
class Conversation {
 public:
  Conversation(const CommonOptions& common, const ChatOptions& options, EngineSession& session,
               const engine::ModelText& model_text)
      : common_(common),
        options_(options),
        session_(session),
        text_(model_text),
        system_(options.system) {}

  // How the model is to behave; empty: nothing is said of it.
  void set_system(std::string_view system) { system_ = system; }
  // Forgets what was said, but for the system's message.
  void reset() { messages_.clear(); }

  // Answers a message. Errors, after which the message was never said: it is not UTF-8, the
  // template refuses it, the cache has no room, the answer cannot be computed or printed.
  base::Status reply(std::string_view message);

  // Answers a conversation that was held elsewhere; what was said here plays no part and stays.
  base::Status answer(ChatRequest request);

  // Tokens of all that was said, as the model would see it next.
  base::Result<size_t> num_tokens() const;
  int64_t num_tokens_max() const { return session_.engine->max_request_tokens(); }

 private:
  struct Prompt {
    std::vector<int32_t> ids;
    bool ends_in_reasoning = false;
    std::vector<text::ToolSchema> tools;
  };
  struct Answer {
    struct ToolCall {
      std::string name;
      std::string arguments;  // a JSON object
      bool whole = false;     // otherwise the answer was cut off within
    };
    std::string reasoning;
    std::string content;
    std::vector<ToolCall> tool_calls;
    engine::EngineReport report;

    void add(const std::vector<text::OutputEvent>& events);
  };

  ChatRequest request() const;
  base::Result<Prompt> prompt(ChatRequest request) const;
  base::Result<Answer> generate(Prompt prompt);
  base::Result<Answer> answer_prompt(Prompt prompt);
  void report(const Answer& answer) const;

  const CommonOptions& common_;
  const ChatOptions& options_;
  EngineSession& session_;
  const engine::ModelText& text_;
  std::string system_;
  base::json::array messages_;  // without the system's
};

}  // namespace ingot::cli
