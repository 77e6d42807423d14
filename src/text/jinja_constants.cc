#include "text/jinja_constants.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_renderer.h"

namespace ingot::text {
namespace {

using ExpressionKind = JinjaExpression::Kind;
using Value = TemplateValue;

// More than templates that mean well use; a constant that takes more is computed in the render.
constexpr RenderBudget kBudget{
    .steps = 1'000'000, .list_bytes = uint64_t{16} << 20, .text_bytes = uint64_t{16} << 20};
constexpr size_t kVisitsMax = 1'000'000;

JinjaExpressionPointer constant_node(Value value, TemplatePosition position) {
  auto node = std::make_unique<JinjaExpression>();
  node->position = position;
  node->constant = std::move(value);
  return node;
}

class Folder {
 public:
  TemplateResult<void> fold(JinjaBody& body) {
    for (auto& statement : body) TRY(fold(*statement));
    return {};
  }

 private:
  // The value of an expression when Jinja compiles it; nothing when it has none before the render.
  using Constant = std::optional<Value>;

  // An expression, and those that it is made of.
  struct Parts {
    std::vector<JinjaExpressionPointer*> nodes;
    std::vector<Constant> values;
  };

  TemplateResult<void> fold(JinjaStatement& statement) {
    if (statement.kind == JinjaStatement::Kind::kPrint) {
      TRY(fold_print(statement.value));
    } else {
      TRY(fold_root(statement.value));
    }
    TRY(fold_root(statement.test));
    for (auto& parameter : statement.parameters) TRY(fold_root(parameter.value));
    TRY(fold(statement.body));
    return fold(statement.orelse);
  }

  TemplateResult<void> fold_root(JinjaExpressionPointer& node) {
    if (node == nullptr) return {};
    const Constant value = TRY(fold(node));
    return value ? check_finite(*value, node->position) : TemplateResult<void>{};
  }

  // Whatever value a constant has, its text can be put in its place.
  TemplateResult<void> fold_print(JinjaExpressionPointer& node) {
    const Constant value = TRY(fold(node));
    if (!value || node->kind == ExpressionKind::kConstant) return {};
    auto text = evaluator_.print(*value);
    if (text) node = constant_node(Value::text(*std::move(text)), node->position);
    return {};
  }

  TemplateResult<Constant> fold(JinjaExpressionPointer& node) {
    Parts parts;
    for_each_child(*node, [&](JinjaExpressionPointer& child) { parts.nodes.push_back(&child); });
    for (JinjaExpressionPointer* child : parts.nodes) parts.values.push_back(TRY(fold(*child)));
    const Constant value = constant_of(*node, parts);
    if (!value) {
      for (size_t i = 0; i < parts.nodes.size(); ++i) {
        if (!parts.values[i]) continue;
        TRY(check_finite(*parts.values[i], (*parts.nodes[i])->position));
      }
    } else if (node->kind != ExpressionKind::kConstant && is_writable(*value)) {
      node = constant_node(*value, node->position);
    }
    return value;
  }

  Constant constant_of(JinjaExpression& node, const Parts& parts) {
    switch (node.kind) {
      case ExpressionKind::kConstant:
        return node.constant;
      case ExpressionKind::kName:
      case ExpressionKind::kCall:
        return std::nullopt;
      case ExpressionKind::kAnd:
      case ExpressionKind::kOr: {
        const bool is_or = node.kind == ExpressionKind::kOr;
        const Constant& left = parts.values[0];
        return !left || is_true(*left) == is_or ? left : parts.values[1];
      }
      case ExpressionKind::kConditional: {  // one that is false without an else is left alone
        const Constant& condition = parts.values[1];
        if (!condition) return std::nullopt;
        if (is_true(*condition)) return parts.values[0];
        return parts.values.size() > 2 ? parts.values[2] : std::nullopt;
      }
      case ExpressionKind::kCompare:
        return comparison(node, parts);
      case ExpressionKind::kFilter: {
        const bool calls_others = node.filter->names != JinjaFilter::Names::kNothing;
        if (node.operands[0] == nullptr || calls_others) return std::nullopt;
        return computed(node, parts);
      }
      default:
        return computed(node, parts);
    }
  }

