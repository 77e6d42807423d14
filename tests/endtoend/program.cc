#include "endtoend/program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/scratch_directory.h"

namespace ingot::endtoend {
namespace {

void redirect(int descriptor, const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  ::close(file);
}

// The child's side of a fork.
[[noreturn]] void execute(const std::vector<std::string>& arguments, const Start& start,
                          const std::filesystem::path& out, const std::filesystem::path& err) {
  redirect(STDOUT_FILENO, out);
  redirect(STDERR_FILENO, err);
  ::unsetenv("INGOT_THREADS");
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (start.file_size_bytes_max) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = *start.file_size_bytes_max,
                       .rlim_max = *start.file_size_bytes_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::string program = INGOT_BINARY;
  std::vector<std::string> words = arguments;
  std::vector<char*> pointers = {program.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::_exit(127);
}

}  // namespace

Outcome run_ingot(const std::vector<std::string>& arguments, const Start& start) {
  const base::ScratchDirectory scratch;
  const std::filesystem::path out = start.out_file.empty() ? scratch / "out" : start.out_file;
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) execute(arguments, start, out, scratch / "err");
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (start.out_file.empty()) outcome.out = contents(out);
  outcome.err = contents(scratch / "err");
  return outcome;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.is_open(), path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  CHECK(file.good(), path.string());
}

}  // namespace ingot::endtoend
