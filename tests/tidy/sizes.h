#pragma once

#include <string>
#include <vector>

#include "tidy/source_tree.h"

namespace ingot::tidy {

inline constexpr size_t kColumnsMax = 100;
inline constexpr size_t kFileLinesMax = 800;
inline constexpr size_t kHeaderLinesMax = 300;
inline constexpr size_t kFunctionLinesMax = 70;

// A place that may be longer than the limit. `function` is empty for the length of the file. The
// length is exact: whoever shortens the place lowers the number or deletes the line.
struct SizeException {
  std::string path;
  std::string function;
  size_t lines = 0;
  std::string reason;
};

// The list, in exceptions.cc.
std::vector<SizeException> size_exceptions();

// A function with a body at namespace or class scope; `lines` runs from its signature to the
// closing brace. Found from the braces, without a parser: good for code in our format.
struct Function {
  std::string name;
  size_t line = 0;
  size_t lines = 0;
};
std::vector<Function> functions_of(std::string_view text);

// Files, headers and functions over their limits, and exceptions that no longer fit the code.
Findings check_sizes(const std::vector<SourceFile>& files,
                     const std::vector<SizeException>& exceptions);

// Lines of code and scripts over 100 columns, counted in characters; tabs; spaces at the end.
Findings check_columns(const SourceFile& file);

}  // namespace ingot::tidy
