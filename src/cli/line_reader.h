#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace ingot::cli {

// Lines from standard input. From a terminal with a prompt, editing and a history of this session,
// which is kept nowhere; otherwise as they come. One at a time exists.
class LineReader {
 public:
  // Errors: the terminal's character set is not known to this machine.
  static base::Result<LineReader> open();

  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  bool is_terminal() const { return editor_ != nullptr; }

  enum class Outcome { kLine, kInterrupted, kEnd };
  struct Line {
    Outcome outcome = Outcome::kEnd;
    std::string text = {};  // without its end
  };

  // The next line. Ctrl-C gives up what was typed of it. Errors: the input cannot be read.
  base::Result<Line> read(const std::string& prompt);

 private:
  struct Editor;
  LineReader();

  std::unique_ptr<Editor> editor_;
};

}  // namespace ingot::cli
