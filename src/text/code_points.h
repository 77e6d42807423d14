#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ingot::text {

// What Python's str asks of Unicode, on UTF-8. A byte that is not UTF-8 counts as a code point of
// its own, so that nothing here fails.

size_t count_code_points(std::string_view text);

// The code point at byte `at`, which moves behind it. REQUIRES: at < text.size().
char32_t next_code_point(std::string_view text, size_t& at);
// The byte where the code point that ends before byte `end` starts. REQUIRES: 0 < end.
size_t previous_start(std::string_view text, size_t end);

// str.isspace, isalpha, isdecimal, isalnum of one code point.
bool is_space(char32_t code_point);
bool is_alphabetic(char32_t code_point);
bool is_decimal(char32_t code_point);
bool is_alphanumeric(char32_t code_point);
// Letters with case: what islower, isupper and title look at.
bool is_lower(char32_t code_point);
bool is_upper(char32_t code_point);
bool is_title(char32_t code_point);
// What Python's repr prints as it is.
bool is_printable(char32_t code_point);

// The full mappings: one code point may become several. The letter at byte `at` of text is given
// with its surroundings, for sigma looks different at the end of a word.
void append_upper(std::string& out, char32_t code_point);
void append_title(std::string& out, char32_t code_point);
void append_lower(std::string& out, std::string_view text, size_t at);

// Bytes of white space at the start and at the end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace ingot::text
