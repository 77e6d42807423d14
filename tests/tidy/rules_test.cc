// A planted violation for every rule, and for each something close that is allowed.

#include <string>

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

// `count` lines, each ending.
std::string repeated(const std::string& line, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += line + "\n";
  return text;
}

TEST(SourceTree, CodeHasNoCommentsAndLiterals) {
  EXPECT_EQ(code_of("a; // throw\nb;"), "a;         \nb;");
  EXPECT_EQ(code_of("a /* x\ny */ b"), "a     \n     b");
  EXPECT_EQ(code_of("f(\"t\\\"w\", 'x');"), "f(\"    \", ' ');");
  EXPECT_EQ(code_of("R\"(a\"b)\" c"), "R\"     \" c");
  EXPECT_EQ(code_of("1'000 + 2'000"), "1'000 + 2'000");
}

TEST(SourceTree, WordsAreWhole) {
  EXPECT_EQ(find_word("operand(x)", "rand("), std::string::npos);
  EXPECT_EQ(find_word("static_assert(x)", "assert("), std::string::npos);
  EXPECT_EQ(find_word("throws throw", "throw"), 7u);
}

TEST(SourceTree, Rooms) {
  EXPECT_EQ(room_of("src/base/clock.cc"), "base");
  EXPECT_EQ(room_of("src/CMakeLists.txt"), "");
  EXPECT_EQ(room_of("tests/tidy/layers.cc"), "");
}

TEST(Layers, TableIsRead) {
  const LayerTable table = parse_layer_table(
      "# room(ghost)\nroom(base LIBRARIES fmt::fmt)\nroom(model USES base # why\n  tensor)\n");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_TRUE(table.at("base").empty());
  EXPECT_EQ(table.at("model"), (std::set<std::string>{"base", "tensor"}));
}

TEST(Layers, IncludesFollowTheTable) {
  const LayerTable table = parse_layer_table("room(base)\nroom(tensor USES base)\nroom(model)");
  const auto count = [&](const std::string& path, const std::string& text) {
    return check_layers({path, text}, table).size();
  };
  EXPECT_EQ(count("src/tensor/a.cc", "#include \"base/b.h\"\n#include \"tensor/a.h\"\n"), 0u);
  EXPECT_EQ(count("src/tensor/a.cc", "#include \"model/b.h\"\n"), 1u);
  EXPECT_EQ(count("src/tensor/a_test.cc", "#include \"model/b.h\"\n"), 1u);
  EXPECT_EQ(count("src/base/a.h", "  #include \"tensor/b.h\"\n"), 1u);
  EXPECT_EQ(count("src/base/a.h", "#include \"b.h\"\n"), 1u);
  EXPECT_EQ(count("src/unknown/a.h", ""), 1u);
  EXPECT_EQ(count("tests/parity/a.cc", "#include \"model/b.h\"\n"), 0u);
}

TEST(Sizes, FunctionsAreFound) {
  const std::vector<Function> functions = functions_of(
      "namespace a {\n"
      "#define M(x) do { x; } while (0)\n"
      "constexpr int kTable[] = {1, 2};\n"
      "class Foo : public Bar {\n"
      " public:\n"
      "  Foo(int x) : x_{x}, y_(x) { run(); }\n"
      "  explicit Foo() : x_{0} {\n"
      "    run();\n"
      "  }\n"
      "  int x_ = 0;\n"
      "};\n"
      "template <typename T>\n"
      "auto free_function(T t) -> int {\n"
      "  if (t) { return [&] { return 1; }(); }\n"
      "}\n"
      "}  // namespace a\n"
      "TEST(Suite, Case) {}\n");
  ASSERT_EQ(functions.size(), 4u);
  EXPECT_EQ(functions[0].name, "Foo");
  EXPECT_EQ(functions[0].lines, 2u);  // with its access label
  EXPECT_EQ(functions[1].line, 7u);
  EXPECT_EQ(functions[1].lines, 3u);
  EXPECT_EQ(functions[2].name, "free_function");
  EXPECT_EQ(functions[2].lines, 4u);
  EXPECT_EQ(functions[3].name, "TEST");
}