  // a < b < c, of which the first that does not hold decides, whatever comes after it.
  Constant comparison(const JinjaExpression& node, const Parts& parts) {
    for (size_t i = 0; i < node.operators.size(); ++i) {
      if (!parts.values[i] || !parts.values[i + 1]) return std::nullopt;
      JinjaExpression pair;
      pair.kind = ExpressionKind::kCompare;
      pair.operators = {node.operators[i]};
      pair.operands.push_back(constant_node(*parts.values[i], node.position));
      pair.operands.push_back(constant_node(*parts.values[i + 1], node.position));
      const auto holds = evaluator_.evaluate(pair);
      if (!holds) return std::nullopt;
      if (!is_true(*holds)) return Value::boolean(false);
    }
    return Value::boolean(true);
  }

  // What an expression makes of the values of all of its parts, which take their place meanwhile.
  Constant computed(JinjaExpression& node, const Parts& parts) {
    for (const Constant& value : parts.values) {
      if (!value) return std::nullopt;
    }
    std::vector<JinjaExpressionPointer> originals;
    for (size_t i = 0; i < parts.nodes.size(); ++i) {
      JinjaExpressionPointer& place = *parts.nodes[i];
      auto constant = constant_node(*parts.values[i], place->position);
      originals.push_back(std::exchange(place, std::move(constant)));
    }
    const auto value = evaluator_.evaluate(node);
    for (size_t i = 0; i < originals.size(); ++i) *parts.nodes[i] = std::move(originals[i]);
    if (value) return *value;
    const bool has_no_such_slice =
        node.kind == ExpressionKind::kSlice && value.error().kind == TemplateError::Kind::kType;
    return has_no_such_slice ? Constant(Value()) : std::nullopt;
  }

  // Calls visit on a value and what is in it until it gives false; gives whether it always gave
  // true. False as well when there is too much to visit: containers may share what is in them.
  template <typename Visit>
  bool holds_for_all(const Value& value, const Visit& visit) {
    if (++num_visits_ > kVisitsMax || !visit(value)) return false;
    if (const TemplateList* items = value.as_sequence()) {
      return std::ranges::all_of(*items,
                                 [&](const Value& item) { return holds_for_all(item, visit); });
    }
    const TemplateDict* dict = value.as_dict();
    return dict == nullptr || std::ranges::all_of(dict->entries(), [&](const auto& entry) {
             return holds_for_all(entry.key, visit) && holds_for_all(entry.value, visit);
           });
  }

  static bool is_finite(const Value& value) {
    const double* real = value.get_if<double>();
    return real == nullptr || std::isfinite(*real);
  }

  // Whether Jinja writes such a value into its program. Others are computed anew in the render.
  bool is_writable(const Value& value) {
    return holds_for_all(value, [](const Value& part) {
      const bool is_literal = part.is_none() || part.is<bool>() || part.is<int64_t>() ||
                              part.is<Value::BigInteger>() || part.is<double>() ||
                              part.as_text() != nullptr || part.is<Value::Range>();
      return (is_literal && is_finite(part)) || part.as_sequence() != nullptr ||
             part.as_dict() != nullptr;
    });
  }

  TemplateResult<void> check_finite(const Value& value, TemplatePosition position) {
    bool is_all_finite = true;
    holds_for_all(value, [&](const Value& part) {
      is_all_finite = is_all_finite && is_finite(part);
      return is_all_finite;
    });
    if (is_all_finite) return {};
    return syntax_error(position, "a constant that is infinite or not a number; jinja2 has none");
  }

  JinjaEvaluator evaluator_{kBudget};
  size_t num_visits_ = 0;
};

}  // namespace

TemplateResult<void> fold_constants(JinjaTemplate& parsed) { return Folder().fold(parsed.body); }

}  // namespace ingot::text
