#include "text/jinja_strings.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/prompt_text_builder.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
constexpr auto npos = std::string::npos;

// write(out, code point, byte where it starts) appends what becomes of each code point.
template <typename Write>
PromptText mapped(const PromptText& text, const Write& write) {
  PromptTextBuilder out;
  OriginCursor origins(text);
  for (size_t at = 0; at < text.text.size();) {
    const size_t begin = at;
    std::string written;
    write(written, next_code_point(text.text, at), begin);
    out.append(written, origins.at(begin));
  }
  return out.take();
}

bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

TemplateResult<void> add_piece(JinjaRuntime& runtime, TemplateList& pieces, const PromptText& text,
                               size_t begin, size_t end) {
  TRY(runtime.spend_bytes(sizeof(TemplateValue) + sizeof(PromptText) + 64 + end - begin));
  pieces.push_back(TemplateValue::text(slice_of(text, begin, end)));
  return {};
}

// The first byte at or after `at` that is white space, or that is not.
size_t find_space(std::string_view text, size_t at, bool wanted) {
  while (at < text.size()) {
    size_t next = at;
    if (is_space(next_code_point(text, next)) == wanted) break;
    at = next;
  }
  return at;
}

TemplateResult<TemplateList> split_at_space(JinjaRuntime& runtime, const PromptText& text,
                                            int64_t max_splits) {
  TemplateList pieces;
  size_t at = find_space(text.text, 0, false);
  while (at < text.text.size()) {
    if (max_splits >= 0 && std::ssize(pieces) == max_splits) {
      // The rest keeps the white space at its end.
      TRY(add_piece(runtime, pieces, text, at, text.text.size()));
      break;
    }
    const size_t end = find_space(text.text, at, true);
    TRY(add_piece(runtime, pieces, text, at, end));
    at = find_space(text.text, end, false);
  }
  return pieces;
}

