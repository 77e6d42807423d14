#include "tidy/sizes.h"

#include <algorithm>
#include <array>

namespace ingot::tidy {
namespace {

constexpr auto npos = std::string_view::npos;

std::string without_preprocessor(std::string code) {
  bool in_directive = false;
  size_t begin = 0;
  while (begin < code.size()) {
    const size_t end = std::min(code.find('\n', begin), code.size());
    const size_t first = code.find_first_not_of(" \t", begin);
    in_directive = in_directive || (first < end && code[first] == '#');
    const bool goes_on = end > begin && code[end - 1] == '\\';
    if (in_directive)
      std::fill(code.begin() + static_cast<std::ptrdiff_t>(begin),
                code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    in_directive = in_directive && goes_on;
    begin = end + 1;
  }
  return code;
}

size_t matching_brace(std::string_view code, size_t open) {
  size_t depth = 0;
  for (size_t at = open; at < code.size(); ++at) {
    if (code[at] == '{') ++depth;
    if (code[at] == '}' && --depth == 0) return at;
  }
  return code.size();
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\t");
  if (first == npos) return {};
  return text.substr(first, text.find_last_not_of(" \n\t") - first + 1);
}

std::string_view first_word(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_identifier_char);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

// The declaration without what may stand before it: access labels, template heads.
std::string_view without_prefixes(std::string_view declaration) {
  for (;;) {
    declaration = trimmed(declaration);
    const std::string_view word = first_word(declaration);
    if (word == "public" || word == "protected" || word == "private") {
      declaration.remove_prefix(declaration.find(':') + 1);
    } else if (word == "template") {
      size_t depth = 0;
      size_t at = 0;
      for (; at < declaration.size(); ++at) {
        if (declaration[at] == '<') ++depth;
        if (declaration[at] == '>' && --depth == 0) break;
      }
      declaration.remove_prefix(std::min(at + 1, declaration.size()));
    } else {
      return declaration;
    }
  }
}

enum class Brace { kScope, kInitializer, kBody };

// What a brace opens that follows `declaration` at namespace or class scope.
Brace classify(std::string_view declaration) {
  constexpr std::array<std::string_view, 6> kScopes = {"namespace", "class", "struct",
                                                       "union",     "enum",  "extern"};
  declaration = without_prefixes(declaration);
  const std::string_view word = first_word(declaration);
  if (std::find(kScopes.begin(), kScopes.end(), word) != kScopes.end()) return Brace::kScope;
  const size_t close = declaration.find(')');
  if (close == npos || declaration.back() == '=') return Brace::kInitializer;
  // Foo::Foo(int x) : member_{x}: the brace belongs to the member, the body comes later.
  size_t colon = declaration.find(" : ", close);
  if (colon == npos) colon = declaration.find("\n    : ", close);
  const char last = declaration.back();
  if (colon != npos && (is_identifier_char(last) || last == '>')) return Brace::kInitializer;
  return Brace::kBody;
}

std::string name_of(std::string_view declaration) {
  declaration = without_prefixes(declaration);
  const size_t open = declaration.find('(');
  size_t begin = open;
  while (begin > 0 && is_identifier_char(declaration[begin - 1])) --begin;
  return std::string(declaration.substr(begin, open - begin));
}

std::string place_of(const SizeException& exception) {
  return exception.function.empty() ? "the file" : exception.function;
}

size_t limit_of(const SizeException& exception) {
  if (!exception.function.empty()) return kFunctionLinesMax;
  return is_header(exception.path) ? kHeaderLinesMax : kFileLinesMax;
}

bool is_code(const SourceFile& file) {
  constexpr std::array<std::string_view, 3> kEndings = {".py", ".cmake", "CMakeLists.txt"};
  return is_cpp(file.path) || file.text.starts_with("#!") ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return file.path.ends_with(ending); });
}

// Lines of the place an exception speaks of; 0 when there is none.
size_t actual_lines(const SourceFile& file, const SizeException& exception) {
  if (exception.function.empty()) return lines_of(file.text).size();
  size_t longest = 0;
  for (const Function& function : functions_of(file.text)) {
    if (function.name == exception.function) longest = std::max(longest, function.lines);
  }
  return longest;
}

}  // namespace

