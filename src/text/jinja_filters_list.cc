// The filters that work on what can be iterated over.

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "text/code_points.h"
#include "text/jinja_filters.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_tests.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;
using Item = std::optional<TemplateValue>;

bool flag_of(const std::optional<Value>& argument) { return argument && is_true(*argument); }

Value lowered(const Value& value) {
  return value.as_text() != nullptr ? Value::text(lower_of(*value.as_text())) : value;
}

// The attribute= of many filters: "a.b.0" leads through attributes and items, an integer is an
// index, none is the item itself.
class AttributePath {
 public:
  static TemplateResult<AttributePath> of(const std::optional<Value>& attribute) {
    AttributePath path;
    if (!attribute || attribute->is_none()) return path;
    const PromptText* text = attribute->as_text();
    if (text == nullptr) {
      path.steps_.push_back(*attribute);
      return path;
    }
    std::string_view rest = text->text;
    while (true) {
      const size_t end = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, end);
      int64_t index = 0;
      const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool is_index = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
      if (is_index && read.ec != std::errc{}) {
        return fail(ErrorKind::kUnsupported, "an index beyond 64 bits");
      }
      path.steps_.push_back(is_index ? Value::integer(index) : Value::trusted(std::string(part)));
      if (end == rest.size()) return path;
      rest.remove_prefix(end + 1);
    }
  }

  // `otherwise` stands in for what is undefined, if there is one that is not none.
  Result follow(JinjaRuntime& runtime, Value value, const Value& otherwise = Value::none()) const {
    for (const Value& step : steps_) {
      value = TRY(get_item(runtime, value, step));
      if (value.is_undefined() && !otherwise.is_none()) value = otherwise;
    }
    return value;
  }

 private:
  TemplateList steps_;
};

Result iterator_of(JinjaRuntime& runtime, JinjaIterator::Next next) {
  return Value::of(TRY(runtime.new_iterator(std::move(next))));
}

// An iterator over what start() gives, which is asked for at the first item.
template <typename Start>
Result lazily(JinjaRuntime& runtime, Start start) {
  return iterator_of(runtime,
                     [start = std::move(start), source = static_cast<JinjaIterator*>(nullptr)](
                         JinjaRuntime& at_work) mutable -> TemplateResult<Item> {
                       if (source == nullptr) source = TRY(start(at_work));
                       return next_item(at_work, *source);
                     });
}

// Those of args that come behind the first `count`.
JinjaArguments behind(const JinjaArguments& arguments, size_t count) {
  JinjaArguments rest = arguments;
  const auto end = rest.positional.begin() + static_cast<std::ptrdiff_t>(count);
  rest.positional.erase(rest.positional.begin(), end);
  return rest;
}

// What map does to each item.
struct Mapping {
  AttributePath path;
  Value otherwise = Value::none();
  const JinjaFilter* filter = nullptr;  // null: path
  JinjaArguments arguments;

  Result apply(JinjaRuntime& runtime, const Value& item) const {
    if (filter != nullptr) return apply_filter(runtime, *filter, item, arguments);
    return path.follow(runtime, item, otherwise);
  }
};

TemplateResult<Mapping> mapping_of(const JinjaArguments& arguments) {
  Mapping mapping;
  if (!arguments.positional.empty()) {
    const PromptText* name = arguments.positional.front().as_text();
    mapping.filter = name != nullptr ? find_jinja_filter(name->text) : nullptr;
    mapping.arguments = behind(arguments, 1);
    if (mapping.filter != nullptr) return mapping;
    return fail(ErrorKind::kUnsupported, "no filter named '{}'", name != nullptr ? name->text : "");
  }
  bool has_attribute = false;
  for (const auto& [keyword, value] : arguments.keywords) {
    if (keyword == "attribute") {
      mapping.path = TRY(AttributePath::of(value));
      has_attribute = true;
    } else if (keyword == "default") {
      mapping.otherwise = value;
    } else {
      return fail(ErrorKind::kType, "filter 'map' has no argument named '{}'", keyword);
    }
  }
  if (!has_attribute) return fail(ErrorKind::kType, "filter 'map' needs a filter or attribute=");
  return mapping;
}

