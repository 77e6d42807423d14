#pragma once

#include <string_view>

#include "base/result.h"

namespace ingot::text {

// Whether a regular expression keeps to what Oniguruma (Ruby's syntax) and PCRE2 read alike:
//   characters, escaped punctuation, \r \n \t \f, \x{...}; \s \S \d \D, \p{..} and \P{..} with a
//   general category; classes of these, without classes in them; | ( ) (?: ) (?i: ) (?= ) (?! );
//   ? * + {n} {n,} {n,m} after a character or class, ? after a group; lazy and possessive ? * +.
// In (?i: ) only ASCII, and no letters that a single character folds to (ss, st, ff, fi, fl).
// Anchors, the dot, \b, \w, \h, back references and look-behind are refused: no published
// pre-tokenizer has them, and each means something else in one of the engines or takes time that
// nothing bounds.
// Errors: anything else, by its place. They begin with `source`.
base::Status check_split_syntax(std::string_view pattern, std::string_view source);

}  // namespace ingot::text
