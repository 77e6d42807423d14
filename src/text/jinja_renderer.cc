#include "text/jinja_renderer.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_format.h"
#include "text/jinja_functions.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_tests.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using ExpressionKind = JinjaExpression::Kind;
using StatementKind = JinjaStatement::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

// The innermost place that failed is the one that an error names.
template <typename T>
TemplateResult<T> at_line(TemplateResult<T> result, size_t line) {
  if (!result && result.error().line == 0) result.error().line = line;
  return result;
}

class Renderer {
 public:
  Renderer(const TemplateVariables& variables, const std::tm& now, const RenderBudget& budget)
      : runtime_(now, budget) {
    for (const auto& [name, value] : variables) variables_.insert_or_assign(name, &value);
  }

  TemplateResult<PromptText> run(const JinjaTemplate& parsed) {
    PromptTextBuilder out;
    JinjaScope* top = TRY(open_scope(nullptr, parsed.hidden));
    TRY(run_whole(parsed.body, *top, out));
    TRY(runtime_.spend_text(out.size_bytes()));
    return out.take();
  }

  Result evaluate_alone(const JinjaExpression& expression) {
    return evaluate(expression, *TRY(runtime_.new_scope(nullptr)));
  }
  TemplateResult<PromptText> print(const Value& value) { return to_text(runtime_, value); }

 private:
  // How a body went on: to its end, or left by a break or continue.
  enum class Flow { kEnd, kBreak, kContinue };

  TemplateResult<JinjaScope*> open_scope(JinjaScope* parent,
                                         const std::vector<std::string>& hidden) {
    JinjaScope* scope = TRY(runtime_.new_scope(parent));
    for (const std::string& name : hidden) scope->variables.emplace(name, std::nullopt);
    return scope;
  }

  Value variable(const JinjaScope& from, const std::string& name) const {
    for (const JinjaScope* scope = &from; scope != nullptr; scope = scope->parent) {
      const auto found = scope->variables.find(name);
      if (found == scope->variables.end()) continue;
      return found->second ? *found->second : undefined_name(name);
    }
    if (const auto found = variables_.find(name); found != variables_.end()) return *found->second;
    if (const JinjaFunction* function = find_jinja_function(name)) return Value::of(function);
    return undefined_name(name);
  }

  static Value undefined_name(const std::string& name) {
    return Value::undefined(fmt::format("'{}' is undefined", name));
  }

  TemplateResult<Flow> run_body(const JinjaBody& body, JinjaScope& scope, PromptTextBuilder& out) {
    for (const auto& statement : body) {
      const Flow flow =
          TRY(at_line(run_statement(*statement, scope, out), statement->position.line));
      if (flow != Flow::kEnd) return flow;
    }
    return Flow::kEnd;
  }

  // A body that no break or continue leaves: the parser sees to that.
  TemplateResult<void> run_whole(const JinjaBody& body, JinjaScope& scope, PromptTextBuilder& out) {
    const Flow flow = TRY(run_body(body, scope, out));
    CHECK(flow == Flow::kEnd);
    return {};
  }

  TemplateResult<Flow> run_statement(const JinjaStatement& statement, JinjaScope& scope,
                                     PromptTextBuilder& out) {
    const JinjaRuntime::Level level(runtime_);
    TRY(level.check());
    TRY(runtime_.spend_steps(1));
    switch (statement.kind) {
      case StatementKind::kText:
        TRY(runtime_.spend_bytes(statement.text.text.size()));
        out.append(statement.text);
        return check_size(out);
      case StatementKind::kPrint:
        TRY(append_text(runtime_, out, TRY(evaluate(*statement.value, scope))));
        return Flow::kEnd;
      case StatementKind::kIf: {
        const bool holds = is_true(TRY(evaluate(*statement.value, scope)));
        return run_body(holds ? statement.body : statement.orelse, scope, out);
      }
      case StatementKind::kFor:
        return run_for(statement, scope, out);
      case StatementKind::kSet:
        TRY(assign(*statement.target, TRY(evaluate(*statement.value, scope)), scope));
        return Flow::kEnd;
      case StatementKind::kSetBlock:
        return run_set_block(statement, scope);
      case StatementKind::kMacro:
        scope.variables.insert_or_assign(statement.name,
                                         Value::of(TRY(runtime_.new_macro(statement, &scope))));
        return Flow::kEnd;
      case StatementKind::kCall: {
        const Value caller = Value::of(TRY(runtime_.new_macro(statement, &scope)));
        return write_string(TRY(call(*statement.value, scope, &caller)), out);
      }
      case StatementKind::kFilter:
        return run_filter_block(statement, scope, out);
      case StatementKind::kWith:
        return run_with(statement, scope, out);
      case StatementKind::kScope: {
        JinjaScope* inner = TRY(open_scope(&scope, statement.hidden));
        TRY(pass_arguments(statement, {}, *inner));
        return run_body(statement.body, *inner, out);
      }
      case StatementKind::kBreak:
        return Flow::kBreak;
      default:
        return Flow::kContinue;
    }
  }

