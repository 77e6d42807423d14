#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/template_error.h"

namespace ingot::text {

// Where something stands in a template, both counted from 1, columns in characters.
struct TemplatePosition {
  size_t line = 1;
  size_t column = 1;
};

struct JinjaToken {
  enum class Kind {
    kText,           // between the tags; text is what is left of it after whitespace control
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,   // text is what the literal means
    kInteger,  // text has the digits, without underscores
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  TemplatePosition position;
};

// The tokens of a template, the last being kEnd, in the settings of Hugging Face: trim_blocks,
// lstrip_blocks, one newline at the end dropped, CRLF and CR become LF. Comments are gone and raw
// blocks are text. Errors: not UTF-8, an open tag or string, an escape or character that we lack.
TemplateResult<std::vector<JinjaToken>> lex_jinja(std::string_view source);

// What stands between the lexer and the parser in errors: kSyntax at a place in the source.
std::unexpected<TemplateError> syntax_error(TemplatePosition position, std::string_view what);

}  // namespace ingot::text
