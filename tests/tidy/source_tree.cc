#include "tidy/source_tree.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

namespace ingot::tidy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTextBytesMax = 1 << 20;

bool is_skipped_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name == "build" || name == "__pycache__" || (name.starts_with('.') && name != ".ci");
}

// Position just behind a literal whose opening quote is at `quote`.
size_t end_of_literal(std::string_view text, size_t quote) {
  for (size_t at = quote + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == text[quote] || text[at] == '\n') {
      return at + 1;
    }
  }
  return text.size();
}

// The same for R"delimiter( ... )delimiter" with its opening quote at `quote`.
size_t end_of_raw_string(std::string_view text, size_t quote) {
  const size_t open = text.find('(', quote);
  if (open == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(quote + 1, open - quote - 1)) + "\"";
  const size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

void blank(std::string& text, size_t begin, size_t end) {
  for (size_t at = begin; at < std::min(end, text.size()); ++at) {
    if (text[at] != '\n') text[at] = ' ';
  }
}

}  // namespace

std::string to_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.path + ":" + std::to_string(finding.line) + ": " + finding.message + "\n";
  }
  return text;
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    if (it->is_directory() && is_skipped_folder(it->path())) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file() || it->file_size() > kTextBytesMax) continue;
    std::ifstream stream(it->path(), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(stream), {});
    if (text.contains('\0')) continue;
    files.push_back({fs::relative(it->path(), root).generic_string(), std::move(text)});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

size_t line_at(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, position);
  return 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
}

std::string code_of(std::string_view text) {
  std::string code(text);
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const bool after_identifier = at > 0 && is_identifier_char(text[at - 1]);
    size_t end = at + 1;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', at), text.size());
      blank(code, at, end);
    } else if (rest.starts_with("/*")) {
      const size_t close = text.find("*/", at + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(code, at, end);
    } else if (rest.starts_with("\"")) {
      const bool raw = after_identifier && text[at - 1] == 'R';
      end = raw ? end_of_raw_string(text, at) : end_of_literal(text, at);
      blank(code, at + 1, end - 1);
    } else if (rest.starts_with("'") && !after_identifier) {  // not the mark in 1'000
      end = end_of_literal(text, at);
      blank(code, at + 1, end - 1);
    }
    at = end;
  }
  return code;
}

size_t find_word(std::string_view text, std::string_view word, size_t from) {
  for (size_t at = text.find(word, from); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool joined_left =
        is_identifier_char(word.front()) && at > 0 && is_identifier_char(text[at - 1]);
    const bool joined_right =
        is_identifier_char(word.back()) && end < text.size() && is_identifier_char(text[end]);
    if (!joined_left && !joined_right) return at;
  }
  return std::string_view::npos;
}

bool is_identifier_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_header(std::string_view path) { return path.ends_with(".h"); }

bool is_cpp(std::string_view path) { return is_header(path) || path.ends_with(".cc"); }

bool is_test_code(std::string_view path) {
  return path.starts_with("tests/") || path.ends_with("_test.cc");
}

std::string_view room_of(std::string_view path) {
  constexpr std::string_view kSource = "src/";
  if (!path.starts_with(kSource)) return {};
  path.remove_prefix(kSource.size());
  const size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

}  // namespace ingot::tidy
