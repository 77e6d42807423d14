// Attributes, items and slices.

#include <algorithm>
#include <array>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

// Attributes that every object of Python's has and that no template may look at.
bool is_attribute_of_all(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "__class__", "__dir__",  "__doc__",           "__eq__",     "__format__", "__getattribute__",
      "__hash__",  "__init__", "__init_subclass__", "__reduce__", "__repr__",   "__str__"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Value no_attribute(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(value), name));
}

Value unsafe_attribute(const Value& value, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(value)),
      ErrorKind::kSecurity);
}

TemplateResult<std::optional<Value>> loop_attribute(JinjaRuntime& runtime, JinjaLoop& loop,
                                                    std::string_view name) {
  const auto number = [](int64_t value) { return std::optional(Value::integer(value)); };
  if (name == "index") return number(loop.index);
  if (name == "index0") return number(loop.index - 1);
  if (name == "first") return std::optional(Value::boolean(loop.index == 1));
  if (name == "last") {
    return std::optional(Value::boolean(!TRY(has_following(runtime, loop))));
  }
  if (name == "length") return number(TRY(loop_length(runtime, loop)));
  if (name == "revindex") return number(TRY(loop_length(runtime, loop)) - loop.index + 1);
  if (name == "revindex0") return number(TRY(loop_length(runtime, loop)) - loop.index);
  if (name == "depth") return number(static_cast<int64_t>(loop.depth));
  if (name == "depth0") return number(static_cast<int64_t>(loop.depth) - 1);
  if (name == "previtem") {
    return std::optional(loop.index == 1 ? Value::undefined("there is no previous item")
                                         : loop.previous);
  }
  if (name == "nextitem") {
    if (!TRY(has_following(runtime, loop))) {
      return std::optional(Value::undefined("there is no next item"));
    }
    return std::optional(*loop.following);
  }
  return std::optional<Value>{};
}

// What getattr() of Python's finds; nothing when it finds nothing.
TemplateResult<std::optional<Value>> own_attribute(JinjaRuntime& runtime, const Value& value,
                                                   std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) {
    if (is_attribute_of_all(name)) return std::optional(unsafe_attribute(value, name));
    return fail(ErrorKind::kSecurity, "attribute '{}' is unsafe", name);
  }
  if (JinjaNamespace* const* space = value.get_if<JinjaNamespace*>()) {
    const Value* attribute = (*space)->attributes.find(name);
    return attribute != nullptr ? std::optional(*attribute) : std::nullopt;
  }
  if (JinjaLoop* const* loop = value.get_if<JinjaLoop*>()) {
    auto attribute = TRY(loop_attribute(runtime, **loop, name));
    if (attribute) return attribute;
  }
  const JinjaMethod* method = find_jinja_method(value, name);
  if (method != nullptr) {
    if (method->is_forbidden) return std::optional(unsafe_attribute(value, name));
    if (method->function == nullptr) {
      return fail(ErrorKind::kUnsupported, "method '{}' of '{}'", name, type_name(value));
    }
    return std::optional(
        Value::of(Value::BoundMethod{std::make_shared<const Value>(value), method}));
  }
  if (value.is<JinjaMacro*>()) {
    return fail(ErrorKind::kUnsupported, "attribute '{}' of a macro", name);
  }
  return std::optional<Value>{};
}

// Where an index of a sequence points, counting from the end when negative; nothing: nowhere.
std::optional<size_t> place_of(int64_t index, int64_t length) {
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

Value code_point_at(const PromptText& text, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index; ++i) next_code_point(text.text, at);
  const size_t begin = at;
  next_code_point(text.text, at);
  return Value::text(slice_of(text, begin, at));
}

// value[index] of a sequence; nothing when there is no such item.
TemplateResult<std::optional<Value>> item_at(JinjaRuntime& runtime, const Value& value,
                                             int64_t index) {
  if (const PromptText* text = value.as_text()) {
    TRY(runtime.spend_steps(text->text.size() / 64));
  }
  const auto place = place_of(index, length_of(value).value_or(0));
  if (!place) return std::optional<Value>{};
  if (const TemplateList* items = value.as_sequence()) return std::optional((*items)[*place]);
  if (const auto* text = value.get_if<Value::Text>()) {
    return std::optional(code_point_at(**text, *place));
  }
  if (const auto* range = value.get_if<Value::Range>()) {
    return std::optional(Value::integer(range->start + static_cast<int64_t>(*place) * range->step));
  }
  return std::optional<Value>{};
}

// A slice as Python counts it out, within the length of what it is of.
struct Slice {
  int64_t start = 0;
  int64_t step = 1;
  int64_t length = 0;
};

