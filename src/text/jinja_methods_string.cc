// The methods of str.

#include <algorithm>
#include <array>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

TemplateResult<const PromptText*> text_argument(const std::optional<Value>& argument) {
  const PromptText* text = argument->as_text();
  if (text == nullptr)
    return fail(ErrorKind::kType, "a string is needed, not {}", type_name(*argument));
  return text;
}

// Null when left out or none.
TemplateResult<const PromptText*> optional_text(const std::optional<Value>& argument) {
  if (!argument || argument->is_none()) return nullptr;
  return text_argument(argument);
}

TemplateResult<int64_t> integer_argument(const std::optional<Value>& argument, int64_t otherwise) {
  if (!argument) return otherwise;
  const auto integer = as_integer(*argument);
  if (!integer) {
    return fail(ErrorKind::kType, "'{}' object cannot be interpreted as an integer",
                type_name(*argument));
  }
  return *integer;
}

template <PromptText (*kMap)(const PromptText&)>
Result map_text(JinjaRuntime& runtime, const Value& self, const JinjaArguments&, BoundArguments&) {
  TRY(runtime.spend_text(self.as_text()->text.size()));
  return Value::text(kMap(*self.as_text()));
}

template <Side kSide>
Result strip(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
             BoundArguments& bound) {
  const PromptText* chars = TRY(optional_text(bound[0]));
  TRY(runtime.spend_text(self.as_text()->text.size()));
  return Value::text(stripped(*self.as_text(), chars, kSide));
}

template <auto kSplit>
Result split_method(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                    BoundArguments& bound) {
  const PromptText* separator = TRY(optional_text(bound[0]));
  const int64_t max_splits = TRY(integer_argument(bound[1], -1));
  return Value::list(TRY(kSplit(runtime, *self.as_text(), separator, max_splits)));
}

Result splitlines(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                  BoundArguments& bound) {
  const bool keeps_ends = bound[0] && is_true(*bound[0]);
  return Value::list(TRY(split_lines(runtime, *self.as_text(), keeps_ends)));
}

template <bool kFromEnd>
Result partition(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                 BoundArguments& bound) {
  const PromptText& text = *self.as_text();
  const PromptText& separator = *TRY(text_argument(bound[0]));
  if (separator.text.empty()) return fail(ErrorKind::kValue, "empty separator");
  TRY(runtime.spend_bytes(text.text.size()));
  const size_t at = kFromEnd ? text.text.rfind(separator.text) : text.text.find(separator.text);
  const Value nothing = Value::trusted("");
  if (at == std::string::npos) {
    return kFromEnd ? Value::tuple({nothing, nothing, self})
                    : Value::tuple({self, nothing, nothing});
  }
  const size_t end = at + separator.text.size();
  return Value::tuple({Value::text(slice_of(text, 0, at)), Value::text(slice_of(text, at, end)),
                       Value::text(slice_of(text, end, text.text.size()))});
}

template <bool kAtEnd>
Result has_affix(JinjaRuntime&, const Value& self, const JinjaArguments&, BoundArguments& bound) {
  const std::string& text = self.as_text()->text;
  const auto matches = [&](const std::string& affix) {
    return kAtEnd ? text.ends_with(affix) : text.starts_with(affix);
  };
  if (const auto* affixes = bound[0]->get_if<Value::Tuple>()) {
    for (const Value& affix : affixes->sequence->items) {
      if (matches(TRY(text_argument(affix))->text)) return Value::boolean(true);
    }
    return Value::boolean(false);
  }
  return Value::boolean(matches(TRY(text_argument(bound[0]))->text));
}

template <bool kAtEnd>
Result remove_affix(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                    BoundArguments& bound) {
  const PromptText& text = *self.as_text();
  const std::string& affix = TRY(text_argument(bound[0]))
  ->text;
  TRY(runtime.spend_text(text.text.size()));
  const size_t size = text.text.size();
  if (kAtEnd ? !text.text.ends_with(affix) : !text.text.starts_with(affix)) return self;
  return Value::text(kAtEnd ? slice_of(text, 0, size - affix.size())
                            : slice_of(text, affix.size(), size));
}