TEST(Sizes, LongFunctionsFilesAndHeaders) {
  const auto function = [](size_t lines) {
    return "void f() {\n" + repeated("", lines - 2) + "}\n";
  };
  EXPECT_EQ(check_sizes({{"src/a/a.cc", function(kFunctionLinesMax)}}, {}).size(), 0u);
  EXPECT_EQ(check_sizes({{"src/a/a.cc", function(kFunctionLinesMax + 1)}}, {}).size(), 1u);
  EXPECT_EQ(check_sizes({{"src/a/a.cc", repeated("", kFileLinesMax)}}, {}).size(), 0u);
  EXPECT_EQ(check_sizes({{"src/a/a.cc", repeated("", kFileLinesMax + 1)}}, {}).size(), 1u);
  EXPECT_EQ(check_sizes({{"src/a/a.h", repeated("", kHeaderLinesMax + 1)}}, {}).size(), 1u);
}

TEST(Sizes, ExceptionsOnlyShrink) {
  const std::vector<SourceFile> files = {{"a.cc", "void f() {\n" + repeated("", 78) + "}\n"}};
  const auto count = [&](const SizeException& exception) {
    return check_sizes(files, {exception}).size();
  };
  EXPECT_EQ(count({"a.cc", "f", 80, ""}), 0u);
  EXPECT_EQ(count({"a.cc", "f", 81, ""}), 1u) << "has to be lowered";
  EXPECT_EQ(count({"a.cc", "f", 79, ""}), 1u) << "grew";
  EXPECT_EQ(check_sizes(files, {{"a.cc", "f", 80, ""}, {"a.cc", "g", 80, ""}}).size(), 1u);
  EXPECT_EQ(check_sizes(files, {{"a.cc", "f", 80, ""}, {"b.cc", "", 900, ""}}).size(), 1u);
}

TEST(Sizes, Columns) {
  EXPECT_EQ(check_columns({"a.cc", std::string(100, 'x') + "\n"}).size(), 0u);
  EXPECT_EQ(check_columns({"a.cc", std::string(101, 'x') + "\n"}).size(), 1u);
  EXPECT_EQ(check_columns({"a.cc", repeated("\u00e4", 1) + std::string(99, 'x') + "\u00e4"}).size(),
            0u);
  EXPECT_EQ(check_columns({"a.cc", "\tx\n"}).size(), 1u);
  EXPECT_EQ(check_columns({"a.cc", "x \n"}).size(), 1u);
  EXPECT_EQ(check_columns({"quickstart", "#!/bin/sh\n\tx\n"}).size(), 1u);
  EXPECT_EQ(check_columns({"a.md", std::string(300, 'x')}).size(), 0u);
}

TEST(Names, Files) {
  EXPECT_EQ(check_file_name({"src/base/mapped_file.h", ""}).size(), 0u);
  EXPECT_EQ(check_file_name({"src/text/common_prefix.h", ""}).size(), 0u);
  EXPECT_EQ(check_file_name({"src/text/common.h", ""}).size(), 1u);
  EXPECT_EQ(check_file_name({"src/text/string_utils.cc", ""}).size(), 1u);
  EXPECT_EQ(check_file_name({"src/engine/memory_manager.cc", ""}).size(), 1u);
  EXPECT_EQ(check_file_name({"src/base/MappedFile.h", ""}).size(), 1u);
}

TEST(Names, Types) {
  EXPECT_EQ(check_type_names({"a.h", "class PagePool {};\nstruct Manages;\n"}).size(), 0u);
  EXPECT_EQ(check_type_names({"a.h", "class PageManager {};\n"}).size(), 1u);
  EXPECT_EQ(check_type_names({"a.h", "// class PageManager\nstruct StringUtil;\n"}).size(), 1u);
}

TEST(Names, PragmaOnce) {
  EXPECT_EQ(check_pragma_once({"a.h", "#pragma once\n"}).size(), 0u);
  EXPECT_EQ(check_pragma_once({"a.h", "#ifndef A_H\n"}).size(), 1u);
  EXPECT_EQ(check_pragma_once({"a.cc", ""}).size(), 0u);
}

TEST(Names, Namespaces) {
  EXPECT_EQ(check_namespace({"src/base/a.h", "namespace ingot::base {\n"}).size(), 0u);
  EXPECT_EQ(check_namespace({"src/base/a.h", "namespace ingot::tensor {\n"}).size(), 1u);
  EXPECT_EQ(check_namespace({"src/base/a.h", "// namespace ingot::base\n"}).size(), 1u);
  EXPECT_EQ(check_namespace({"src/cli/main.cc", "int main() {}\n"}).size(), 0u);
}

