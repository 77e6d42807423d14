#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::tidy {

// One file of the repository. `path` is relative to its root, with '/' between the parts.
struct SourceFile {
  std::string path;
  std::string text;
};

// Something that breaks a rule. Line 0 stands for the whole file.
struct Finding {
  std::string path;
  size_t line = 0;
  std::string message;
};
using Findings = std::vector<Finding>;

// "path:line: message", one a line.
std::string to_text(const Findings& findings);

// Every text file below `root`, sorted by path, but for build folders, hidden ones (.ci is read)
// and whatever is larger than a megabyte.
std::vector<SourceFile> read_tree(const std::filesystem::path& root);

std::vector<std::string_view> lines_of(std::string_view text);

// The line number, from 1, of a position in a text.
size_t line_at(std::string_view text, size_t position);

// The same text, every byte in its place, with comments and the inside of string and character
// literals turned into spaces; so a rule sees code only.
std::string code_of(std::string_view text);

// The next place, at or after `from`, where `word` stands in `text` and is no part of a longer
// identifier. npos when there is none.
size_t find_word(std::string_view text, std::string_view word, size_t from = 0);

bool is_identifier_char(char c);
bool is_cpp(std::string_view path);        // .h or .cc
bool is_header(std::string_view path);     // .h
bool is_test_code(std::string_view path);  // *_test.cc, and everything below tests/

// "src/kernels/linear.cc" -> "kernels"; empty outside src/ and for files right below it.
std::string_view room_of(std::string_view path);

}  // namespace ingot::tidy
