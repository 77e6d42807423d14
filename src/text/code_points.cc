#include "text/code_points.h"

#include <array>

#include <utf8proc.h>

#include "text/utf8.h"

namespace ingot::text {
namespace {

utf8proc_category_t category_of(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

struct Interval {
  char32_t first;
  char32_t last;
};

// Unicode's Other_Lowercase and Other_Uppercase: cased, though by their category no letters.
constexpr Interval kOtherLowercase[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
    {0x2E0, 0x2E4},     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},
    {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
    {0x2090, 0x209C},   {0x2170, 0x217F},   {0x24D0, 0x24E9},   {0x2C7C, 0x2C7D},
    {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
};
constexpr Interval kOtherUppercase[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189},
};

// Letters whose title form is neither one letter nor their case folding with a capital in front.
struct TitleForm {
  char32_t letter;
  std::u32string_view title;
};
constexpr TitleForm kTitleForms[] = {
    {0x149, U"\u02BCN"},
    {0x1FB2, U"\u1FBA\u0345"},
    {0x1FB4, U"\u0386\u0345"},
    {0x1FB7, U"\u0391\u0342\u0345"},
    {0x1FC2, U"\u1FCA\u0345"},
    {0x1FC4, U"\u0389\u0345"},
    {0x1FC7, U"\u0397\u0342\u0345"},
    {0x1FF2, U"\u1FFA\u0345"},
    {0x1FF4, U"\u038F\u0345"},
    {0x1FF7, U"\u03A9\u0342\u0345"},
};

template <size_t kCount>
bool is_in(const Interval (&intervals)[kCount], char32_t code_point) {
  for (const Interval& interval : intervals) {
    if (code_point >= interval.first && code_point <= interval.last) return true;
  }
  return false;
}

char32_t simple_upper(char32_t code_point) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point)));
}

// The case folding of a code point; 1 unless it is a ligature or has accents of its own.
struct Folding {
  std::array<utf8proc_int32_t, 8> code_points{};
  size_t length = 0;
};

Folding folding_of(char32_t code_point) {
  Folding folding;
  int boundary = 0;
  const auto length = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code_point), folding.code_points.data(),
      static_cast<utf8proc_ssize_t>(folding.code_points.size()), UTF8PROC_CASEFOLD, &boundary);
  if (length > 0) folding.length = static_cast<size_t>(length);
  return folding;
}

bool is_cased(char32_t code_point) {
  return is_lower(code_point) || is_upper(code_point) || is_title(code_point);
}

// Marks and signs that do not separate the letters of a word.
bool is_case_ignorable(char32_t code_point) {
  switch (category_of(code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code_point == U'\'' || code_point == U'.' || code_point == U':' ||
             code_point == 0xB7 || code_point == 0x2018 || code_point == 0x2019 ||
             code_point == 0x2024 || code_point == 0x2027 || code_point == 0x0387 ||
             code_point == 0x055F || code_point == 0x05F4 || code_point == 0xFE13 ||
             code_point == 0xFE52 || code_point == 0xFE55 || code_point == 0xFF07 ||
             code_point == 0xFF0E || code_point == 0xFF1A;
  }
}

// Whether the sigma that starts at byte `at` ends a word: a letter before it, none behind it.
bool ends_word(std::string_view text, size_t at) {
  bool letter_before = false;
  for (size_t start = at; start > 0;) {
    start = previous_start(text, start);
    size_t next = start;
    const char32_t code_point = next_code_point(text, next);
    if (is_case_ignorable(code_point)) continue;
    letter_before = is_cased(code_point);
    break;
  }
  if (!letter_before) return false;
  next_code_point(text, at);
  while (at < text.size()) {
    const char32_t code_point = next_code_point(text, at);
    if (!is_case_ignorable(code_point)) return !is_cased(code_point);
  }
  return true;
}

}  // namespace

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  if (*bytes < 0x80) {
    ++at;
    return *bytes;
  }
  utf8proc_int32_t code_point = 0;
  const auto length =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  if (length <= 0) {
    ++at;
    return 0xFFFD;
  }
  at += static_cast<size_t>(length);
  return static_cast<char32_t>(code_point);
}

size_t previous_start(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    size_t at = end - length;
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) continue;
    next_code_point(text, at);
    return at == end ? end - length : end - 1;
  }
  return end - 1;
}

bool is_space(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  return code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

bool is_alphabetic(char32_t code_point) {
  const auto category = category_of(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code_point) { return category_of(code_point) == UTF8PROC_CATEGORY_ND; }

bool is_alphanumeric(char32_t code_point) {
  const auto category = category_of(code_point);
  return is_alphabetic(code_point) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_lower(char32_t code_point) {
  return category_of(code_point) == UTF8PROC_CATEGORY_LL || is_in(kOtherLowercase, code_point);
}

bool is_upper(char32_t code_point) {
  return category_of(code_point) == UTF8PROC_CATEGORY_LU || is_in(kOtherUppercase, code_point);
}

bool is_title(char32_t code_point) { return category_of(code_point) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t code_point) {
  if (code_point == ' ') return true;
  switch (category_of(code_point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

// Letters without a capital of their own are spelled out: where the case folding has several code
// points, their capitals are the full mapping.
void append_upper(std::string& out, char32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point >= 'a' && code_point <= 'z' ? code_point - 32 : code_point);
    return;
  }
  const bool is_capital = category_of(code_point) == UTF8PROC_CATEGORY_LU;
  const Folding folding = is_capital ? Folding{} : folding_of(code_point);
  if (folding.length < 2) return append_utf8(out, simple_upper(code_point));
  for (size_t i = 0; i < folding.length; ++i) {
    append_utf8(out, simple_upper(static_cast<char32_t>(folding.code_points[i])));
  }
}

void append_title(std::string& out, char32_t code_point) {
  if (code_point < 0x80) return append_upper(out, code_point);
  for (const TitleForm& form : kTitleForms) {
    if (form.letter != code_point) continue;
    for (const char32_t c : form.title) append_utf8(out, c);
    return;
  }
  const auto simple =
      static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code_point)));
  const bool is_capital = category_of(code_point) == UTF8PROC_CATEGORY_LU || is_title(code_point);
  const Folding folding = is_capital ? Folding{} : folding_of(code_point);
  if (folding.length < 2 || is_title(simple)) return append_utf8(out, simple);
  append_utf8(out, simple_upper(static_cast<char32_t>(folding.code_points[0])));
  for (size_t i = 1; i < folding.length; ++i) {
    append_utf8(out, static_cast<char32_t>(folding.code_points[i]));
  }
}

void append_lower(std::string& out, std::string_view text, size_t at) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  constexpr char32_t kCapitalDottedI = 0x130;
  size_t next = at;
  const char32_t code_point = next_code_point(text, next);
  if (code_point == kCapitalSigma && ends_word(text, at)) return append_utf8(out, kFinalSigma);
  if (code_point == kCapitalDottedI) {
    out += "i\xCC\x87";
    return;
  }
  append_utf8(out,
              static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
}

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    if (!is_space(next_code_point(text, next))) break;
    at = next;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t start = previous_start(text, end);
    size_t next = start;
    if (!is_space(next_code_point(text, next))) break;
    end = start;
  }
  return text.size() - end;
}

}  // namespace ingot::text
