#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "text/prompt_text.h"

namespace ingot::text {

enum class Origin : bool { kTemplate, kData };

// Puts a PromptText together, piece by piece, keeping its spans in order.
class PromptTextBuilder {
 public:
  void append(std::string_view text, Origin origin);
  void append(const PromptText& text) { append(text, 0, text.text.size()); }
  // Bytes [begin, end) of text. REQUIRES: begin <= end <= its size.
  void append(const PromptText& text, size_t begin, size_t end);

  size_t size_bytes() const { return built_.text.size(); }
  size_t num_spans() const { return built_.data.size(); }
  PromptText take() { return std::exchange(built_, {}); }

 private:
  void mark(size_t begin, size_t end);

  PromptText built_;
};

// Who wrote the bytes of a text, asked in ascending order.
class OriginCursor {
 public:
  explicit OriginCursor(const PromptText& text) : text_(text) {}

  // REQUIRES: byte is not below that of the call before.
  Origin at(size_t byte);

 private:
  const PromptText& text_;
  size_t span_ = 0;
};

PromptText marked_text(std::string text, Origin origin);
PromptText slice_of(const PromptText& text, size_t begin, size_t end);

// kData when any byte is data.
Origin origin_of(const PromptText& text);
inline Origin either(Origin a, Origin b) {
  return a == Origin::kData || b == Origin::kData ? Origin::kData : Origin::kTemplate;
}

}  // namespace ingot::text
