#include "tidy/bans.h"

#include <algorithm>

namespace ingot::tidy {
namespace {

const std::vector<Ban> kBans = {
    // Results go through cli/, everything else through base/log.
    {"std::cout", "return a value; cli/ prints it", {"src/cli/"}, Tests::kFree},
    {"std::cerr", "log_info, log_warning", {"src/cli/"}, Tests::kFree},
    {"printf(", "fmt::format; cli/ prints it", {"src/cli/"}, Tests::kFree},
    {"fprintf(",
     "log_info, log_warning",
     {"src/cli/", "src/base/check.cc", "src/base/progress.cc"},
     Tests::kFree},
    {"fmt::print(",
     "fmt::format; cli/ prints it",
     {"src/cli/", "src/base/progress.cc"},
     Tests::kFree},
    {"std::endl", "'\\n'", {}, Tests::kBannedToo},
    // The world comes in as an argument.
    {"steady_clock::now", "base::Clock", {"src/base/clock.cc"}, Tests::kBannedToo},
    {"system_clock::now", "base::Clock", {"src/base/clock.cc"}, Tests::kBannedToo},
    {"high_resolution_clock", "base::Clock", {}, Tests::kBannedToo},
    {"getenv", "an argument; cli/ reads the environment", {"src/cli/"}, Tests::kFree},
    {"secure_getenv", "an argument; cli/ reads the environment", {"src/cli/"}, Tests::kFree},
    {"setlocale", "nothing: the locale stays \"C\"", {}, Tests::kBannedToo},
    // The same seed gives the same run on every machine.
    {"rand(", "base::RandomStream", {}, Tests::kBannedToo},
    {"srand(", "base::RandomStream", {}, Tests::kBannedToo},
    {"std::random_device", "base::RandomStream with a seed", {}, Tests::kBannedToo},
    {"mt19937", "base::RandomStream", {}, Tests::kBannedToo},
    {"mt19937_64", "base::RandomStream", {}, Tests::kBannedToo},
    {"std::regex", "a parser of a few lines, or PCRE2 in text/", {}, Tests::kBannedToo},
    // Errors are values, bugs stop the process.
    {"throw", "Result and TRY for input, CHECK for bugs", {}, Tests::kFree},
    {"assert(", "CHECK, which stays on in release", {}, Tests::kBannedToo},
    {"std::stoi", "std::from_chars", {}, Tests::kBannedToo},
    {"std::stol", "std::from_chars", {}, Tests::kBannedToo},
    {"std::stoull", "std::from_chars", {}, Tests::kBannedToo},
    {"std::stod", "std::from_chars", {}, Tests::kBannedToo},
    {"atoi", "std::from_chars", {}, Tests::kBannedToo},
    {"strtol", "std::from_chars", {}, Tests::kBannedToo},
    {"strtod", "std::from_chars", {}, Tests::kBannedToo},
    // Threads are owned in one place.
    {"std::thread", "base::ThreadTeam", {"src/base/", "src/engine/engine."}, Tests::kFree},
    {"std::jthread", "base::ThreadTeam", {"src/base/", "benchmarks/"}, Tests::kFree},
    {"std::async", "base::ThreadTeam", {}, Tests::kFree},
    {"thread_local", "an argument", {}, Tests::kBannedToo},
    // Three interfaces in the whole program.
    {"virtual",
     "a struct, a function pointer or a template",
     {"src/base/clock.h", "src/scheduler/executor.h", "src/parallel/communicator.h"},
     Tests::kBannedToo},
    // Unfinished work goes to the tracker, not into the code.
    {"TO"
     "DO",
     "an issue",
     {},
     Tests::kBannedToo,
     Where::kEverywhere},
    {"FIX"
     "ME",
     "an issue",
     {},
     Tests::kBannedToo,
     Where::kEverywhere},
    {"XX"
     "X",
     "an issue",
     {},
     Tests::kBannedToo,
     Where::kEverywhere},
};

}  // namespace

const std::vector<Ban>& bans() { return kBans; }

Findings check_ban(const SourceFile& file, const Ban& ban) {
  Findings findings;
  const auto allows = [&](std::string_view start) { return file.path.starts_with(start); };
  if (!is_cpp(file.path)) return findings;
  if (ban.tests == Tests::kFree && is_test_code(file.path)) return findings;
  if (std::any_of(ban.allowed_in.begin(), ban.allowed_in.end(), allows)) return findings;
  const std::string text = ban.where == Where::kCode ? code_of(file.text) : file.text;
  for (size_t at = find_word(text, ban.banned); at != std::string::npos;
       at = find_word(text, ban.banned, at + 1)) {
    findings.push_back(
        {file.path, line_at(text, at),
         std::string(ban.banned) + " is not used here; instead: " + std::string(ban.instead)});
  }
  return findings;
}

Findings check_using_directives(const SourceFile& file) {
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const std::string code = code_of(file.text);
  size_t number = 0;
  for (const std::string_view line : lines_of(code)) {
    ++number;
    // Our format does not indent in namespaces, so the first column is file or namespace scope.
    if (line.starts_with("using namespace ") && !line.ends_with("_literals;")) {
      findings.push_back({file.path, number, "name what is used: using room::Noun;"});
    }
  }
  return findings;
}

}  // namespace ingot::tidy
