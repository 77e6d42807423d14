#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot::endtoend {

// What a run of the program left behind. `status` is -1 when a signal ended it.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// How the program is started.
struct Start {
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides our own
  std::optional<uint64_t> file_size_bytes_max = {};  // as on a full disk, writes beyond it fail
  std::filesystem::path out_file = {};               // instead of Outcome::out
  std::string in = {};                               // what is piped into it
};

// Runs `ingot ARGUMENTS` and waits for its end. INGOT_TARGETS of the test's own environment holds
// for it too, INGOT_THREADS does not.
Outcome run_ingot(const std::vector<std::string>& arguments, const Start& start = {});

// Becomes the program, with the streams as they are; for the child's side of a fork.
[[noreturn]] void execute_ingot(std::vector<std::string> arguments);

std::string contents(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace ingot::endtoend