TEST(Names, HeaderPairs) {
  const std::set<std::string> paths = {"src/kernels/linear.h"};
  const auto count = [&](const std::string& path) {
    return check_header_pair({path, ""}, paths).size();
  };
  EXPECT_EQ(count("src/kernels/linear.cc"), 0u);
  EXPECT_EQ(count("src/kernels/linear_bf16_avx512.cc"), 0u);
  EXPECT_EQ(count("src/kernels/linear_test.cc"), 0u);
  EXPECT_EQ(count("src/kernels/router.cc"), 1u);
  EXPECT_EQ(count("src/model/linear.cc"), 1u);
  EXPECT_EQ(count("src/cli/main.cc"), 0u);
}

TEST(Bans, EveryRowIsAlive) {
  for (const Ban& ban : bans()) {
    const std::string text = "  x = " + std::string(ban.banned) + " y;\n";
    EXPECT_EQ(check_ban({"src/kernels/a.cc", text}, ban).size(), 1u) << ban.banned;
    EXPECT_EQ(check_ban({"src/kernels/a_test.cc", text}, ban).size(),
              ban.tests == Tests::kBannedToo ? 1u : 0u)
        << ban.banned;
    for (const std::string_view path : ban.allowed_in) {
      EXPECT_EQ(check_ban({std::string(path) + "a.cc", text}, ban).size(), 0u) << ban.banned;
    }
    const std::string comment =
        "// " + text + "const char* p = \"" + std::string(ban.banned) + "\";\n";
    EXPECT_EQ(check_ban({"src/kernels/a.cc", comment}, ban).size(),
              ban.where == Where::kEverywhere ? 2u : 0u)
        << ban.banned;
  }
}

TEST(Bans, UsingDirectives) {
  EXPECT_EQ(check_using_directives({"a.cc", "using namespace std;\n"}).size(), 1u);
  EXPECT_EQ(check_using_directives({"a.cc", "using base::Result;\n"}).size(), 0u);
  EXPECT_EQ(check_using_directives({"a.cc", "using namespace std::chrono_literals;\n"}).size(), 0u);
  EXPECT_EQ(check_using_directives({"a.cc", "void f() {\n  using namespace std;\n}\n"}).size(), 0u);
}

TEST(Documents, Links) {
  const std::set<std::string> paths = {"README.md", "docs/a.md", "docs/formats/b.md"};
  const auto count = [&](const std::string& path, const std::string& text) {
    return check_links({path, text}, paths).size();
  };
  EXPECT_EQ(count("README.md", "[a](docs/a.md) [b](docs/a.md#part) [c](#part) [d](docs/)"), 0u);
  EXPECT_EQ(count("docs/a.md", "[a](../README.md) [b](formats/b.md) [c](https://x.org/y)"), 0u);
  EXPECT_EQ(count("README.md", "[a](docs/missing.md)"), 1u);
  EXPECT_EQ(count("docs/a.md", "[a](docs/a.md)"), 1u);
  EXPECT_EQ(count("README.md", "```\n[a](missing)\n```\n"), 0u);
  EXPECT_EQ(count("src/a.cc", "[a](missing)"), 0u);
}

TEST(Documents, MachinePaths) {
  const auto count = [](const std::string& text, const std::string& root) {
    return check_machine_paths({"a.md", text}, root).size();
  };
  EXPECT_EQ(count("see /ho"
                  "me/me/x",
                  "/checkout"),
            1u);
  EXPECT_EQ(count("see /builds/other", "/builds/ingot"), 1u);
  EXPECT_EQ(count("see ./builds/other and x/builds/y", "/builds/ingot"), 0u);
  EXPECT_EQ(count("see /usr/include", "/checkout"), 0u);
}

TEST(WeakSymbols, AreFound) {
  const auto count = [](const std::string& text) { return check_weak_symbols("a.o", text).size(); };
  EXPECT_EQ(count("0000000000000000 T ingot::kernels::dot()\n"), 0u);
  EXPECT_EQ(count("                 U memcpy\n                 w __gmon_start__\n"), 0u);
  EXPECT_EQ(count("0000000000000000 V DW.ref.__gxx_personality_v0\n"), 0u);
  EXPECT_EQ(count("0000000000000000 W std::max<int>(int const&, int const&)\n"), 1u);
  EXPECT_EQ(count("0000000000000000 V vtable for Foo\n0000000000000000 u f()::x\n"), 2u);
}

TEST(WeakSymbols, WideObjectsAreToldByName) {
  EXPECT_EQ(wide_objects("k/dot_avx2.cc.o\nk/dot.cc.o\nk/dot_avx512.cc.o\nk/avx2_test.cc.o\n"),
            (std::vector<std::string>{"k/dot_avx2.cc.o", "k/dot_avx512.cc.o"}));
}

}  // namespace
}  // namespace ingot::tidy