  TemplateResult<Flow> check_size(const PromptTextBuilder& out) {
    if (out.size_bytes() > RenderLimits::kTextBytesMax) TRY(runtime_.spend_text(out.size_bytes()));
    return Flow::kEnd;
  }

  // Jinja joins what blocks leave without making strings of it.
  TemplateResult<Flow> write_string(const Value& value, PromptTextBuilder& out) {
    if (value.as_text() == nullptr) {
      return fail(ErrorKind::kType, "the block gives a {}, not a string", type_name(value));
    }
    TRY(append_text(runtime_, out, value));
    return Flow::kEnd;
  }

  TemplateResult<void> assign(const JinjaExpression& target, const Value& value,
                              JinjaScope& scope) {
    if (target.kind == ExpressionKind::kName) {
      scope.variables.insert_or_assign(target.name, value);
      return {};
    }
    if (target.kind == ExpressionKind::kNamespace) return assign_attribute(target, value, scope);
    TRY(check_namespaces(target, scope));
    const TemplateList items = TRY(collect(runtime_, value));
    if (items.size() != target.operands.size()) {
      return fail(ErrorKind::kValue, "{} values cannot be unpacked into {} names", items.size(),
                  target.operands.size());
    }
    for (size_t i = 0; i < items.size(); ++i) TRY(assign(*target.operands[i], items[i], scope));
    return {};
  }

  // All of them, before any is assigned to.
  TemplateResult<void> check_namespaces(const JinjaExpression& target, JinjaScope& scope) {
    if (target.kind == ExpressionKind::kNamespace &&
        !variable(scope, target.name).is<JinjaNamespace*>()) {
      return fail(ErrorKind::kType, "cannot assign attribute on non-namespace object '{}'",
                  target.name);
    }
    for (const auto& item : target.operands) TRY(check_namespaces(*item, scope));
    return {};
  }

  TemplateResult<void> assign_attribute(const JinjaExpression& target, const Value& value,
                                        JinjaScope& scope) {
    TRY(check_namespaces(target, scope));
    if (target.attribute.starts_with('_')) {
      return fail(ErrorKind::kSecurity, "a namespace has no attributes like '{}'",
                  target.attribute);
    }
    const Value space = variable(scope, target.name);
    (*space.get_if<JinjaNamespace*>())->attributes.set(target.attribute, value);
    return {};
  }

  TemplateResult<Flow> run_set_block(const JinjaStatement& statement, JinjaScope& scope) {
    PromptTextBuilder block;
    JinjaScope* inner = TRY(open_scope(&scope, statement.hidden));
    const Flow flow = TRY(run_body(statement.body, *inner, block));
    if (flow != Flow::kEnd) return flow;
    Value value = Value::text(block.take());
    if (statement.value != nullptr) value = TRY(filtered(*statement.value, value, *inner));
    TRY(assign(*statement.target, value, scope));
    return Flow::kEnd;
  }

  TemplateResult<Flow> run_filter_block(const JinjaStatement& statement, JinjaScope& scope,
                                        PromptTextBuilder& out) {
    PromptTextBuilder block;
    JinjaScope* inner = TRY(open_scope(&scope, statement.hidden));
    const Flow flow = TRY(run_body(statement.body, *inner, block));
    if (flow != Flow::kEnd) return flow;
    return write_string(TRY(filtered(*statement.value, Value::text(block.take()), *inner)), out);
  }

