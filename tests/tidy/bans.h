#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tidy/source_tree.h"

namespace ingot::tidy {

// What a ban looks at: code without comments and literals, or every character of the file.
enum class Where { kCode, kEverywhere };

// Whether the code of tests is free to use it.
enum class Tests { kBannedToo, kFree };

struct Ban {
  std::string_view banned;
  std::string_view instead;
  std::vector<std::string_view> allowed_in;  // beginnings of paths
  Tests tests = Tests::kBannedToo;
  Where where = Where::kCode;
};

const std::vector<Ban>& bans();

// Uses of `banned` as a word of its own, in C++ files.
Findings check_ban(const SourceFile& file, const Ban& ban);

// Using-directives at file or namespace scope, but for those that bring suffixes of literals.
Findings check_using_directives(const SourceFile& file);

}  // namespace ingot::tidy
