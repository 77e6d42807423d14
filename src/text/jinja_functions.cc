#include "text/jinja_functions.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

Result make_range(JinjaRuntime&, const JinjaArguments&, BoundArguments& bound) {
  std::array<int64_t, 3> numbers = {0, 0, 1};
  const size_t count = bound[2] ? 3 : bound[1] ? 2 : 1;
  for (size_t i = 0; i < count; ++i) {
    const auto number = as_integer(*bound[i]);
    if (!number) {
      return fail(ErrorKind::kType, "'{}' object cannot be interpreted as an integer",
                  type_name(*bound[i]));
    }
    numbers[count == 1 ? 1 : i] = *number;
  }
  const auto [start, stop, step] = numbers;
  if (step == 0) return fail(ErrorKind::kValue, "range() arg 3 must not be zero");
  // In 128 bits, for the distance of two 64-bit numbers needs 65.
  const __int128 distance =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 length = distance > 0 ? (distance - 1) / stride + 1 : 0;
  if (length > RenderLimits::kRangeMax) {
    return fail(ErrorKind::kValue, "range too big: more than {} items", RenderLimits::kRangeMax);
  }
  return Value::of(Value::Range{
      .start = start, .stop = stop, .step = step, .length = static_cast<int64_t>(length)});
}

TemplateResult<void> set_item(JinjaRuntime& runtime, TemplateDict& dict, const Value& key,
                              const Value& value) {
  if (!TemplateDict::accepts(key)) {
    return fail(key.is_hashable() ? ErrorKind::kUnsupported : ErrorKind::kType,
                "a {} as the key of a dict", type_name(key));
  }
  TRY(runtime.spend_bytes(sizeof(TemplateDict::Entry)));
  dict.set(key, value);
  return {};
}

// dict(a mapping or pairs, **keywords)
TemplateResult<TemplateDict> make_dict(JinjaRuntime& runtime, const JinjaArguments& arguments) {
  TemplateDict dict;
  if (arguments.positional.size() > 1) {
    return fail(ErrorKind::kType, "dict expected at most 1 argument, got {}",
                arguments.positional.size());
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional.front();
    if (source.as_dict() != nullptr) {
      TRY(runtime.spend_bytes(source.as_dict()->size() * sizeof(TemplateDict::Entry)));
      dict = *source.as_dict();
    } else {
      JinjaIterator* pairs = TRY(iterate(runtime, source));
      while (const auto pair = TRY(next_item(runtime, *pairs))) {
        const TemplateList items = TRY(collect(runtime, *pair));
        if (items.size() != 2)
          return fail(ErrorKind::kValue, "dict() takes pairs of key and value");
        TRY(set_item(runtime, dict, items[0], items[1]));
      }
    }
  }
  for (const auto& [keyword, value] : arguments.keywords) {
    TRY(set_item(runtime, dict, Value::trusted(keyword), value));
  }
  return dict;
}

Result dict_function(JinjaRuntime& runtime, const JinjaArguments& arguments, BoundArguments&) {
  return Value::dict(TRY(make_dict(runtime, arguments)));
}

Result namespace_function(JinjaRuntime& runtime, const JinjaArguments& arguments, BoundArguments&) {
  TemplateDict attributes = TRY(make_dict(runtime, arguments));
  for (const auto& [key, value] : attributes.entries()) {
    const PromptText* name = key.as_text();
    if (name != nullptr && name->text.starts_with('_')) {
      return fail(ErrorKind::kSecurity, "a namespace has no attributes like '{}'", name->text);
    }
  }
  JinjaNamespace* space = TRY(runtime.new_namespace());
  space->attributes = std::move(attributes);
  return Value::of(space);
}

Result raise_exception(JinjaRuntime& runtime, const JinjaArguments&, BoundArguments& bound) {
  return fail(ErrorKind::kRaised, "{}", TRY(to_text(runtime, *bound[0])).text);
}

// datetime.now().strftime(format) in the "C" locale. Python's time here has no zone.
Result strftime_now(JinjaRuntime& runtime, const JinjaArguments&, BoundArguments& bound) {
  constexpr size_t kBytesMax = 1024;
  constexpr std::string_view kDirectives = "aAbBcdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%C";
  const PromptText* format = bound[0]->as_text();
  if (format == nullptr) return fail(ErrorKind::kType, "strftime_now() takes a string");
  std::string directives;
  for (size_t at = 0; at < format->text.size(); ++at) {
    const char c = format->text[at];
    directives += c;
    if (c != '%') continue;
    const char directive = at + 1 < format->text.size() ? format->text[++at] : '\0';
    if (!kDirectives.contains(directive)) {
      return fail(ErrorKind::kUnsupported, "'%{}' in strftime_now()", directive);
    }
    directives += directive;
    if (directive == 'z' || directive == 'Z') directives.resize(directives.size() - 2);
  }
  if (directives.empty()) return Value::trusted("");
  std::array<char, kBytesMax> buffer{};
  const size_t length =
      std::strftime(buffer.data(), buffer.size(), directives.c_str(), &runtime.now());
  if (length == 0) return fail(ErrorKind::kLimit, "the format of strftime_now() is too long");
  return Value::text(marked_text(std::string(buffer.data(), length), origin_of(*format)));
}

constexpr std::array kFunctions = {
    JinjaFunction{"dict", takes_anything(), dict_function},
    JinjaFunction{"namespace", takes_anything(), namespace_function},
    JinjaFunction{"raise_exception", takes(1, "message"), raise_exception},
    JinjaFunction{"range", takes(1, "", "", ""), make_range},
    JinjaFunction{"strftime_now", takes(1, "format"), strftime_now},
};

}  // namespace

const JinjaFunction* find_jinja_function(std::string_view name) {
  const auto function = std::find_if(kFunctions.begin(), kFunctions.end(),
                                     [&](const JinjaFunction& row) { return row.name == name; });
  return function != kFunctions.end() ? &*function : nullptr;
}

Result call_function(JinjaRuntime& runtime, const JinjaFunction& function,
                     const JinjaArguments& arguments) {
  BoundArguments bound =
      TRY(bind_arguments(fmt::format("{}()", function.name), function.signature, arguments));
  return function.function(runtime, arguments, bound);
}

}  // namespace ingot::text