std::vector<Function> functions_of(std::string_view text) {
  const std::string code = without_preprocessor(code_of(text));
  std::vector<Function> functions;
  size_t begin = 0;  // of the declaration being read
  size_t parentheses = 0;
  for (size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == '(') ++parentheses;
    if (c == ')' && parentheses > 0) --parentheses;
    if (parentheses > 0) continue;
    if (c == ';' || c == '}') begin = at + 1;
    if (c != '{') continue;
    const std::string_view declaration = trimmed(std::string_view(code).substr(begin, at - begin));
    switch (classify(declaration)) {
      case Brace::kScope:
        begin = at + 1;
        break;
      case Brace::kInitializer:
        at = matching_brace(code, at);
        break;
      case Brace::kBody: {
        const size_t first = line_at(code, code.find_first_not_of(" \n\t", begin));
        at = matching_brace(code, at);
        functions.push_back({name_of(declaration), first, line_at(code, at) - first + 1});
        begin = at + 1;
        break;
      }
    }
  }
  return functions;
}

Findings check_sizes(const std::vector<SourceFile>& files,
                     const std::vector<SizeException>& exceptions) {
  Findings findings;
  const auto excepted = [&](const std::string& path, std::string_view function) {
    return std::any_of(exceptions.begin(), exceptions.end(), [&](const SizeException& exception) {
      return exception.path == path && exception.function == function;
    });
  };
  const auto over = [&](const std::string& path, size_t line, std::string_view what, size_t lines,
                        size_t limit) {
    findings.push_back({path, line,
                        std::string(what) + " has " + std::to_string(lines) +
                            " lines, the limit is " + std::to_string(limit) +
                            "; which noun is missing?"});
  };
  for (const SourceFile& file : files) {
    if (!is_cpp(file.path)) continue;
    const size_t lines = lines_of(file.text).size();
    const size_t limit = is_header(file.path) ? kHeaderLinesMax : kFileLinesMax;
    if (lines > limit && !excepted(file.path, "")) over(file.path, 0, "the file", lines, limit);
    for (const Function& function : functions_of(file.text)) {
      if (function.lines > kFunctionLinesMax && !excepted(file.path, function.name)) {
        over(file.path, function.line, function.name, function.lines, kFunctionLinesMax);
      }
    }
  }
  for (const SizeException& exception : exceptions) {
    const auto file = std::find_if(files.begin(), files.end(), [&](const SourceFile& candidate) {
      return candidate.path == exception.path;
    });
    const size_t lines = file == files.end() ? 0 : actual_lines(*file, exception);
    if (lines > exception.lines) {
      over(exception.path, 0, place_of(exception), lines, exception.lines);
    } else if (lines <= limit_of(exception)) {
      findings.push_back({exception.path, 0, "delete the exception for " + place_of(exception)});
    } else if (lines < exception.lines) {
      findings.push_back(
          {exception.path, 0,
           "lower the exception for " + place_of(exception) + " to " + std::to_string(lines)});
    }
  }
  return findings;
}

Findings check_columns(const SourceFile& file) {
  Findings findings;
  if (!is_code(file)) return findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    const auto columns = static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned>(c) & 0xC0U) != 0x80U;
    }));
    if (columns > kColumnsMax) {
      findings.push_back(
          {file.path, number,
           std::to_string(columns) + " columns, the limit is " + std::to_string(kColumnsMax)});
    }
    if (line.contains('\t')) findings.push_back({file.path, number, "a tab; indent with spaces"});
    if (line.ends_with(' ')) findings.push_back({file.path, number, "a space at the end"});
  }
  return findings;
}

}  // namespace ingot::tidy
