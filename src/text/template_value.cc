#include "text/template_value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/check.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

// Below this many entries looking at each is faster than hashing.
constexpr size_t kIndexedFrom = 12;

size_t depth_of(const TemplateList& items) {
  size_t depth = 0;
  for (const TemplateValue& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

// A key that is a number, as a double or exactly: 1, 1.0 and true are the same.
std::optional<int64_t> integral(const TemplateValue& key) {
  if (const bool* flag = key.get_if<bool>()) return *flag ? 1 : 0;
  if (const int64_t* integer = key.get_if<int64_t>()) return *integer;
  const double* real = key.get_if<double>();
  if (real != nullptr && std::fabs(*real) < 9e18 && *real == std::trunc(*real)) {
    return static_cast<int64_t>(*real);
  }
  return std::nullopt;
}

size_t hash_of(const TemplateValue& key) {
  if (const PromptText* text = key.as_text()) return hash_of(std::string_view(text->text));
  if (const auto integer = integral(key)) return std::hash<int64_t>{}(*integer);
  if (const double* real = key.get_if<double>()) return std::hash<double>{}(*real);
  if (const auto* big = key.get_if<TemplateValue::BigInteger>()) return hash_of(*big->digits);
  return 0;
}

bool same_key(const TemplateValue& a, const TemplateValue& b) {
  const PromptText* text = a.as_text();
  const PromptText* other = b.as_text();
  if (text != nullptr || other != nullptr) {
    return text != nullptr && other != nullptr && text->text == other->text;
  }
  const auto integer = integral(a);
  const auto other_integer = integral(b);
  if (integer || other_integer) return integer == other_integer;
  const double* real = a.get_if<double>();
  const double* other_real = b.get_if<double>();
  if (real != nullptr && other_real != nullptr) return *real == *other_real;
  const auto* big = a.get_if<TemplateValue::BigInteger>();
  const auto* other_big = b.get_if<TemplateValue::BigInteger>();
  if (big != nullptr && other_big != nullptr) return *big->digits == *other_big->digits;
  return a.is_none() && b.is_none();
}

}  // namespace

TemplateValue TemplateValue::undefined(std::string message, TemplateError::Kind kind) {
  return of(Undefined{std::make_shared<const UndefinedReason>(
      UndefinedReason{.kind = kind, .message = std::move(message)})});
}

TemplateValue TemplateValue::big_integer(std::string digits) {
  return of(BigInteger{std::make_shared<const std::string>(std::move(digits))});
}

TemplateValue TemplateValue::trusted(std::string text) {
  return TemplateValue::text(marked_text(std::move(text), Origin::kTemplate));
}

TemplateValue TemplateValue::data(std::string text) {
  return TemplateValue::text(marked_text(std::move(text), Origin::kData));
}

TemplateValue TemplateValue::text(PromptText text) {
  return of(std::make_shared<const PromptText>(std::move(text)));
}

TemplateValue TemplateValue::list(TemplateList items) {
  const size_t depth = depth_of(items);
  return of(List{std::make_shared<const Sequence>(
      Sequence{.items = std::move(items), .depth = depth, .is_hashable = false})});
}

TemplateValue TemplateValue::tuple(TemplateList items) {
  const size_t depth = depth_of(items);
  const bool is_hashable = std::all_of(
      items.begin(), items.end(), [](const TemplateValue& item) { return item.is_hashable(); });
  return of(Tuple{std::make_shared<const Sequence>(
      Sequence{.items = std::move(items), .depth = depth, .is_hashable = is_hashable})});
}

TemplateValue TemplateValue::dict(TemplateDict dict) {
  return of(std::make_shared<const TemplateDict>(std::move(dict)));
}

const PromptText* TemplateValue::as_text() const {
  if (const Text* text = get_if<Text>()) return text->get();
  if (const Markup* markup = get_if<Markup>()) return markup->text.get();
  return nullptr;
}

const TemplateList* TemplateValue::as_sequence() const {
  if (const List* list = get_if<List>()) return &list->sequence->items;
  if (const Tuple* tuple = get_if<Tuple>()) return &tuple->sequence->items;
  return nullptr;
}

const TemplateDict* TemplateValue::as_dict() const {
  const Dict* dict = get_if<Dict>();
  return dict == nullptr ? nullptr : dict->get();
}

size_t TemplateValue::depth() const {
  if (const List* list = get_if<List>()) return list->sequence->depth;
  if (const Tuple* tuple = get_if<Tuple>()) return tuple->sequence->depth;
  if (const Dict* dict = get_if<Dict>()) return (*dict)->depth();
  if (const View* view = get_if<View>()) return view->dict->depth() + 1;
  if (const BoundMethod* method = get_if<BoundMethod>()) return method->self->depth() + 1;
  return 0;
}

bool TemplateValue::is_hashable() const {
  if (const View* view = get_if<View>()) return view->part == View::Part::kValues;
  if (const Tuple* tuple = get_if<Tuple>()) return tuple->sequence->is_hashable;
  return !is<List>() && as_dict() == nullptr;
}

bool TemplateDict::accepts(const TemplateValue& key) {
  return key.as_text() != nullptr || key.is_none() || key.is<bool>() || key.is<int64_t>() ||
         key.is<double>() || key.is<TemplateValue::BigInteger>();
}

template <typename Matches>
size_t TemplateDict::position_of(size_t hash, const Matches& matches) const {
  if (index_.empty()) {
    const auto entry = std::find_if(entries_.begin(), entries_.end(), matches);
    return static_cast<size_t>(entry - entries_.begin());
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (matches(entries_[at->second])) return at->second;
  }
  return entries_.size();
}

void TemplateDict::set(TemplateValue key, TemplateValue value) {
  CHECK(accepts(key));
  depth_ = std::max(depth_, value.depth() + 1);
  const size_t hash = hash_of(key);
  const size_t position =
      position_of(hash, [&](const Entry& entry) { return same_key(entry.key, key); });
  if (position < entries_.size()) {
    entries_[position].value = std::move(value);
    return;
  }
  entries_.push_back({std::move(key), std::move(value)});
  if (entries_.size() == kIndexedFrom) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(hash_of(entries_[i].key), i);
  } else if (!index_.empty()) {
    index_.emplace(hash, position);
  }
}

const TemplateValue* TemplateDict::find(const TemplateValue& key) const {
  CHECK(accepts(key));
  const size_t position =
      position_of(hash_of(key), [&](const Entry& entry) { return same_key(entry.key, key); });
  return position < entries_.size() ? &entries_[position].value : nullptr;
}

const TemplateValue* TemplateDict::find(std::string_view key) const {
  const size_t position = position_of(hash_of(key), [&](const Entry& entry) {
    const PromptText* text = entry.key.as_text();
    return text != nullptr && text->text == key;
  });
  return position < entries_.size() ? &entries_[position].value : nullptr;
}

}  // namespace ingot::text
