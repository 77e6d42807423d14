// Runs a fuzzer without libFuzzer: over every seed in a folder, and over fixed mutations of each,
// so that the parsers meet damaged input in every build, under whatever sanitizer it has.
//
//   ingot_NAME_fuzzer CORPUS_FOLDER...
//
// The mutations depend on the seeds alone. An input that kills the process is left in the working
// directory as crash-ingot_NAME_fuzzer, the way libFuzzer does it.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kMutationsPerSeed = 1000;
constexpr uint64_t kEditsMax = 8;

Bytes current_input;

void save_current_input() {
  const std::string path = std::string("crash-") + program_invocation_short_name;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return;
  std::fwrite(current_input.data(), 1, current_input.size(), file);
  std::fclose(file);
  std::fprintf(stderr, "the input is in %s\n", path.c_str());
}

void save_and_die(int signal_number) {
  save_current_input();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void run(Bytes input) {
  current_input = std::move(input);
  // A copy of exactly this size, so that a sanitizer sees the first byte read past the end.
  const Bytes exact(current_input.begin(), current_input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// The counter-th mutation of a seed: a few edits, each at a place and of a kind drawn from stream.
Bytes mutate(Bytes bytes, ingot::base::RandomStream stream) {
  uint64_t counter = 0;
  const auto below = [&](uint64_t bound) { return stream.word(counter++) % bound; };
  const uint64_t edits = 1 + below(kEditsMax);
  for (uint64_t edit = 0; edit < edits; ++edit) {
    const auto kind = below(6);
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
    if (kind == 0) {
      bytes.insert(bytes.begin() + at, static_cast<uint8_t>(below(256)));
      continue;
    }
    if (at == std::ssize(bytes)) continue;
    const auto length = static_cast<std::ptrdiff_t>(1 + below(16));
    const auto end = bytes.begin() + std::min(at + length, std::ssize(bytes));
    switch (kind) {
      case 1:  // another byte
        bytes[static_cast<size_t>(at)] = static_cast<uint8_t>(below(256));
        break;
      case 2:  // one bit
        bytes[static_cast<size_t>(at)] ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 3:  // a piece missing
        bytes.erase(bytes.begin() + at, end);
        break;
      case 4: {  // a piece twice
        const Bytes piece(bytes.begin() + at, end);
        bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
        break;
      }
      default:  // cut off
        bytes.resize(static_cast<size_t>(at));
        break;
    }
  }
  return bytes;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace

int main(int argc, char** argv) {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_current_input);
  }
  std::signal(SIGABRT, save_and_die);

  size_t num_seeds = 0;
  run({});
  for (int index = 1; index < argc; ++index) {
    for (const auto& path : files_in(argv[index])) {
      std::fprintf(stderr, "%s\n", path.filename().c_str());
      const Bytes seed = read(path);
      const std::string name = path.filename().string();
      run(seed);
      for (uint64_t mutation = 0; mutation < kMutationsPerSeed; ++mutation) {
        run(mutate(seed, ingot::base::random_stream(mutation, name)));
      }
      ++num_seeds;
    }
  }
  if (num_seeds == 0) {
    std::fputs("no seeds: put at least one file into the fuzzer's corpus folder\n", stderr);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
