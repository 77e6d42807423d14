// The tests of the tests: each file in mutants/ plants one bug into the scheduler, and a simulation
// that does not find it is not worth much.

#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace ingot::simulation {
namespace {

struct Mutant {
  const char* name;
  const char* program;
  const char* phrase;
};

// What CTest calls the test.
void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

// Of each file: its name, the program with the bug, and what has to be reported.
constexpr Mutant kMutants[] = {
#include "mutants.inc"
};

constexpr std::string_view kArguments = " --seeds 1..24 --requests 200 --shrink-tries 0";

struct Finding {
  int exit_status = -1;
  std::string output;
};

Finding simulate(const std::string& program) {
  const std::string command = program + std::string(kArguments) + " 2>&1";
  Finding result;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer = {};
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

class EveryMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryMutant, IsFound) {
  const Finding found = simulate(GetParam().program);
  EXPECT_EQ(found.exit_status, 1);
  EXPECT_TRUE(found.output.contains(GetParam().phrase))
      << "not reported: " << GetParam().phrase << '\n'
      << found.output.substr(0, 4000);
}

INSTANTIATE_TEST_SUITE_P(Simulation, EveryMutant, testing::ValuesIn(kMutants));

TEST(Mutants, AreFoundForTheirBugAlone) {
  const Finding original = simulate(INGOT_SIMULATE);
  EXPECT_EQ(original.exit_status, 0) << original.output.substr(0, 4000);
}

}  // namespace
}  // namespace ingot::simulation