Result map(JinjaRuntime& runtime, const Value& value, const JinjaArguments& arguments,
           BoundArguments&) {
  return lazily(
      runtime, [value, arguments](JinjaRuntime& at_work) -> TemplateResult<JinjaIterator*> {
        if (!is_true(value)) return iterate(at_work, Value::list({}));
        Mapping mapping = TRY(mapping_of(arguments));
        JinjaIterator* items = TRY(iterate(at_work, value));
        return at_work.new_iterator([mapping = std::move(mapping),
                                     items](JinjaRuntime& runtime_now) -> TemplateResult<Item> {
          const Item item = TRY(next_item(runtime_now, *items));
          if (!item) return Item{};
          return Item { TRY(mapping.apply(runtime_now, *item)) };
        });
      });
}

// What select and its like ask of each item.
struct Selection {
  AttributePath path;
  const JinjaTest* test = nullptr;  // null: whether it is true
  JinjaArguments arguments;
  bool wanted = true;

  TemplateResult<bool> takes(JinjaRuntime& runtime, const Value& item) const {
    const Value value = TRY(path.follow(runtime, item));
    if (test == nullptr) return is_true(value) == wanted;
    return TRY(apply_test(runtime, *test, value, arguments))
    == wanted;
  }
};

TemplateResult<Selection> selection_of(const JinjaArguments& arguments, bool wanted,
                                       bool has_attribute) {
  Selection selection;
  selection.wanted = wanted;
  const size_t name_at = has_attribute ? 1 : 0;
  if (arguments.positional.size() < name_at) {
    return fail(ErrorKind::kType, "the name of an attribute is missing");
  }
  if (has_attribute) selection.path = TRY(AttributePath::of(arguments.positional.front()));
  if (arguments.positional.size() == name_at) return selection;
  const PromptText* name = arguments.positional[name_at].as_text();
  selection.test = name != nullptr ? find_jinja_test(name->text) : nullptr;
  if (selection.test == nullptr) {
    return fail(ErrorKind::kUnsupported, "no test named '{}'", name != nullptr ? name->text : "");
  }
  selection.arguments = behind(arguments, name_at + 1);
  return selection;
}

template <bool kWanted, bool kHasAttribute>
Result select(JinjaRuntime& runtime, const Value& value, const JinjaArguments& arguments,
              BoundArguments&) {
  return lazily(
      runtime, [value, arguments](JinjaRuntime& at_work) -> TemplateResult<JinjaIterator*> {
        if (!is_true(value)) return iterate(at_work, Value::list({}));
        Selection selection = TRY(selection_of(arguments, kWanted, kHasAttribute));
        JinjaIterator* items = TRY(iterate(at_work, value));
        return at_work.new_iterator([selection = std::move(selection),
                                     items](JinjaRuntime& runtime_now) -> TemplateResult<Item> {
          while (Item item = TRY(next_item(runtime_now, *items))) {
            if (TRY(selection.takes(runtime_now, *item))) return item;
          }
          return Item{};
        });
      });
}

Result unique(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
              BoundArguments& bound) {
  const bool ignores_case = !flag_of(bound[0]);
  AttributePath path = TRY(AttributePath::of(bound[1]));
  auto seen = std::make_shared<TemplateDict>();
  const auto start = [=](JinjaRuntime& at_work) -> TemplateResult<JinjaIterator*> {
    JinjaIterator* items = TRY(iterate(at_work, value));
    return at_work.new_iterator([=](JinjaRuntime& runtime_now) -> TemplateResult<Item> {
      while (Item item = TRY(next_item(runtime_now, *items))) {
        Value key = TRY(path.follow(runtime_now, *item));
        if (ignores_case) key = lowered(key);
        if (!TemplateDict::accepts(key)) {
          return fail(key.is_hashable() ? ErrorKind::kUnsupported : ErrorKind::kType,
                      "filter 'unique' on a {}", type_name(key));
        }
        if (seen->find(key) != nullptr) continue;
        TRY(runtime_now.spend_bytes(sizeof(TemplateDict::Entry)));
        seen->set(key, Value::none());
        return item;
      }
      return Item{};
    });
  };
  return lazily(runtime, start);
}

