#include "tidy/names.h"

#include <algorithm>
#include <array>

namespace ingot::tidy {
namespace {

constexpr auto npos = std::string_view::npos;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view stem(std::string_view path) {
  const std::string_view name = base_name(path);
  return name.substr(0, name.find('.'));
}

bool is_benchmark(std::string_view path) { return path.ends_with("_benchmark.cc"); }

template <size_t kCount>
bool contains(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Findings check_file_name(const SourceFile& file) {
  constexpr std::array<std::string_view, 8> kSayNothing = {"util",    "utils", "common",  "helper",
                                                           "helpers", "misc",  "manager", "impl"};
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const std::string_view name = stem(file.path);
  const bool snake_case = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!snake_case) findings.push_back({file.path, 0, "file names are snake_case"});
  const std::string_view last_word = name.substr(name.rfind('_') + 1);
  if (contains(kSayNothing, last_word)) {
    findings.push_back({file.path, 0, "name the concept, not '" + std::string(last_word) + "'"});
  }
  return findings;
}

Findings check_type_names(const SourceFile& file) {
  constexpr std::array<std::string_view, 5> kSayNothing = {"Manager", "Helper", "Helpers", "Util",
                                                           "Utils"};
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const std::string code = code_of(file.text);
  for (const std::string_view keyword : {"class ", "struct "}) {
    for (size_t at = find_word(code, keyword); at != npos; at = find_word(code, keyword, at + 1)) {
      const size_t begin = at + keyword.size();
      size_t end = begin;
      while (end < code.size() && is_identifier_char(code[end])) ++end;
      const std::string_view name = std::string_view(code).substr(begin, end - begin);
      for (const std::string_view ending : kSayNothing) {
        if (name.ends_with(ending)) {
          findings.push_back({file.path, line_at(code, at),
                              "name the concept: what is a " + std::string(name) + "?"});
        }
      }
    }
  }
  return findings;
}

Findings check_pragma_once(const SourceFile& file) {
  if (!is_header(file.path) || file.text.contains("#pragma once\n")) return {};
  return {{file.path, 1, "#pragma once is missing"}};
}

Findings check_namespace(const SourceFile& file) {
  const std::string_view room = room_of(file.path);
  if (room.empty() || !is_cpp(file.path) || base_name(file.path) == "main.cc") return {};
  const std::string expected = "namespace ingot::" + std::string(room);
  if (find_word(code_of(file.text), expected) != npos) return {};
  return {{file.path, 0, expected + " is missing"}};
}

Findings check_header_pair(const SourceFile& file, const std::set<std::string>& paths) {
  const std::string_view room = room_of(file.path);
  const bool has_none = is_test_code(file.path) || is_benchmark(file.path) || room == "cli";
  if (room.empty() || !file.path.ends_with(".cc") || has_none) return {};
  const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
  for (std::string_view name = stem(file.path);; name = name.substr(0, name.rfind('_'))) {
    if (paths.contains(folder + std::string(name) + ".h")) return {};
    if (name.rfind('_') == npos) break;
  }
  return {{file.path, 0, "its header " + std::string(stem(file.path)) + ".h is missing"}};
}

}  // namespace ingot::tidy
