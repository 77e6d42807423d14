#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ingot::endtoend {

// `ingot ARGUMENTS` in a terminal of its own, as a person runs it.
class Terminal {
 public:
  // Whether this machine makes pseudo-terminals; a container may come without.
  static bool available();

  // REQUIRES: available().
  explicit Terminal(const std::vector<std::string>& arguments);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys);
  // Waits until `text` has been shown `count` times altogether; false when the program ends or a
  // minute passes before.
  bool wait_for(std::string_view text, size_t count = 1);
  // Waits until what has been shown ends with `text`, a prompt: only then is the program ready for
  // keys, and keys that come too early may be dropped with the line that they interrupt.
  bool wait_for_prompt(std::string_view text = "> ");
  // Waits for the end of the program and gives its exit status, -1 when a signal ended it.
  int wait_for_end();

  const std::string& shown() const { return shown_; }

 private:
  bool read_some();

  int descriptor_ = -1;
  pid_t child_ = -1;
  std::string shown_;
};

}  // namespace ingot::endtoend