Result items(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  return lazily(runtime, [value](JinjaRuntime& at_work) -> TemplateResult<JinjaIterator*> {
    if (value.is_undefined()) return iterate(at_work, value);
    const auto* dict = value.get_if<Value::Dict>();
    if (dict == nullptr) return fail(ErrorKind::kType, "Can only get item pairs from a mapping.");
    return iterate(at_work, Value::of(Value::View{*dict, Value::View::Part::kItems}));
  });
}

struct KeyedItem {
  Value key;
  Value item;
};

TemplateResult<TemplateList> sorted(JinjaRuntime& runtime, std::vector<KeyedItem> keyed,
                                    bool is_reverse) {
  TRY(stable_sort_by(keyed, [&](const KeyedItem& a, const KeyedItem& b) {
    return is_reverse ? less(runtime, b.key, a.key) : less(runtime, a.key, b.key);
  }));
  TemplateList items;
  for (KeyedItem& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

// The keys of sort: a list of one value for each attribute that attribute= names.
TemplateResult<std::vector<AttributePath>> sort_paths(const std::optional<Value>& attribute) {
  std::vector<AttributePath> paths;
  const PromptText* text = attribute ? attribute->as_text() : nullptr;
  if (text == nullptr) {
    paths.push_back(TRY(AttributePath::of(attribute)));
    return paths;
  }
  std::string_view rest = text->text;
  while (true) {
    const size_t end = std::min(rest.find(','), rest.size());
    paths.push_back(TRY(AttributePath::of(Value::trusted(std::string(rest.substr(0, end))))));
    if (end == rest.size()) return paths;
    rest.remove_prefix(end + 1);
  }
}

Result sort(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
            BoundArguments& bound) {
  const bool ignores_case = !flag_of(bound[1]);
  const std::vector<AttributePath> paths = TRY(sort_paths(bound[2]));
  std::vector<KeyedItem> keyed;
  for (Value& item : TRY(collect(runtime, value))) {
    TemplateList key;
    for (const AttributePath& path : paths) {
      const Value part = TRY(path.follow(runtime, item));
      key.push_back(ignores_case ? lowered(part) : part);
    }
    TRY(runtime.spend_bytes(sizeof(KeyedItem) + key.size() * sizeof(Value)));
    keyed.push_back({Value::list(std::move(key)), std::move(item)});
  }
  return Value::list(TRY(sorted(runtime, std::move(keyed), flag_of(bound[0]))));
}

Result dictsort(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
                BoundArguments& bound) {
  if (value.is_undefined()) return undefined_error(value);
  const TemplateDict* dict = value.as_dict();
  if (dict == nullptr) return fail(ErrorKind::kType, "filter 'dictsort' takes a dict");
  const PromptText* by = bound[1] ? bound[1]->as_text() : nullptr;
  const bool by_value = by != nullptr && by->text == "value";
  if (bound[1] && !by_value && (by == nullptr || by->text != "key")) {
    return fail(ErrorKind::kValue, "You can only sort by either \"key\" or \"value\"");
  }
  std::vector<KeyedItem> keyed;
  for (const auto& [key, item] : dict->entries()) {
    const Value& sorts_by = by_value ? item : key;
    TRY(runtime.spend_bytes(2 * sizeof(KeyedItem)));
    keyed.push_back({flag_of(bound[0]) ? sorts_by : lowered(sorts_by), Value::tuple({key, item})});
  }
  return Value::list(TRY(sorted(runtime, std::move(keyed), flag_of(bound[2]))));
}

template <bool kLargest>
Result extreme(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
               BoundArguments& bound) {
  const AttributePath path = TRY(AttributePath::of(bound[1]));
  JinjaIterator* items = TRY(iterate(runtime, value));
  std::optional<KeyedItem> best;
  while (Item item = TRY(next_item(runtime, *items))) {
    Value key = TRY(path.follow(runtime, *item));
    if (!flag_of(bound[0])) key = lowered(key);
    const bool is_better =
        !best || TRY(kLargest ? less(runtime, best->key, key) : less(runtime, key, best->key));
    if (is_better) best = KeyedItem{std::move(key), *std::move(item)};
  }
  return best ? best->item : Value::undefined("No aggregated item, sequence was empty.");
}

Result sum(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
           BoundArguments& bound) {
  const AttributePath path = TRY(AttributePath::of(bound[0]));
  Value total = bound[1].value_or(Value::integer(0));
  if (total.as_text() != nullptr) return fail(ErrorKind::kType, "sum() can't sum strings");
  JinjaIterator* items = TRY(iterate(runtime, value));
  while (const Item item = TRY(next_item(runtime, *items))) {
    total = TRY(compute(runtime, JinjaOperator::kAdd, total, TRY(path.follow(runtime, *item))));
  }
  return total;
}

Result join(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
            BoundArguments& bound) {
  PromptText separator;
  if (bound[0]) separator = TRY(to_text(runtime, *bound[0]));
  if (!bound[1] || bound[1]->is_none()) {
    return Value::text(TRY(joined(runtime, separator, value, JoinedItems::kAny)));
  }
  const AttributePath path = TRY(AttributePath::of(bound[1]));
  TemplateList attributes = TRY(collect(runtime, value));
  for (Value& item : attributes) item = TRY(path.follow(runtime, item));
  const Value list = Value::list(std::move(attributes));
  return Value::text(TRY(joined(runtime, separator, list, JoinedItems::kAny)));
}

Result first(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  JinjaIterator* items = TRY(iterate(runtime, value));
  if (Item item = TRY(next_item(runtime, *items))) return *std::move(item);
  return Value::undefined("No first item, sequence was empty.");
}

Result last(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  const TemplateList items = TRY(collect_reversed(runtime, value));
  if (!items.empty()) return items.front();
  return Value::undefined("No last item, sequence was empty.");
}

Result length(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (const PromptText* text = value.as_text()) {
    TRY(runtime.spend_steps(text->text.size() / 64));
  }
  if (const auto size = length_of(value)) return Value::integer(*size);
  return fail(ErrorKind::kType, "object of type '{}' has no len()", type_name(value));
}

Result list(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  return Value::list(TRY(collect(runtime, value)));
}

Result reverse(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (value.is<Value::Text>()) {
    const std::array<Value, 3> backwards = {Value::none(), Value::none(), Value::integer(-1)};
    return get_slice(runtime, value, backwards);
  }
  if (value.is<JinjaIterator*>()) {
    TemplateList items = TRY(collect(runtime, value));
    std::reverse(items.begin(), items.end());
    return Value::list(std::move(items));
  }
  const Value reversed = Value::list(TRY(collect_reversed(runtime, value)));
  return Value::of(TRY(iterate(runtime, reversed)));
}

using Names = JinjaFilter::Names;

constexpr std::array kListFilters = {
    JinjaFilter{"count", takes_nothing(), length},
    JinjaFilter{"dictsort", takes(0, "case_sensitive", "by", "reverse"), dictsort},
    JinjaFilter{"first", takes_nothing(), first},
    JinjaFilter{"items", takes_nothing(), items},
    JinjaFilter{"join", takes(0, "d", "attribute"), join},
    JinjaFilter{"last", takes_nothing(), last},
    JinjaFilter{"length", takes_nothing(), length},
    JinjaFilter{"list", takes_nothing(), list},
    JinjaFilter{"map", takes_anything(), map, Names::kFilter, 0},
    JinjaFilter{"max", takes(0, "case_sensitive", "attribute"), extreme<true>},
    JinjaFilter{"min", takes(0, "case_sensitive", "attribute"), extreme<false>},
    JinjaFilter{"reject", takes_anything(), select<false, false>, Names::kTest, 0},
    JinjaFilter{"rejectattr", takes_anything(), select<false, true>, Names::kTest, 1},
    JinjaFilter{"reverse", takes_nothing(), reverse},
    JinjaFilter{"select", takes_anything(), select<true, false>, Names::kTest, 0},
    JinjaFilter{"selectattr", takes_anything(), select<true, true>, Names::kTest, 1},
    JinjaFilter{"sort", takes(0, "reverse", "case_sensitive", "attribute"), sort},
    JinjaFilter{"sum", takes(0, "attribute", "start"), sum},
    JinjaFilter{"unique", takes(0, "case_sensitive", "attribute"), unique},
};

}  // namespace

const JinjaFilter* find_list_filter(std::string_view name) {
  const auto filter = std::find_if(kListFilters.begin(), kListFilters.end(),
                                   [&](const JinjaFilter& row) { return row.name == name; });
  return filter != kListFilters.end() ? &*filter : nullptr;
}

}  // namespace ingot::text
