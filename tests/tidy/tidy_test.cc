// The rules of STYLE.md and the table of src/CMakeLists.txt, held against this source tree.
// rules_test.cc plants a violation of each, so that none of them is dead.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tidy/bans.h"
#include "tidy/documents.h"
#include "tidy/layers.h"
#include "tidy/names.h"
#include "tidy/sizes.h"
#include "tidy/source_tree.h"
#include "tidy/weak_symbols.h"

namespace ingot::tidy {
namespace {

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree(INGOT_SOURCE_DIR);
  return files;
}

const std::set<std::string>& paths() {
  static const std::set<std::string> all = [] {
    std::set<std::string> collected;
    for (const SourceFile& file : tree()) collected.insert(file.path);
    return collected;
  }();
  return all;
}

template <typename Check>
Findings over_tree(Check check) {
  Findings findings;
  for (const SourceFile& file : tree()) {
    const Findings found = check(file);
    findings.insert(findings.end(), found.begin(), found.end());
  }
  return findings;
}

#define EXPECT_CLEAN(...)                               \
  do {                                                  \
    const Findings findings = (__VA_ARGS__);            \
    EXPECT_TRUE(findings.empty()) << to_text(findings); \
  } while (false)

std::string read_text(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string nm_output_of(const std::string& object) {
  const std::string command = std::string(INGOT_NM) + " --demangle '" + object + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.append(buffer, count);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST(Tidy, TreeIsFound) {
  EXPECT_TRUE(paths().contains("src/CMakeLists.txt"));
  EXPECT_TRUE(paths().contains("src/base/result.h"));
  EXPECT_TRUE(paths().contains("tests/tidy/tidy_test.cc"));
}

TEST(Tidy, Layers) {
  const LayerTable table = parse_layer_table(read_text(INGOT_SOURCE_DIR "/src/CMakeLists.txt"));
  ASSERT_TRUE(table.contains("base") && table.contains("cli"));
  EXPECT_CLEAN(over_tree([&](const SourceFile& file) { return check_layers(file, table); }));
}

TEST(Tidy, Sizes) { EXPECT_CLEAN(check_sizes(tree(), size_exceptions())); }

TEST(Tidy, Columns) { EXPECT_CLEAN(over_tree(check_columns)); }

TEST(Tidy, FileNames) { EXPECT_CLEAN(over_tree(check_file_name)); }

TEST(Tidy, TypeNames) { EXPECT_CLEAN(over_tree(check_type_names)); }

TEST(Tidy, PragmaOnce) { EXPECT_CLEAN(over_tree(check_pragma_once)); }

TEST(Tidy, Namespaces) { EXPECT_CLEAN(over_tree(check_namespace)); }

TEST(Tidy, HeaderPairs) {
  EXPECT_CLEAN(over_tree([](const SourceFile& file) { return check_header_pair(file, paths()); }));
}

TEST(Tidy, Bans) {
  for (const Ban& ban : bans()) {
    EXPECT_CLEAN(over_tree([&](const SourceFile& file) { return check_ban(file, ban); }));
  }
}

TEST(Tidy, UsingDirectives) { EXPECT_CLEAN(over_tree(check_using_directives)); }

TEST(Tidy, Links) {
  EXPECT_CLEAN(over_tree([](const SourceFile& file) { return check_links(file, paths()); }));
}

TEST(Tidy, MachinePaths) {
  EXPECT_CLEAN(over_tree(
      [](const SourceFile& file) { return check_machine_paths(file, INGOT_SOURCE_DIR); }));
}

TEST(Tidy, WideObjectsHaveNoWeakSymbols) {
  const std::vector<std::string> objects = wide_objects(read_text(INGOT_WIDE_OBJECTS));
  size_t num_wide_sources = 0;
  for (const std::string& path : paths()) {
    num_wide_sources +=
        path.starts_with("src/") && (path.ends_with("_avx2.cc") || path.ends_with("_avx512.cc"));
  }
  EXPECT_EQ(objects.size(), num_wide_sources) << "CMake and the tree disagree";
  for (const std::string& object : objects) {
    const std::string symbols = nm_output_of(object);
    EXPECT_FALSE(symbols.empty()) << object;
    EXPECT_CLEAN(check_weak_symbols(object, symbols));
  }
}

}  // namespace
}  // namespace ingot::tidy