TemplateResult<TemplateList> split_at_space_from_end(JinjaRuntime& runtime, const PromptText& text,
                                                     int64_t max_splits) {
  TemplateList pieces;
  std::string_view rest = text.text;
  while (true) {
    rest.remove_suffix(trailing_space(rest));
    if (rest.empty()) break;
    size_t begin = rest.size();
    const bool takes_all = max_splits >= 0 && std::ssize(pieces) == max_splits;
    while (begin > 0) {
      const size_t start = previous_start(rest, begin);
      size_t next = start;
      if (!takes_all && is_space(next_code_point(rest, next))) break;
      begin = start;
    }
    TRY(add_piece(runtime, pieces, text, begin, rest.size()));
    rest = rest.substr(0, begin);
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

// Bytes at one end that consist of these characters, or without any of white space.
size_t strip_length(std::string_view text, const PromptText* chars, Side side) {
  if (chars == nullptr) {
    return side == Side::kStart ? leading_space(text) : trailing_space(text);
  }
  std::vector<char32_t> set;
  for (size_t at = 0; at < chars->text.size();) set.push_back(next_code_point(chars->text, at));
  const auto strips = [&](char32_t c) { return std::find(set.begin(), set.end(), c) != set.end(); };
  size_t begin = 0;
  size_t end = text.size();
  while (begin < end) {
    const size_t start = side == Side::kStart ? begin : previous_start(text, end);
    size_t next = start;
    if (!strips(next_code_point(text, next))) break;
    (side == Side::kStart ? begin : end) = side == Side::kStart ? next : start;
  }
  return begin + text.size() - end;
}

template <typename IsWanted, typename IsOther>
bool all_cased(const PromptText& text, const IsWanted& is_wanted, const IsOther& is_other) {
  bool found = false;
  for (size_t at = 0; at < text.text.size();) {
    const char32_t c = next_code_point(text.text, at);
    if (is_other(c) || is_title(c)) return false;
    found = found || is_wanted(c);
  }
  return found;
}

}  // namespace

PromptText upper_of(const PromptText& text) {
  return mapped(text, [](std::string& out, char32_t c, size_t) { append_upper(out, c); });
}

PromptText lower_of(const PromptText& text) {
  return mapped(text,
                [&](std::string& out, char32_t, size_t at) { append_lower(out, text.text, at); });
}

PromptText capitalized(const PromptText& text) {
  return mapped(text, [&](std::string& out, char32_t c, size_t at) {
    if (at == 0) return append_title(out, c);
    append_lower(out, text.text, at);
  });
}

PromptText title_of(const PromptText& text) {
  bool in_word = false;
  return mapped(text, [&](std::string& out, char32_t c, size_t at) {
    if (in_word) {
      append_lower(out, text.text, at);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  });
}

// Words begin after white space, hyphens and opening brackets. Python lowers the rest of each word
// by itself, so that sigma ends where the word does.
PromptText titled_words(const PromptText& text) {
  const auto parts_words = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  bool starts_word = true;
  size_t rest_begin = 0;
  size_t rest_end = 0;
  return mapped(text, [&](std::string& out, char32_t c, size_t at) {
    const bool was_start = std::exchange(starts_word, parts_words(c));
    if (starts_word) return append_utf8(out, c);
    if (was_start) {
      rest_begin = at;
      next_code_point(text.text, rest_begin);
      rest_end = rest_begin;
      for (size_t next = rest_end; next < text.text.size(); rest_end = next) {
        if (parts_words(next_code_point(text.text, next))) break;
      }
      return append_upper(out, c);
    }
    const std::string_view rest(text.text.data() + rest_begin, rest_end - rest_begin);
    append_lower(out, rest, at - rest_begin);
  });
}

PromptText stripped(const PromptText& text, const PromptText* chars, Side side) {
  const size_t begin = side == Side::kEnd ? 0 : strip_length(text.text, chars, Side::kStart);
  size_t end = text.text.size();
  if (side != Side::kStart) {
    end -= strip_length(std::string_view(text.text).substr(begin), chars, Side::kEnd);
  }
  return slice_of(text, begin, end);
}

TemplateResult<PromptText> replaced(JinjaRuntime& runtime, const PromptText& text,
                                    const PromptText& old, const PromptText& by, int64_t count) {
  std::vector<size_t> places;
  const auto is_full = [&] { return count >= 0 && std::ssize(places) >= count; };
  if (old.text.empty()) {
    for (size_t at = 0; !is_full(); next_code_point(text.text, at)) {
      places.push_back(at);
      if (at == text.text.size()) break;
    }
  } else {
    for (size_t at = text.text.find(old.text); at != npos && !is_full();
         at = text.text.find(old.text, at + old.text.size())) {
      places.push_back(at);
    }
  }
  TRY(runtime.spend_steps(text.text.size() / 64 + places.size()));
  TRY(runtime.spend_text(text.text.size() + places.size() * by.text.size()));
  PromptTextBuilder out;
  size_t kept = 0;
  for (const size_t place : places) {
    out.append(text, kept, place);
    out.append(by);
    kept = place + old.text.size();
  }
  out.append(text, kept, text.text.size());
  return out.take();
}

TemplateResult<TemplateList> split(JinjaRuntime& runtime, const PromptText& text,
                                   const PromptText* separator, int64_t max_splits) {
  TRY(runtime.spend_steps(text.text.size() / 64));
  if (separator == nullptr) return split_at_space(runtime, text, max_splits);
  if (separator->text.empty()) return fail(ErrorKind::kValue, "empty separator");
  TemplateList pieces;
  size_t begin = 0;
  for (size_t at = text.text.find(separator->text);
       at != npos && (max_splits < 0 || std::ssize(pieces) < max_splits);
       at = text.text.find(separator->text, begin)) {
    TRY(add_piece(runtime, pieces, text, begin, at));
    begin = at + separator->text.size();
  }
  TRY(add_piece(runtime, pieces, text, begin, text.text.size()));
  return pieces;
}

TemplateResult<TemplateList> split_from_end(JinjaRuntime& runtime, const PromptText& text,
                                            const PromptText* separator, int64_t max_splits) {
  TRY(runtime.spend_steps(text.text.size() / 64));
  if (separator == nullptr) return split_at_space_from_end(runtime, text, max_splits);
  if (separator->text.empty()) return fail(ErrorKind::kValue, "empty separator");
  TemplateList pieces;
  size_t end = text.text.size();
  while (max_splits < 0 || std::ssize(pieces) < max_splits) {
    if (end < separator->text.size()) break;
    const size_t at = text.text.rfind(separator->text, end - separator->text.size());
    if (at == npos) break;
    TRY(add_piece(runtime, pieces, text, at + separator->text.size(), end));
    end = at;
  }
  TRY(add_piece(runtime, pieces, text, 0, end));
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

TemplateResult<TemplateList> split_lines(JinjaRuntime& runtime, const PromptText& text,
                                         bool keeps_ends) {
  TRY(runtime.spend_steps(text.text.size() / 64));
  TemplateList lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.text.size();) {
    const size_t end = at;
    const char32_t c = next_code_point(text.text, at);
    if (!ends_line(c)) continue;
    if (c == '\r' && at < text.text.size() && text.text[at] == '\n') ++at;
    TRY(add_piece(runtime, lines, text, begin, keeps_ends ? at : end));
    begin = at;
  }
  if (begin < text.text.size()) {
    TRY(add_piece(runtime, lines, text, begin, text.text.size()));
  }
  return lines;
}

TemplateResult<PromptText> joined(JinjaRuntime& runtime, const PromptText& separator,
                                  const TemplateValue& items, JoinedItems which) {
  PromptTextBuilder out;
  JinjaIterator* iterator = TRY(iterate(runtime, items));
  bool is_first = true;
  while (const auto item = TRY(next_item(runtime, *iterator))) {
    if (which == JoinedItems::kOnlyStrings && item->as_text() == nullptr) {
      return fail(ErrorKind::kType, "join() takes strings, not {}", type_name(*item));
    }
    if (!is_first) {
      TRY(runtime.spend_bytes(separator.text.size()));
      out.append(separator);
    }
    is_first = false;
    TRY(append_text(runtime, out, *item));
  }
  if (out.size_bytes() > RenderLimits::kTextBytesMax) TRY(runtime.spend_text(out.size_bytes()));
  return out.take();
}

TemplateResult<PromptText> padded(JinjaRuntime& runtime, const PromptText& text, int64_t width,
                                  const PromptText& fill, Side side) {
  if (count_code_points(fill.text) != 1) {
    return fail(ErrorKind::kType, "the fill character must be exactly one character long");
  }
  const auto length = static_cast<int64_t>(count_code_points(text.text));
  const int64_t padding = std::max<int64_t>(width - length, 0);
  const auto bytes = static_cast<uint64_t>(std::min<int64_t>(padding, int64_t{1} << 40));
  TRY(runtime.spend_text(text.text.size() + bytes * fill.text.size()));
  int64_t before = side == Side::kStart ? padding : 0;
  if (side == Side::kBoth) before = padding / 2 + (padding & width & 1);
  PromptTextBuilder out;
  for (int64_t i = 0; i < before; ++i) out.append(fill);
  out.append(text);
  for (int64_t i = before; i < padding; ++i) out.append(fill);
  return out.take();
}

bool is_lower_text(const PromptText& text) { return all_cased(text, is_lower, is_upper); }
bool is_upper_text(const PromptText& text) { return all_cased(text, is_upper, is_lower); }

}  // namespace ingot::text