  // A chain of filters whose first is applied to a block's text.
  Result filtered(const JinjaExpression& filter, const Value& text, JinjaScope& scope) {
    const JinjaExpression* inner = filter.operands[0].get();
    const Value input = inner != nullptr ? TRY(filtered(*inner, text, scope)) : text;
    const JinjaArguments arguments = TRY(evaluate_arguments(filter.arguments, scope));
    return checked(apply_filter(runtime_, *filter.filter, input, arguments), filter.position.line);
  }

  TemplateResult<Flow> run_with(const JinjaStatement& statement, JinjaScope& scope,
                                PromptTextBuilder& out) {
    JinjaScope* inner = TRY(open_scope(&scope, statement.hidden));
    for (const auto& parameter : statement.parameters) {
      inner->variables.insert_or_assign(parameter.name, TRY(evaluate(*parameter.value, scope)));
    }
    return run_body(statement.body, *inner, out);
  }

  TemplateResult<Flow> run_for(const JinjaStatement& statement, JinjaScope& scope,
                               PromptTextBuilder& out) {
    const Value items = TRY(evaluate(*statement.value, scope));
    return run_loop(statement, items, scope, 1, out);
  }

  // The items of a loop that pass its test, tried one by one.
  TemplateResult<JinjaIterator*> tested(const JinjaStatement& statement, JinjaIterator* items,
                                        JinjaScope& scope) {
    return runtime_.new_iterator(
        [this, &statement, items, &scope](JinjaRuntime&) -> TemplateResult<std::optional<Value>> {
          while (auto item = TRY(next_item(runtime_, *items))) {
            JinjaScope* inner = TRY(runtime_.new_scope(&scope));
            TRY(assign(*statement.target, *item, *inner));
            if (is_true(TRY(evaluate(*statement.test, *inner)))) return item;
          }
          return std::optional<Value>{};
        });
  }

  // One run of a loop over its items; a recursive one may be run again from within.
  TemplateResult<Flow> run_loop(const JinjaStatement& statement, const Value& items,
                                JinjaScope& scope, size_t depth, PromptTextBuilder& out) {
    JinjaLoop& loop = *TRY(runtime_.new_loop());
    loop.statement = &statement;
    loop.scope = &scope;
    loop.depth = depth;
    loop.items = TRY(iterate(runtime_, items));
    loop.length = length_of(items);
    if (statement.test != nullptr) {
      loop.items = TRY(tested(statement, loop.items, scope));
      loop.length.reset();
    }
    bool is_through = false;  // some run of the body got to its end
    while (TRY(has_following(runtime_, loop))) {
      loop.previous = std::exchange(loop.current, *std::exchange(loop.following, std::nullopt));
      ++loop.index;
      JinjaScope* inner = TRY(open_scope(&scope, statement.hidden));
      inner->variables.insert_or_assign("loop", Value::of(&loop));
      TRY(assign(*statement.target, loop.current, *inner));
      const Flow flow = TRY(run_body(statement.body, *inner, out));
      if (flow == Flow::kBreak) break;
      is_through = is_through || flow == Flow::kEnd;
    }
    // Jinja also runs the else of a loop that was left or continued every time.
    if (is_through) return Flow::kEnd;
    JinjaScope* inner = TRY(open_scope(&scope, statement.hidden_in_orelse));
    return run_body(statement.orelse, *inner, out);
  }

  // What every value that was computed passes: it may not nest too deep.
  static Result checked(Result result, size_t line) {
    if (result && result->depth() > RenderLimits::kValueDepthMax) {
      result = fail(ErrorKind::kLimit, "lists and dicts nest deeper than {}",
                    RenderLimits::kValueDepthMax);
    }
    return at_line(std::move(result), line);
  }

  Result evaluate(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaRuntime::Level level(runtime_);
    TRY(level.check());
    TRY(runtime_.spend_steps(1));
    return checked(evaluate_node(node, scope), node.position.line);
  }

