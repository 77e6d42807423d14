#include "text/jinja_runtime.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Item = std::optional<TemplateValue>;

// What an object of the arena costs, its share of maps and lists included.
constexpr uint64_t kObjectBytes = 256;
// What an item costs, which may be a text of its own.
constexpr uint64_t kItemBytes = sizeof(TemplateValue) + 128;

TemplateValue item_of(const TemplateValue::View& view, size_t index) {
  const TemplateDict::Entry& entry = view.dict->entries()[index];
  switch (view.part) {
    case TemplateValue::View::Part::kKeys:
      return entry.key;
    case TemplateValue::View::Part::kValues:
      return entry.value;
    default:
      return TemplateValue::tuple({entry.key, entry.value});
  }
}

// Items by number, for iterators over what is all there.
template <typename ItemAt>
JinjaIterator::Next counting(size_t length, ItemAt item_at) {
  return [length, item_at = std::move(item_at),
          index = size_t{0}](JinjaRuntime&) mutable -> TemplateResult<Item> {
    if (index == length) return Item{};
    return Item{item_at(index++)};
  };
}

JinjaIterator::Next code_points_of(TemplateValue::Text text) {
  return [text = std::move(text), at = size_t{0}](JinjaRuntime&) mutable -> TemplateResult<Item> {
    if (at == text->text.size()) return Item{};
    const size_t begin = at;
    next_code_point(text->text, at);
    return Item{TemplateValue::text(slice_of(*text, begin, at))};
  };
}

// Null when the value is not one of those that are all there.
JinjaIterator::Next items_of(const TemplateValue& value) {
  if (const TemplateList* items = value.as_sequence()) {
    return counting(items->size(), [value, items](size_t index) { return (*items)[index]; });
  }
  if (const auto* text = value.get_if<TemplateValue::Text>()) return code_points_of(*text);
  if (const TemplateDict* dict = value.as_dict()) {
    return counting(dict->size(),
                    [value, dict](size_t index) { return dict->entries()[index].key; });
  }
  if (const auto* view = value.get_if<TemplateValue::View>()) {
    return counting(view->dict->size(),
                    [view = *view](size_t index) { return item_of(view, index); });
  }
  if (const auto* range = value.get_if<TemplateValue::Range>()) {
    return counting(static_cast<size_t>(range->length), [range = *range](size_t index) {
      return TemplateValue::integer(range.start + static_cast<int64_t>(index) * range.step);
    });
  }
  if (value.is_undefined()) return counting(0, [](size_t) { return TemplateValue(); });
  return nullptr;
}

}  // namespace

TemplateResult<void> JinjaRuntime::spend_steps(uint64_t steps) {
  steps_ += steps;
  if (steps_ <= budget_.steps) return {};
  return fail(ErrorKind::kLimit, "the template took more than {} steps", budget_.steps);
}

TemplateResult<void> JinjaRuntime::spend_bytes(uint64_t bytes) {
  bytes_ += std::min(bytes, budget_.list_bytes + 1);
  if (bytes_ <= budget_.list_bytes) return {};
  return fail(ErrorKind::kLimit, "the template made more than {} MiB of lists",
              budget_.list_bytes >> 20);
}

TemplateResult<void> JinjaRuntime::spend_text(uint64_t bytes) {
  if (bytes > RenderLimits::kTextBytesMax) {
    return fail(ErrorKind::kLimit, "the template made a text of more than {} MiB",
                RenderLimits::kTextBytesMax >> 20);
  }
  text_bytes_ += bytes;
  if (text_bytes_ <= budget_.text_bytes) return {};
  return fail(ErrorKind::kLimit, "the template made more than {} MiB of texts",
              budget_.text_bytes >> 20);
}

TemplateResult<void> JinjaRuntime::Level::check() const {
  if (runtime_.depth_ <= RenderLimits::kDepthMax) return {};
  return fail(ErrorKind::kLimit, "expressions and macros go more than {} levels deep",
              RenderLimits::kDepthMax);
}

