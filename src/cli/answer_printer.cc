#include "cli/answer_printer.h"

#include <cstdlib>

#include "cli/terminal.h"

namespace ingot::cli {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

}  // namespace

// https://no-color.org
AnswerPrinter::AnswerPrinter(Reasoning reasoning)
    : reasoning_(reasoning),
      terminal_(stdout_is_terminal()),
      dims_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void AnswerPrinter::print(const std::vector<text::OutputEvent>& events) {
  for (const text::OutputEvent& event : events) {
    const bool is_reasoning = event.kind == text::OutputEvent::Kind::kReasoning;
    if (is_reasoning && reasoning_ == Reasoning::kHidden) continue;
    if (is_reasoning && !in_reasoning_) {
      write_out(dims_ ? kDim : "<think>\n");
      in_reasoning_ = true;
    }
    if (!is_reasoning) leave_reasoning();
    if (event.kind == text::OutputEvent::Kind::kToolCallBegin) finish();
    write(event.text);
    if (event.kind == text::OutputEvent::Kind::kToolCallBegin) write("(");
    if (event.kind == text::OutputEvent::Kind::kToolCallEnd) write(")\n");
  }
}

void AnswerPrinter::write(std::string_view text) {
  write_out(terminal_ ? terminal_safe(text) : std::string(text));
  if (!text.empty()) line_is_open_ = !text.ends_with('\n');
}

void AnswerPrinter::leave_reasoning() {
  if (!in_reasoning_) return;
  in_reasoning_ = false;
  write_out(dims_ ? "\x1b[0m\n\n" : "\n</think>\n");
  line_is_open_ = false;
}

void AnswerPrinter::finish() {
  if (in_reasoning_) {
    // It was cut off within: nothing closes what the model did not close.
    write_out(dims_ ? kPlain : "");
    in_reasoning_ = false;
    line_is_open_ = true;
  }
  if (line_is_open_) write_out("\n");
  line_is_open_ = false;
}

}  // namespace ingot::cli
