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

void redirect(int descriptor, const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0644);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  ::close(file);
}

// The child's side of a fork.
[[noreturn]] void execute(const std::vector<std::string>& arguments, const Start& start,
                          const std::filesystem::path& out, const std::filesystem::path& folder) {
  redirect(STDIN_FILENO, folder / "in", O_RDONLY);
  redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
  redirect(STDERR_FILENO, folder / "err", O_WRONLY | O_CREAT);
  ::unsetenv("INGOT_THREADS");
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (start.file_size_bytes_max) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = *start.file_size_bytes_max,
                       .rlim_max = *start.file_size_bytes_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  execute_ingot(arguments);
}

}  // namespace

void execute_ingot(std::vector<std::string> arguments) {
  std::string program = INGOT_BINARY;
  std::vector<char*> pointers = {program.data()};
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::_exit(127);
}

Outcome run_ingot(const std::vector<std::string>& arguments, const Start& start) {
  const base::ScratchDirectory scratch;
  const std::filesystem::path out = start.out_file.empty() ? scratch / "out" : start.out_file;
  write_file(scratch / "in", start.in);
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) execute(arguments, start, out, scratch.path());
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