// Where a part is, counted in characters; -1: nowhere.
template <bool kFromEnd>
TemplateResult<int64_t> place_of(JinjaRuntime& runtime, const Value& self,
                                 const BoundArguments& bound) {
  const std::string& text = self.as_text()->text;
  const std::string& part = TRY(text_argument(bound[0]))
  ->text;
  TRY(runtime.spend_steps(text.size() / 64));
  const size_t at = kFromEnd ? text.rfind(part) : text.find(part);
  if (at == std::string::npos) return -1;
  return static_cast<int64_t>(count_code_points(std::string_view(text).substr(0, at)));
}

template <bool kFromEnd>
Result find(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
            BoundArguments& bound) {
  return Value::integer(TRY(place_of<kFromEnd>(runtime, self, bound)));
}

template <bool kFromEnd>
Result index(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
             BoundArguments& bound) {
  const int64_t place = TRY(place_of<kFromEnd>(runtime, self, bound));
  if (place < 0) return fail(ErrorKind::kValue, "substring not found");
  return Value::integer(place);
}

Result count(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
             BoundArguments& bound) {
  const std::string& text = self.as_text()->text;
  const std::string& part = TRY(text_argument(bound[0]))
  ->text;
  TRY(runtime.spend_steps(text.size() / 64));
  if (part.empty()) return Value::integer(static_cast<int64_t>(count_code_points(text)) + 1);
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return Value::integer(found);
}

Result replace(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
               BoundArguments& bound) {
  const PromptText& old = *TRY(text_argument(bound[0]));
  const PromptText& by = *TRY(text_argument(bound[1]));
  const int64_t limit = TRY(integer_argument(bound[2], -1));
  return Value::text(TRY(replaced(runtime, *self.as_text(), old, by, limit)));
}

Result join(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
            BoundArguments& bound) {
  return Value::text(TRY(joined(runtime, *self.as_text(), *bound[0], JoinedItems::kOnlyStrings)));
}

Result format(JinjaRuntime& runtime, const Value& self, const JinjaArguments& arguments,
              BoundArguments&) {
  return Value::text(TRY(brace_format(runtime, *self.as_text(), arguments)));
}

template <Side kSide>
Result pad(JinjaRuntime& runtime, const Value& self, const JinjaArguments&, BoundArguments& bound) {
  const int64_t width = TRY(integer_argument(bound[0], 0));
  const PromptText space{.text = " ", .data = {}};
  const PromptText& fill = bound[1] ? *TRY(text_argument(bound[1])) : space;
  return Value::text(TRY(padded(runtime, *self.as_text(), width, fill, kSide)));
}

Result zfill(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
             BoundArguments& bound) {
  const PromptText& text = *self.as_text();
  const int64_t width = TRY(integer_argument(bound[0], 0));
  const bool has_sign = text.text.starts_with('-') || text.text.starts_with('+');
  const size_t sign = has_sign ? 1 : 0;
  const PromptText zero{.text = "0", .data = {}};
  const PromptText digits =
      TRY(padded(runtime, slice_of(text, sign, text.text.size()),
                 std::max<int64_t>(width, 1) - (has_sign ? 1 : 0), zero, Side::kStart));
  PromptTextBuilder out;
  if (width <= 0) return self;
  out.append(text, 0, sign);
  out.append(digits);
  return Value::text(out.take());
}

template <bool (*kIsOne)(char32_t)>
Result all_are(JinjaRuntime& runtime, const Value& self, const JinjaArguments&, BoundArguments&) {
  const std::string& text = self.as_text()->text;
  TRY(runtime.spend_steps(text.size() / 16));
  for (size_t at = 0; at < text.size();) {
    if (!kIsOne(next_code_point(text, at))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

template <bool (*kIs)(const PromptText&)>
Result text_is(JinjaRuntime& runtime, const Value& self, const JinjaArguments&, BoundArguments&) {
  TRY(runtime.spend_steps(self.as_text()->text.size() / 16));
  return Value::boolean(kIs(*self.as_text()));
}

Result isascii(JinjaRuntime&, const Value& self, const JinjaArguments&, BoundArguments&) {
  const std::string& text = self.as_text()->text;
  return Value::boolean(
      std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; }));
}

// Beyond decimal digits Python also counts superscripts and their like, which no table here has.
Result isdigit(JinjaRuntime& runtime, const Value& self, const JinjaArguments& arguments,
               BoundArguments& bound) {
  const std::string& text = self.as_text()->text;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_alphanumeric(c) && !is_alphabetic(c) && !is_decimal(c)) {
      return fail(ErrorKind::kUnsupported, "isdigit() of numbers that are no decimal digits");
    }
  }
  return all_are<is_decimal>(runtime, self, arguments, bound);
}

