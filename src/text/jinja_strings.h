#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/jinja_runtime.h"
#include "text/prompt_text.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// What Python's str methods do, for methods and filters alike. Every byte of a result keeps who
// wrote it; a letter that changes its case is as much data as it was.

PromptText upper_of(const PromptText& text);
PromptText lower_of(const PromptText& text);
PromptText capitalized(const PromptText& text);
PromptText title_of(const PromptText& text);      // str.title()
PromptText titled_words(const PromptText& text);  // the filter title

enum class Side { kStart, kEnd, kBoth };
// str.strip, lstrip, rstrip; white space without chars.
PromptText stripped(const PromptText& text, const PromptText* chars, Side side);

// str.replace; all of them when count is negative.
TemplateResult<PromptText> replaced(JinjaRuntime& runtime, const PromptText& text,
                                    const PromptText& old, const PromptText& by, int64_t count);

// str.split and rsplit; at white space without a separator. No limit when max_splits is negative.
TemplateResult<TemplateList> split(JinjaRuntime& runtime, const PromptText& text,
                                   const PromptText* separator, int64_t max_splits);
TemplateResult<TemplateList> split_from_end(JinjaRuntime& runtime, const PromptText& text,
                                            const PromptText* separator, int64_t max_splits);

// str.splitlines.
TemplateResult<TemplateList> split_lines(JinjaRuntime& runtime, const PromptText& text,
                                         bool keeps_ends);

// separator.join(items): str() of each item when they may be of any type, else an error for those
// that are no strings.
enum class JoinedItems { kOnlyStrings, kAny };
TemplateResult<PromptText> joined(JinjaRuntime& runtime, const PromptText& separator,
                                  const TemplateValue& items, JoinedItems which);

// str.center, ljust and rjust in one: kBoth, kEnd and kStart say where the padding goes.
TemplateResult<PromptText> padded(JinjaRuntime& runtime, const PromptText& text, int64_t width,
                                  const PromptText& fill, Side side);

bool is_lower_text(const PromptText& text);
bool is_upper_text(const PromptText& text);

}  // namespace ingot::text
