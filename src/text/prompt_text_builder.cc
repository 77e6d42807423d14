#include "text/prompt_text_builder.h"

#include <algorithm>

namespace ingot::text {

void PromptTextBuilder::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!built_.data.empty() && built_.data.back().end == begin) {
    built_.data.back().end = end;
  } else {
    built_.data.push_back({begin, end});
  }
}

void PromptTextBuilder::append(std::string_view text, Origin origin) {
  const size_t begin = built_.text.size();
  built_.text += text;
  if (origin == Origin::kData) mark(begin, built_.text.size());
}

void PromptTextBuilder::append(const PromptText& text, size_t begin, size_t end) {
  const size_t base = built_.text.size();
  built_.text.append(text.text, begin, end - begin);
  auto span = std::partition_point(text.data.begin(), text.data.end(),
                                   [&](const TextSpan& s) { return s.end <= begin; });
  for (; span != text.data.end() && span->begin < end; ++span) {
    mark(base + std::max(span->begin, begin) - begin, base + std::min(span->end, end) - begin);
  }
}

Origin OriginCursor::at(size_t byte) {
  while (span_ < text_.data.size() && text_.data[span_].end <= byte) ++span_;
  const bool inside = span_ < text_.data.size() && text_.data[span_].begin <= byte;
  return inside ? Origin::kData : Origin::kTemplate;
}

PromptText marked_text(std::string text, Origin origin) {
  PromptText marked{.text = std::move(text), .data = {}};
  if (origin == Origin::kData && !marked.text.empty()) marked.data = {{0, marked.text.size()}};
  return marked;
}

PromptText slice_of(const PromptText& text, size_t begin, size_t end) {
  PromptTextBuilder builder;
  builder.append(text, begin, end);
  return builder.take();
}

Origin origin_of(const PromptText& text) {
  return text.data.empty() ? Origin::kTemplate : Origin::kData;
}

}  // namespace ingot::text