  Result evaluate_node(const JinjaExpression& node, JinjaScope& scope) {
    switch (node.kind) {
      case ExpressionKind::kConstant:
        return node.constant;
      case ExpressionKind::kName:
        return variable(scope, node.name);
      case ExpressionKind::kAttribute:
        return get_attribute(runtime_, TRY(evaluate(*node.operands[0], scope)), node.name);
      case ExpressionKind::kItem:
        return evaluate_item(node, scope);
      case ExpressionKind::kSlice:
        return evaluate_slice(node, scope);
      case ExpressionKind::kCall:
        return call(node, scope, nullptr);
      case ExpressionKind::kFilter:
        return evaluate_filter(node, scope);
      case ExpressionKind::kTest:
        return evaluate_test(node, scope);
      case ExpressionKind::kNegative:
        return negate(TRY(evaluate(*node.operands[0], scope)));
      case ExpressionKind::kPositive:
        return affirm(TRY(evaluate(*node.operands[0], scope)));
      case ExpressionKind::kNot:
        return Value::boolean(!is_true(TRY(evaluate(*node.operands[0], scope))));
      case ExpressionKind::kAnd:
      case ExpressionKind::kOr:
        return evaluate_logical(node, scope);
      case ExpressionKind::kBinary:
        return evaluate_binary(node, scope);
      case ExpressionKind::kCompare:
        return evaluate_compare(node, scope);
      case ExpressionKind::kConcat:
        return evaluate_concat(node, scope);
      case ExpressionKind::kConditional:
        return evaluate_conditional(node, scope);
      case ExpressionKind::kList:
        return Value::list(TRY(evaluate_operands(node, scope)));
      case ExpressionKind::kTuple:
        return Value::tuple(TRY(evaluate_operands(node, scope)));
      default:
        return evaluate_dict(node, scope);
    }
  }

  TemplateResult<TemplateList> evaluate_operands(const JinjaExpression& node, JinjaScope& scope) {
    TRY(runtime_.spend_bytes(node.operands.size() * sizeof(Value)));
    TemplateList items;
    items.reserve(node.operands.size());
    for (const auto& operand : node.operands) items.push_back(TRY(evaluate(*operand, scope)));
    return items;
  }

  Result evaluate_item(const JinjaExpression& node, JinjaScope& scope) {
    const Value value = TRY(evaluate(*node.operands[0], scope));
    return get_item(runtime_, value, TRY(evaluate(*node.operands[1], scope)));
  }

  Result evaluate_slice(const JinjaExpression& node, JinjaScope& scope) {
    const Value value = TRY(evaluate(*node.operands[0], scope));
    std::array<Value, 3> parts = {Value::none(), Value::none(), Value::none()};
    for (size_t i = 0; i < parts.size(); ++i) {
      const JinjaExpression* part = node.operands[i + 1].get();
      if (part != nullptr) parts[i] = TRY(evaluate(*part, scope));
    }
    return get_slice(runtime_, value, parts);
  }

  Result evaluate_filter(const JinjaExpression& node, JinjaScope& scope) {
    const Value value = TRY(evaluate(*node.operands[0], scope));
    const JinjaArguments arguments = TRY(evaluate_arguments(node.arguments, scope));
    return apply_filter(runtime_, *node.filter, value, arguments);
  }

  Result evaluate_test(const JinjaExpression& node, JinjaScope& scope) {
    const Value value = TRY(evaluate(*node.operands[0], scope));
    const JinjaArguments arguments = TRY(evaluate_arguments(node.arguments, scope));
    return Value::boolean(TRY(apply_test(runtime_, *node.test, value, arguments)));
  }

  Result evaluate_logical(const JinjaExpression& node, JinjaScope& scope) {
    Value left = TRY(evaluate(*node.operands[0], scope));
    if (is_true(left) == (node.kind == ExpressionKind::kOr)) return left;
    return evaluate(*node.operands[1], scope);
  }

  Result evaluate_binary(const JinjaExpression& node, JinjaScope& scope) {
    const Value left = TRY(evaluate(*node.operands[0], scope));
    const Value right = TRY(evaluate(*node.operands[1], scope));
    return compute(runtime_, node.operators[0], left, right);
  }

  Result evaluate_compare(const JinjaExpression& node, JinjaScope& scope) {
    Value left = TRY(evaluate(*node.operands[0], scope));
    for (size_t i = 0; i < node.operators.size(); ++i) {
      Value right = TRY(evaluate(*node.operands[i + 1], scope));
      if (!TRY(compare(runtime_, node.operators[i], left, right))) return Value::boolean(false);
      left = std::move(right);
    }
    return Value::boolean(true);
  }

  Result evaluate_concat(const JinjaExpression& node, JinjaScope& scope) {
    const TemplateList parts = TRY(evaluate_operands(node, scope));
    PromptTextBuilder out;
    for (const Value& part : parts) TRY(append_text(runtime_, out, part));
    return Value::text(out.take());
  }

