#include "text/jinja_methods.h"

#include <algorithm>
#include <array>

#include "text/jinja_format.h"
#include "text/jinja_operators.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;
using View = TemplateValue::View;

TemplateResult<int64_t> count_equal(JinjaRuntime& runtime, const Value& self, const Value& item) {
  int64_t count = 0;
  for (const Value& candidate : *self.as_sequence()) {
    if (TRY(equal(runtime, candidate, item))) ++count;
  }
  return count;
}

Result list_count(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                  BoundArguments& bound) {
  return Value::integer(TRY(count_equal(runtime, self, *bound[0])));
}

Result list_index(JinjaRuntime& runtime, const Value& self, const JinjaArguments&,
                  BoundArguments& bound) {
  const TemplateList& items = *self.as_sequence();
  for (size_t i = 0; i < items.size(); ++i) {
    if (TRY(equal(runtime, items[i], *bound[0]))) return Value::integer(static_cast<int64_t>(i));
  }
  return fail(ErrorKind::kValue, "the value is not in the {}", type_name(self));
}

Result copy(JinjaRuntime&, const Value& self, const JinjaArguments&, BoundArguments&) {
  return self;
}

Result dict_get(JinjaRuntime&, const Value& self, const JinjaArguments&, BoundArguments& bound) {
  const Value& key = *bound[0];
  if (!key.is_hashable()) {
    return fail(ErrorKind::kType, "unhashable type: '{}'", type_name(key));
  }
  const Value* item = TemplateDict::accepts(key) ? self.as_dict()->find(key) : nullptr;
  return item != nullptr ? *item : bound[1].value_or(Value::none());
}

template <View::Part kPart>
Result dict_view(JinjaRuntime&, const Value& self, const JinjaArguments&, BoundArguments&) {
  return Value::of(View{*self.get_if<Value::Dict>(), kPart});
}

JinjaLoop& loop_of(const Value& self) { return **self.get_if<JinjaLoop*>(); }

Result loop_cycle(JinjaRuntime&, const Value& self, const JinjaArguments& arguments,
                  BoundArguments&) {
  const TemplateList& items = arguments.positional;
  if (items.empty() || !arguments.keywords.empty()) {
    return fail(ErrorKind::kType, "cycle() takes items by position");
  }
  return items[static_cast<size_t>(loop_of(self).index - 1) % items.size()];
}

Result loop_changed(JinjaRuntime& runtime, const Value& self, const JinjaArguments& arguments,
                    BoundArguments&) {
  JinjaLoop& loop = loop_of(self);
  if (!arguments.keywords.empty()) return fail(ErrorKind::kType, "changed() takes no keywords");
  const Value now = Value::tuple(arguments.positional);
  if (loop.last_changed) {
    if (TRY(equal(runtime, Value::tuple(*loop.last_changed), now))) return Value::boolean(false);
  }
  loop.last_changed = arguments.positional;
  return Value::boolean(true);
}

constexpr JinjaMethod forbidden(std::string_view name) {
  return {.name = name, .signature = takes_anything(), .is_forbidden = true};
}

constexpr std::array kTupleMethods = {
    JinjaMethod{"count", takes(1, ""), list_count},
    JinjaMethod{"index", takes(1, ""), list_index},
};

constexpr std::array kListMethods = {
    JinjaMethod{"copy", takes_nothing(), copy},
    forbidden("append"),
    forbidden("clear"),
    forbidden("extend"),
    forbidden("insert"),
    forbidden("pop"),
    forbidden("remove"),
    forbidden("reverse"),
    forbidden("sort"),
};

constexpr std::array kDictMethods = {
    JinjaMethod{"copy", takes_nothing(), copy},
    JinjaMethod{"get", takes(1, "", ""), dict_get},
    JinjaMethod{"items", takes_nothing(), dict_view<View::Part::kItems>},
    JinjaMethod{"keys", takes_nothing(), dict_view<View::Part::kKeys>},
    JinjaMethod{"values", takes_nothing(), dict_view<View::Part::kValues>},
    JinjaMethod{.name = "fromkeys"},
    forbidden("clear"),
    forbidden("pop"),
    forbidden("popitem"),
    forbidden("setdefault"),
    forbidden("update"),
};

constexpr std::array kLoopMethods = {
    JinjaMethod{"cycle", takes_anything(), loop_cycle},
    JinjaMethod{"changed", takes_anything(), loop_changed},
};

constexpr std::array kRangeMethods = {
    JinjaMethod{.name = "count"}, JinjaMethod{.name = "index"}, JinjaMethod{.name = "start"},
    JinjaMethod{.name = "stop"},  JinjaMethod{.name = "step"},
};

template <size_t kCount>
const JinjaMethod* find_in(const std::array<JinjaMethod, kCount>& methods, std::string_view name) {
  const auto method = std::find_if(methods.begin(), methods.end(),
                                   [&](const JinjaMethod& row) { return row.name == name; });
  return method != methods.end() ? &*method : nullptr;
}

}  // namespace

const JinjaMethod* find_jinja_method(const Value& self, std::string_view name) {
  if (self.as_text() != nullptr) return find_string_method(name);
  if (self.as_dict() != nullptr) return find_in(kDictMethods, name);
  if (self.is<JinjaLoop*>()) return find_in(kLoopMethods, name);
  if (self.is<Value::Range>()) return find_in(kRangeMethods, name);
  const bool is_list = self.is<Value::List>();
  if (!is_list && !self.is<Value::Tuple>()) return nullptr;
  const JinjaMethod* method = find_in(kTupleMethods, name);
  return method == nullptr && is_list ? find_in(kListMethods, name) : method;
}

bool is_jinja_method_name(std::string_view name) {
  for (const JinjaMethod* method :
       {find_string_method(name), find_in(kTupleMethods, name), find_in(kListMethods, name),
        find_in(kDictMethods, name), find_in(kLoopMethods, name)}) {
    if (method != nullptr && (method->function != nullptr || method->is_forbidden)) return true;
  }
  return name.starts_with("__");  // the sandbox refuses it
}

Result call_method(JinjaRuntime& runtime, const Value::BoundMethod& bound_method,
                   const JinjaArguments& arguments) {
  const JinjaMethod& method = *bound_method.method;
  const Value& self = *bound_method.self;
  if (self.is<Value::Markup>()) {
    return fail(ErrorKind::kUnsupported, "method '{}' of escaped text", method.name);
  }
  BoundArguments bound = TRY(bind_arguments(fmt::format("{}.{}()", type_name(self), method.name),
                                            method.signature, arguments));
  return method.function(runtime, self, arguments, bound);
}

}  // namespace ingot::text
