#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/jinja_syntax.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

class JinjaRuntime;

// A value that gives its items one by one and only once: a generator of Python's, made by filters
// such as map and select. Nothing is computed before somebody asks.
struct JinjaIterator {
  using Next = std::function<TemplateResult<std::optional<TemplateValue>>(JinjaRuntime&)>;
  Next next;
};

// The variables of one scope. A name without a value hides those outside.
struct JinjaScope {
  JinjaScope* parent = nullptr;
  std::unordered_map<std::string_view, std::optional<TemplateValue>> variables;
};

struct JinjaNamespace {
  TemplateDict attributes;
};

// A macro, or what is between {% call %} and {% endcall %}.
struct JinjaMacro {
  const JinjaStatement* statement = nullptr;
  JinjaScope* scope = nullptr;  // where it was defined
};

// The variable `loop`: one run of a for over its items, which it reads ahead by one at most.
struct JinjaLoop {
  const JinjaStatement* statement = nullptr;
  JinjaScope* scope = nullptr;  // around the for
  size_t depth = 1;
  JinjaIterator* items = nullptr;
  std::optional<int64_t> length;  // once known
  int64_t index = 0;              // from 1 within the body
  TemplateValue previous;
  TemplateValue current;
  std::optional<TemplateValue> following;
  bool is_at_end = false;  // there is nothing after `following`
  std::optional<TemplateList> last_changed;
};

// Sizes that no render exceeds at any time.
struct RenderLimits {
  // A single text, the output included: several times the longest context.
  static constexpr uint64_t kTextBytesMax = uint64_t{32} << 20;
  // Expressions, statements and macros within each other: a fraction of a thread's stack.
  static constexpr size_t kDepthMax = 500;
  // Containers within each other.
  static constexpr size_t kValueDepthMax = 100;
  // Items of a range(), as in Jinja's sandbox.
  static constexpr int64_t kRangeMax = 100'000;
};

// What one render may use in all. Steps and bytes are counted, not timed, so that a template and
// its variables either always render or never. All bytes ever made count, freed or not: a template
// that keeps everything stays below the same bound.
struct RenderBudget {
  // An expression, a statement or an item is a step. A conversation of a thousand messages takes
  // about a hundred thousand; this many take a second or two.
  uint64_t steps = 20'000'000;
  // Lists and dicts that are made, and texts in them.
  uint64_t list_bytes = uint64_t{512} << 20;
  // Texts that are put together. A million tokens are some 4 MB, and a template that adds up a
  // thousand of them one by one makes each sum anew.
  uint64_t text_bytes = uint64_t{2} << 30;
};

// The state of one render: what it used so far, and what lives until its end. One thread's.
class JinjaRuntime {
 public:
  JinjaRuntime(const std::tm& now, const RenderBudget& budget) : now_(now), budget_(budget) {}
  JinjaRuntime(const JinjaRuntime&) = delete;
  JinjaRuntime& operator=(const JinjaRuntime&) = delete;

  // The local time of this render, for strftime_now.
  const std::tm& now() const { return now_; }

  // Errors: kLimit. Call before doing the work, with its size.
  TemplateResult<void> spend_steps(uint64_t steps);
  TemplateResult<void> spend_bytes(uint64_t bytes);
  // A text of this many bytes: not too long, and spent.
  TemplateResult<void> spend_text(uint64_t bytes);

  // One more level for as long as it lives.
  class Level {
   public:
    explicit Level(JinjaRuntime& runtime) : runtime_(runtime) { ++runtime_.depth_; }
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    TemplateResult<void> check() const;

   private:
    JinjaRuntime& runtime_;
  };

  // Objects that live until the render ends.
  TemplateResult<JinjaScope*> new_scope(JinjaScope* parent);
  TemplateResult<JinjaIterator*> new_iterator(JinjaIterator::Next next);
  TemplateResult<JinjaNamespace*> new_namespace();
  TemplateResult<JinjaMacro*> new_macro(const JinjaStatement& statement, JinjaScope* scope);
  TemplateResult<JinjaLoop*> new_loop();

 private:
  template <typename T>
  TemplateResult<T*> keep(std::deque<T>& objects, T object);

  const std::tm& now_;
  uint64_t steps_ = 0;
  const RenderBudget budget_;
  uint64_t bytes_ = 0;
  uint64_t text_bytes_ = 0;
  size_t depth_ = 0;
  std::deque<JinjaScope> scopes_;
  std::deque<JinjaIterator> iterators_;
  std::deque<JinjaNamespace> namespaces_;
  std::deque<JinjaMacro> macros_;
  std::deque<JinjaLoop> loops_;
};

// The next item, or nothing at the end.
TemplateResult<std::optional<TemplateValue>> next_item(JinjaRuntime& runtime,
                                                       JinjaIterator& iterator);

// iter(value). Errors: kType when it cannot be iterated over.
TemplateResult<JinjaIterator*> iterate(JinjaRuntime& runtime, const TemplateValue& value);

// list(value).
TemplateResult<TemplateList> collect(JinjaRuntime& runtime, const TemplateValue& value);

// reversed(value).
TemplateResult<TemplateList> collect_reversed(JinjaRuntime& runtime, const TemplateValue& value);

// len(value); nothing when it has none.
std::optional<int64_t> length_of(const TemplateValue& value);

// Whether there is a next item; reads ahead by one.
TemplateResult<bool> has_following(JinjaRuntime& runtime, JinjaLoop& loop);
// len(loop): reads all that is left when the length does not show otherwise.
TemplateResult<int64_t> loop_length(JinjaRuntime& runtime, JinjaLoop& loop);

}  // namespace ingot::text