  Result evaluate_conditional(const JinjaExpression& node, JinjaScope& scope) {
    if (is_true(TRY(evaluate(*node.operands[1], scope)))) {
      return evaluate(*node.operands[0], scope);
    }
    if (node.operands[2] != nullptr) return evaluate(*node.operands[2], scope);
    return Value::undefined(
        "the inline if-expression evaluated to false and no else section was defined");
  }

  Result evaluate_dict(const JinjaExpression& node, JinjaScope& scope) {
    TRY(runtime_.spend_bytes(node.operands.size() * sizeof(Value)));
    TemplateDict dict;
    for (size_t i = 0; i < node.operands.size(); i += 2) {
      const Value key = TRY(evaluate(*node.operands[i], scope));
      Value value = TRY(evaluate(*node.operands[i + 1], scope));
      if (!TemplateDict::accepts(key)) {
        return fail(key.is_hashable() ? ErrorKind::kUnsupported : ErrorKind::kType,
                    "a {} as the key of a dict", type_name(key));
      }
      dict.set(key, std::move(value));
    }
    return Value::dict(std::move(dict));
  }

  TemplateResult<JinjaArguments> evaluate_arguments(const JinjaCallArguments& written,
                                                    JinjaScope& scope) {
    JinjaArguments arguments;
    for (const auto& value : written.positional) {
      arguments.positional.push_back(TRY(evaluate(*value, scope)));
    }
    for (const auto& [keyword, value] : written.keywords) {
      arguments.keywords.emplace_back(keyword, TRY(evaluate(*value, scope)));
    }
    if (written.rest != nullptr) {
      for (Value& value : TRY(collect(runtime_, TRY(evaluate(*written.rest, scope))))) {
        arguments.positional.push_back(std::move(value));
      }
    }
    if (written.options != nullptr) TRY(add_options(*written.options, scope, arguments));
    return arguments;
  }

  TemplateResult<void> add_options(const JinjaExpression& options, JinjaScope& scope,
                                   JinjaArguments& arguments) {
    const Value value = TRY(evaluate(options, scope));
    const TemplateDict* dict = value.as_dict();
    if (dict == nullptr) {
      return fail(ErrorKind::kType, "what comes behind ** is a mapping, not {}", type_name(value));
    }
    for (const auto& [key, option] : dict->entries()) {
      const PromptText* name = key.as_text();
      if (name == nullptr) return fail(ErrorKind::kType, "keywords must be strings");
      for (const auto& [keyword, other] : arguments.keywords) {
        if (keyword == name->text) {
          return fail(ErrorKind::kType, "argument '{}' comes twice", keyword);
        }
      }
      TRY(runtime_.spend_steps(arguments.keywords.size() / 4));
      arguments.keywords.emplace_back(name->text, option);
    }
    return {};
  }

  // A call, with the block of a {% call %} as one more argument.
  Result call(const JinjaExpression& node, JinjaScope& scope, const Value* caller) {
    const Value callee = TRY(evaluate(*node.operands[0], scope));
    JinjaArguments arguments = TRY(evaluate_arguments(node.arguments, scope));
    if (caller != nullptr) arguments.keywords.emplace_back("caller", *caller);
    if (callee.is_undefined()) return undefined_error(callee);
    if (const auto* method = callee.get_if<Value::BoundMethod>()) {
      return call_method(runtime_, *method, arguments);
    }
    if (const auto* function = callee.get_if<const JinjaFunction*>()) {
      return call_function(runtime_, **function, arguments);
    }
    if (JinjaMacro* const* macro = callee.get_if<JinjaMacro*>()) {
      return call_macro(**macro, std::move(arguments));
    }
    if (JinjaLoop* const* loop = callee.get_if<JinjaLoop*>()) {
      return call_loop(**loop, arguments);
    }
    return fail(ErrorKind::kType, "'{}' object is not callable", type_name(callee));
  }

  Result call_loop(const JinjaLoop& loop, const JinjaArguments& arguments) {
    if (!loop.statement->is_recursive) {
      return fail(ErrorKind::kType, "the loop must have the 'recursive' marker to be called");
    }
    if (arguments.positional.size() != 1 || !arguments.keywords.empty()) {
      return fail(ErrorKind::kType, "loop() takes what to iterate over");
    }
    PromptTextBuilder out;
    const Flow flow =
        TRY(run_loop(*loop.statement, arguments.positional[0], *loop.scope, loop.depth + 1, out));
    CHECK(flow == Flow::kEnd);
    return Value::text(out.take());
  }