constexpr std::array kMethods = {
    JinjaMethod{"capitalize", takes_nothing(), map_text<capitalized>},
    JinjaMethod{"center", takes(1, "", ""), pad<Side::kBoth>},
    JinjaMethod{"count", takes(1, ""), count},
    JinjaMethod{"endswith", takes(1, ""), has_affix<true>},
    JinjaMethod{"find", takes(1, ""), find<false>},
    JinjaMethod{"format", takes_anything(), format},
    JinjaMethod{"index", takes(1, ""), index<false>},
    JinjaMethod{"isalnum", takes_nothing(), all_are<is_alphanumeric>},
    JinjaMethod{"isalpha", takes_nothing(), all_are<is_alphabetic>},
    JinjaMethod{"isascii", takes_nothing(), isascii},
    JinjaMethod{"isdecimal", takes_nothing(), all_are<is_decimal>},
    JinjaMethod{"isdigit", takes_nothing(), isdigit},
    JinjaMethod{"islower", takes_nothing(), text_is<is_lower_text>},
    JinjaMethod{"isspace", takes_nothing(), all_are<is_space>},
    JinjaMethod{"isupper", takes_nothing(), text_is<is_upper_text>},
    JinjaMethod{"join", takes(1, ""), join},
    JinjaMethod{"ljust", takes(1, "", ""), pad<Side::kEnd>},
    JinjaMethod{"lower", takes_nothing(), map_text<lower_of>},
    JinjaMethod{"lstrip", takes(0, ""), strip<Side::kStart>},
    JinjaMethod{"partition", takes(1, ""), partition<false>},
    JinjaMethod{"removeprefix", takes(1, ""), remove_affix<false>},
    JinjaMethod{"removesuffix", takes(1, ""), remove_affix<true>},
    JinjaMethod{"replace", takes(2, "", "", ""), replace},
    JinjaMethod{"rfind", takes(1, ""), find<true>},
    JinjaMethod{"rindex", takes(1, ""), index<true>},
    JinjaMethod{"rjust", takes(1, "", ""), pad<Side::kStart>},
    JinjaMethod{"rpartition", takes(1, ""), partition<true>},
    JinjaMethod{"rsplit", takes(0, "sep", "maxsplit"), split_method<split_from_end>},
    JinjaMethod{"rstrip", takes(0, ""), strip<Side::kEnd>},
    JinjaMethod{"split", takes(0, "sep", "maxsplit"), split_method<split>},
    JinjaMethod{"splitlines", takes(0, "keepends"), splitlines},
    JinjaMethod{"startswith", takes(1, ""), has_affix<false>},
    JinjaMethod{"strip", takes(0, ""), strip<Side::kBoth>},
    JinjaMethod{"title", takes_nothing(), map_text<title_of>},
    JinjaMethod{"upper", takes_nothing(), map_text<upper_of>},
    JinjaMethod{"zfill", takes(1, ""), zfill},
    JinjaMethod{.name = "casefold"},
    JinjaMethod{.name = "encode"},
    JinjaMethod{.name = "expandtabs"},
    JinjaMethod{.name = "format_map"},
    JinjaMethod{.name = "isidentifier"},
    JinjaMethod{.name = "isnumeric"},
    JinjaMethod{.name = "isprintable"},
    JinjaMethod{.name = "istitle"},
    JinjaMethod{.name = "maketrans"},
    JinjaMethod{.name = "swapcase"},
    JinjaMethod{.name = "translate"},
};

}  // namespace

const JinjaMethod* find_string_method(std::string_view name) {
  const auto method = std::find_if(kMethods.begin(), kMethods.end(),
                                   [&](const JinjaMethod& row) { return row.name == name; });
  return method != kMethods.end() ? &*method : nullptr;
}

}  // namespace ingot::text
