#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/output_parser.h"

namespace ingot::cli {

// Shows an answer as it arrives: content as it is; reasoning dimmed on a terminal, between <think>
// and </think> elsewhere, or not at all; tool calls as NAME({"argument": "value"}), a line each.
class AnswerPrinter {
 public:
  enum class Reasoning { kShown, kHidden };
  explicit AnswerPrinter(Reasoning reasoning);
  ~AnswerPrinter() { finish(); }
  AnswerPrinter(const AnswerPrinter&) = delete;
  AnswerPrinter& operator=(const AnswerPrinter&) = delete;

  void print(const std::vector<text::OutputEvent>& events);
  // Leaves the terminal as it was and the cursor at the start of a line.
  void finish();

 private:
  void write(std::string_view text);
  void leave_reasoning();

  const Reasoning reasoning_;
  const bool terminal_;
  const bool dims_;
  bool in_reasoning_ = false;
  bool line_is_open_ = false;
};

}  // namespace ingot::cli