  Result call_macro(const JinjaMacro& macro, JinjaArguments arguments) {
    const JinjaStatement& statement = *macro.statement;
    JinjaScope* scope = TRY(open_scope(macro.scope, statement.hidden));
    TRY(pass_arguments(statement, std::move(arguments), *scope));
    PromptTextBuilder out;
    TRY(run_whole(statement.body, *scope, out));
    return Value::text(out.take());
  }

  static std::optional<Value> take_keyword(JinjaArguments& arguments, std::string_view name) {
    const auto keyword =
        std::find_if(arguments.keywords.begin(), arguments.keywords.end(),
                     [&](const auto& candidate) { return candidate.first == name; });
    if (keyword == arguments.keywords.end()) return std::nullopt;
    std::optional<Value> value = std::move(keyword->second);
    arguments.keywords.erase(keyword);
    return value;
  }

  // Gives a macro's scope its parameters, defaults last and in order, since they may use the
  // parameters before them.
  TemplateResult<void> pass_arguments(const JinjaStatement& statement, JinjaArguments arguments,
                                      JinjaScope& scope) {
    const auto& parameters = statement.parameters;
    const size_t num_given = std::min(arguments.positional.size(), parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      scope.variables.insert_or_assign(parameters[i].name,
                                       i < num_given ? std::optional(arguments.positional[i])
                                                     : take_keyword(arguments, parameters[i].name));
    }
    if (statement.reads_caller) {
      scope.variables.insert_or_assign(
          "caller",
          take_keyword(arguments, "caller").value_or(Value::undefined("No caller defined")));
    }
    TRY(pass_the_rest(statement, arguments, num_given, scope));
    for (const auto& parameter : parameters) {
      if (scope.variables.at(parameter.name)) continue;
      Value value = parameter.value != nullptr ? TRY(evaluate(*parameter.value, scope))
                        : Value::undefined(fmt::format("parameter '{}' was not provided",
                                                       parameter.name));
                        scope.variables.insert_or_assign(parameter.name, std::move(value));
    }
    return {};
  }

  TemplateResult<void> pass_the_rest(const JinjaStatement& statement, JinjaArguments& arguments,
                                     size_t num_given, JinjaScope& scope) {
    const std::string_view name =
        statement.name.empty() ? std::string_view("caller") : std::string_view(statement.name);
    if (statement.reads_keywords) {
      TemplateDict keywords;
      for (const auto& [keyword, value] : arguments.keywords) keywords.set(keyword, value);
      scope.variables.insert_or_assign("kwargs", Value::dict(std::move(keywords)));
    } else if (!arguments.keywords.empty()) {
      return fail(ErrorKind::kType, "macro '{}' takes no keyword argument '{}'", name,
                  arguments.keywords.front().first);
    }
    if (statement.reads_positionals) {
      const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(num_given);
      scope.variables.insert_or_assign("varargs", Value::tuple({rest, arguments.positional.end()}));
    } else if (arguments.positional.size() > num_given) {
      return fail(ErrorKind::kType, "macro '{}' takes not more than {} argument(s)", name,
                  statement.parameters.size());
    }
    return {};
  }

  JinjaRuntime runtime_;
  std::unordered_map<std::string_view, const Value*> variables_;
};

}  // namespace

TemplateResult<PromptText> render_jinja(const JinjaTemplate& parsed,
                                        const TemplateVariables& variables, const std::tm& now,
                                        const RenderBudget& budget) {
  return Renderer(variables, now, budget).run(parsed);
}

struct JinjaEvaluator::State {
  explicit State(const RenderBudget& budget) : renderer({}, now, budget) {}

  const std::tm now{};
  Renderer renderer;
};

JinjaEvaluator::JinjaEvaluator(const RenderBudget& budget)
    : state_(std::make_unique<State>(budget)) {}
JinjaEvaluator::~JinjaEvaluator() = default;

Result JinjaEvaluator::evaluate(const JinjaExpression& expression) {
  return state_->renderer.evaluate_alone(expression);
}

TemplateResult<PromptText> JinjaEvaluator::print(const TemplateValue& value) {
  return state_->renderer.print(value);
}

}  // namespace ingot::text
