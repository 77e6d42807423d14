#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/prompt_text.h"
#include "text/template_error.h"

namespace ingot::text {

class TemplateValue;
class TemplateDict;
using TemplateList = std::vector<TemplateValue>;

// Things that exist only while a template renders; jinja_runtime.h and jinja_methods.h have them.
struct JinjaFunction;
struct JinjaIterator;
struct JinjaLoop;
struct JinjaMacro;
struct JinjaMethod;
struct JinjaNamespace;

// A value that a chat template sees, with Python's types, for that is the language in which
// templates were written: the order of dicts, integers apart from floats, tuples apart from lists.
// Every string knows which of its bytes are data (see prompt_text.h). Immutable and cheap to copy:
// containers and strings are shared. Safe to read from any thread.
class TemplateValue {
 public:
  // Missing, with the error that its use gives. No reason: the plain kind.
  struct UndefinedReason {
    TemplateError::Kind kind = TemplateError::Kind::kUndefined;
    std::string message;
  };
  struct Undefined {
    std::shared_ptr<const UndefinedReason> reason;
  };
  struct None {};
  // An integer beyond 64 bits, as its digits: it can be printed and compared, not computed with.
  struct BigInteger {
    std::shared_ptr<const std::string> digits;
  };
  using Text = std::shared_ptr<const PromptText>;
  // Text that the filters escape and safe made: Python has a class of its own for it, whose
  // operators escape what they are given.
  struct Markup {
    Text text;
  };
  struct Sequence {
    TemplateList items;
    size_t depth = 1;
    bool is_hashable = false;  // known from the start, for items may share what is in them
  };
  struct List {
    std::shared_ptr<const Sequence> sequence;
  };
  struct Tuple {
    std::shared_ptr<const Sequence> sequence;
  };
  using Dict = std::shared_ptr<const TemplateDict>;
  struct Range {
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 1;
    int64_t length = 0;
  };
  // What keys(), values() and items() of a dict give.
  struct View {
    enum class Part { kKeys, kValues, kItems };
    Dict dict;
    Part part = Part::kKeys;
  };
  struct BoundMethod {
    std::shared_ptr<const TemplateValue> self;
    const JinjaMethod* method = nullptr;
  };

  TemplateValue() = default;  // undefined
  static TemplateValue undefined(std::string message,
                                 TemplateError::Kind kind = TemplateError::Kind::kUndefined);
  static TemplateValue none() { return of(None{}); }
  static TemplateValue boolean(bool value) { return of(value); }
  static TemplateValue integer(int64_t value) { return of(value); }
  static TemplateValue big_integer(std::string digits);
  static TemplateValue real(double value) { return of(value); }
  // A string that the host vouches for: control tokens in it are meant.
  static TemplateValue trusted(std::string text);
  // A string that somebody else wrote.
  static TemplateValue data(std::string text);
  static TemplateValue text(PromptText text);
  static TemplateValue list(TemplateList items);
  static TemplateValue tuple(TemplateList items);
  static TemplateValue dict(TemplateDict dict);

  // One JSON document; every string in it is data. Integers of any size and floats keep what Python
  // would make of them. Of keys that an object has twice the last value holds, at the first place,
  // as in Python. Errors name line and column. Nesting is limited to 64.
  static base::Result<TemplateValue> parse_json(std::string_view json, std::string_view source);
  // What base::parse_json read; it has no integers beyond 64 bits.
  static TemplateValue from_json(const base::json::value& json);

  // One of the structs above, or a type that is not in this header. REQUIRES: what it points to
  // outlives this value.
  template <typename T>
  static TemplateValue of(T alternative) {
    TemplateValue value;
    value.storage_ = std::move(alternative);
    return value;
  }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(storage_);
  }

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  const PromptText* as_text() const;
  // The items of a list or tuple.
  const TemplateList* as_sequence() const;
  const TemplateDict* as_dict() const;

  // How deep containers nest in this value; 0 when it is none.
  size_t depth() const;
  // Whether Python could have it as the key of a dict: no list, no dict, and none within a tuple.
  bool is_hashable() const;

 private:
  std::variant<Undefined, None, bool, int64_t, BigInteger, double, Text, Markup, List, Tuple, Dict,
               Range, View, BoundMethod, const JinjaFunction*, JinjaIterator*, JinjaLoop*,
               JinjaMacro*, JinjaNamespace*>
      storage_;
};

// Keys and values in the order in which the keys came. Keys are what Python can hash, tuples left
// out: strings, numbers, booleans, none. 1, 1.0 and true are one key.
class TemplateDict {
 public:
  struct Entry {
    TemplateValue key;
    TemplateValue value;
  };

  // Whether a value may be a key.
  static bool accepts(const TemplateValue& key);

  // A key that is there keeps its place. REQUIRES: accepts(key).
  void set(TemplateValue key, TemplateValue value);
  void set(std::string_view key, TemplateValue value) {
    set(TemplateValue::trusted(std::string(key)), std::move(value));
  }
  // Null when absent. REQUIRES: accepts(key).
  const TemplateValue* find(const TemplateValue& key) const;
  const TemplateValue* find(std::string_view key) const;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  size_t depth() const { return depth_; }

 private:
  template <typename Matches>
  size_t position_of(size_t hash, const Matches& matches) const;

  std::vector<Entry> entries_;
  std::unordered_multimap<size_t, size_t> index_;  // hash to position, once it pays
  size_t depth_ = 1;
};

}  // namespace ingot::text