template <typename T>
TemplateResult<T*> JinjaRuntime::keep(std::deque<T>& objects, T object) {
  TRY(spend_bytes(kObjectBytes));
  objects.push_back(std::move(object));
  return &objects.back();
}

TemplateResult<JinjaScope*> JinjaRuntime::new_scope(JinjaScope* parent) {
  return keep(scopes_, JinjaScope{.parent = parent, .variables = {}});
}

TemplateResult<JinjaIterator*> JinjaRuntime::new_iterator(JinjaIterator::Next next) {
  return keep(iterators_, JinjaIterator{std::move(next)});
}

TemplateResult<JinjaNamespace*> JinjaRuntime::new_namespace() {
  return keep(namespaces_, JinjaNamespace{});
}

TemplateResult<JinjaMacro*> JinjaRuntime::new_macro(const JinjaStatement& statement,
                                                    JinjaScope* scope) {
  return keep(macros_, JinjaMacro{&statement, scope});
}

TemplateResult<JinjaLoop*> JinjaRuntime::new_loop() { return keep(loops_, JinjaLoop{}); }

TemplateResult<Item> next_item(JinjaRuntime& runtime, JinjaIterator& iterator) {
  const JinjaRuntime::Level level(runtime);
  TRY(level.check());
  TRY(runtime.spend_steps(1));
  return iterator.next(runtime);
}

TemplateResult<JinjaIterator*> iterate(JinjaRuntime& runtime, const TemplateValue& value) {
  if (JinjaIterator* const* iterator = value.get_if<JinjaIterator*>()) return *iterator;
  JinjaIterator::Next items = items_of(value);
  if (items == nullptr) {
    return fail(value.is<TemplateValue::Markup>() ? ErrorKind::kUnsupported : ErrorKind::kType,
                "'{}' object is not iterable", type_name(value));
  }
  return runtime.new_iterator(std::move(items));
}

TemplateResult<TemplateList> collect(JinjaRuntime& runtime, const TemplateValue& value) {
  JinjaIterator* iterator = TRY(iterate(runtime, value));
  TemplateList items;
  while (Item item = TRY(next_item(runtime, *iterator))) {
    TRY(runtime.spend_bytes(kItemBytes));
    items.push_back(std::move(*item));
  }
  return items;
}

TemplateResult<TemplateList> collect_reversed(JinjaRuntime& runtime, const TemplateValue& value) {
  if (value.is<JinjaIterator*>() || !length_of(value)) {
    return fail(ErrorKind::kType, "'{}' object is not reversible", type_name(value));
  }
  TemplateList items = TRY(collect(runtime, value));
  std::reverse(items.begin(), items.end());
  return items;
}

std::optional<int64_t> length_of(const TemplateValue& value) {
  const auto size = [](size_t length) { return static_cast<int64_t>(length); };
  if (const TemplateList* items = value.as_sequence()) return size(items->size());
  if (const PromptText* text = value.as_text()) return size(count_code_points(text->text));
  if (const TemplateDict* dict = value.as_dict()) return size(dict->size());
  if (const auto* view = value.get_if<TemplateValue::View>()) return size(view->dict->size());
  if (const auto* range = value.get_if<TemplateValue::Range>()) return range->length;
  if (value.is_undefined()) return 0;
  return std::nullopt;
}

TemplateResult<bool> has_following(JinjaRuntime& runtime, JinjaLoop& loop) {
  if (loop.following) return true;
  if (!loop.is_at_end) {
    loop.following = TRY(next_item(runtime, *loop.items));
    loop.is_at_end = !loop.following.has_value();
  }
  return loop.following.has_value();
}

TemplateResult<int64_t> loop_length(JinjaRuntime& runtime, JinjaLoop& loop) {
  if (loop.length) return *loop.length;
  TemplateList rest;
  while (Item item = TRY(next_item(runtime, *loop.items))) {
    TRY(runtime.spend_bytes(kItemBytes));
    rest.push_back(std::move(*item));
  }
  loop.length = loop.index + (loop.following ? 1 : 0) + std::ssize(rest);
  loop.items = TRY(iterate(runtime, TemplateValue::list(std::move(rest))));
  return *loop.length;
}

}  // namespace ingot::text