TemplateResult<std::optional<int64_t>> slice_part(const Value& part) {
  if (part.is_none()) return std::optional<int64_t>{};
  const auto integer = as_integer(part);
  if (!integer) {
    return fail(ErrorKind::kType, "slice indices must be integers or None, not {}",
                type_name(part));
  }
  return integer;
}

TemplateResult<Slice> slice_of_length(int64_t length, std::span<const Value, 3> parts) {
  Slice slice;
  slice.step = TRY(slice_part(parts[2]))
  .value_or(1);
  if (slice.step == 0) return fail(ErrorKind::kValue, "slice step cannot be zero");
  slice.step = std::clamp<int64_t>(slice.step, -length - 1, length + 1);
  const bool is_backward = slice.step < 0;
  const int64_t lowest = is_backward ? -1 : 0;
  const int64_t highest = is_backward ? length - 1 : length;
  const auto place = [&](std::optional<int64_t> index, int64_t otherwise) {
    if (!index) return otherwise;
    if (*index < 0) return std::max(*index + length, lowest);
    return std::min(*index, highest);
  };
  slice.start = place(TRY(slice_part(parts[0])), is_backward ? highest : lowest);
  const int64_t stop = place(TRY(slice_part(parts[1])), is_backward ? lowest : highest);
  const int64_t distance = is_backward ? slice.start - stop : stop - slice.start;
  const int64_t stride = is_backward ? -slice.step : slice.step;
  if (distance > 0) slice.length = (distance - 1) / stride + 1;
  return slice;
}

Result slice_text(JinjaRuntime& runtime, const PromptText& text, const Slice& slice) {
  std::vector<size_t> starts;
  TRY(runtime.spend_bytes(text.text.size() * sizeof(size_t)));
  for (size_t at = 0; at < text.text.size(); next_code_point(text.text, at)) starts.push_back(at);
  starts.push_back(text.text.size());
  PromptTextBuilder out;
  if (slice.step == 1) {
    const auto begin = static_cast<size_t>(slice.start);
    const size_t end = begin + static_cast<size_t>(slice.length);
    if (slice.length > 0) out.append(text, starts[begin], starts[end]);
    return Value::text(out.take());
  }
  for (int64_t i = 0; i < slice.length; ++i) {
    const auto index = static_cast<size_t>(slice.start + i * slice.step);
    out.append(text, starts[index], starts[index + 1]);
  }
  return Value::text(out.take());
}

}  // namespace

Result get_attribute(JinjaRuntime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined() && !is_attribute_of_all(name)) return undefined_error(value);
  if (auto attribute = TRY(own_attribute(runtime, value, name))) return *std::move(attribute);
  if (const TemplateDict* dict = value.as_dict()) {
    if (const Value* item = dict->find(name)) return *item;
  }
  return no_attribute(value, name);
}

Result get_item(JinjaRuntime& runtime, const Value& value, const Value& key) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is<Value::Markup>()) return fail(ErrorKind::kUnsupported, "an item of escaped text");
  if (const TemplateDict* dict = value.as_dict()) {
    const Value* item = TemplateDict::accepts(key) ? dict->find(key) : nullptr;
    if (item != nullptr) return *item;
  } else if (const auto index = as_integer(key)) {
    if (auto item = TRY(item_at(runtime, value, *index))) return *std::move(item);
    return Value::undefined(fmt::format("{} object has no element {}", type_name(value), *index));
  }
  if (const PromptText* name = key.as_text()) {
    if (auto attribute = TRY(own_attribute(runtime, value, name->text))) {
      return *std::move(attribute);
    }
    return no_attribute(value, name->text);
  }
  return Value::undefined(fmt::format("{} object has no such element", type_name(value)));
}

Result get_slice(JinjaRuntime& runtime, const Value& value, std::span<const Value, 3> parts) {
  if (value.is_undefined()) return undefined_error(value);
  const TemplateList* items = value.as_sequence();
  const auto* text = value.get_if<Value::Text>();
  if (items == nullptr && text == nullptr) {
    const bool has_slices = value.is<Value::Markup>() || value.is<Value::Range>();
    return fail(has_slices ? ErrorKind::kUnsupported : ErrorKind::kType,
                "'{}' object is not subscriptable by a slice", type_name(value));
  }
  const Slice slice = TRY(slice_of_length(*length_of(value), parts));
  if (text != nullptr) return slice_text(runtime, **text, slice);
  TemplateList part;
  TRY(runtime.spend_bytes(static_cast<uint64_t>(slice.length) * sizeof(Value)));
  for (int64_t i = 0; i < slice.length; ++i) {
    part.push_back((*items)[static_cast<size_t>(slice.start + i * slice.step)]);
  }
  return value.is<Value::List>() ? Value::list(std::move(part)) : Value::tuple(std::move(part));
}

}  // namespace ingot::text
