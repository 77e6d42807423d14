#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_lexer.h"
#include "text/template_value.h"

namespace ingot::text {

// The syntax tree of a template, as the parser leaves it: immutable, and no deeper than
// kJinjaNestingMax, so that walking it needs no care.
constexpr size_t kJinjaNestingMax = 100;

struct JinjaFilter;
struct JinjaTest;
struct JinjaExpression;
using JinjaExpressionPointer = std::unique_ptr<JinjaExpression>;

// (a, b, key=c, *rest, **options)
struct JinjaCallArguments {
  std::vector<JinjaExpressionPointer> positional;
  std::vector<std::pair<std::string, JinjaExpressionPointer>> keywords;
  JinjaExpressionPointer rest;
  JinjaExpressionPointer options;
};

enum class JinjaOperator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct JinjaExpression {
  enum class Kind {
    kConstant,     // constant
    kName,         // name
    kAttribute,    // operands[0].name
    kItem,         // operands[0][operands[1]]
    kSlice,        // operands[0][operands[1]:operands[2]:operands[3]], null where left out
    kCall,         // operands[0](arguments)
    kFilter,       // operands[0]|name(arguments); null for the text of a block
    kTest,         // operands[0] is name(arguments)
    kNegative,     // -operands[0]
    kPositive,     // +operands[0]
    kNot,          // not operands[0]
    kAnd,          // operands[0] and operands[1]
    kOr,           // operands[0] or operands[1]
    kBinary,       // operands[0] operators[0] operands[1]
    kCompare,      // operands[0] operators[0] operands[1] operators[1] operands[2] ...
    kConcat,       // operands[0] ~ operands[1] ~ ...
    kConditional,  // operands[0] if operands[1] else operands[2], which may be null
    kList,
    kTuple,
    kDict,       // operands[0]: operands[1], operands[2]: operands[3], ...
    kNamespace,  // name.attribute as the target of a set
  };

  Kind kind = Kind::kConstant;
  TemplatePosition position;
  size_t depth = 1;  // of this tree
  std::string name;
  std::string attribute;
  TemplateValue constant;
  std::vector<JinjaExpressionPointer> operands;
  std::vector<JinjaOperator> operators;
  JinjaCallArguments arguments;
  const JinjaFilter* filter = nullptr;
  const JinjaTest* test = nullptr;
};

// Calls visit with the pointer to every operand and argument that is there, in their order. The
// expression may be const.
template <typename Expression, typename Visit>
void for_each_child(Expression& node, const Visit& visit) {
  const auto maybe = [&](auto& child) {
    if (child != nullptr) visit(child);
  };
  for (auto& operand : node.operands) maybe(operand);
  for (auto& argument : node.arguments.positional) maybe(argument);
  for (auto& [keyword, value] : node.arguments.keywords) maybe(value);
  maybe(node.arguments.rest);
  maybe(node.arguments.options);
}

struct JinjaStatement;
using JinjaBody = std::vector<std::unique_ptr<JinjaStatement>>;

struct JinjaStatement {
  enum class Kind {
    kText,      // text
    kPrint,     // {{ value }}
    kIf,        // {% if value %}body{% else %}orelse
    kFor,       // {% for target in value if test recursive %}body{% else %}orelse
    kSet,       // {% set target = value %}
    kSetBlock,  // {% set target | filter %}body, value being the filter or null
    kMacro,     // {% macro name(parameters) %}body
    kCall,      // {% call(parameters) value %}body
    kFilter,    // {% filter value %}body
    kWith,      // {% with parameters %}body
    kScope,     // {% generation %}body
    kBreak,
    kContinue,
  };
  struct Parameter {
    std::string name;
    JinjaExpressionPointer value;  // the default of a macro's; null without one
  };

  Kind kind = Kind::kText;
  TemplatePosition position;
  PromptText text;
  std::string name;
  JinjaExpressionPointer value;
  JinjaExpressionPointer target;
  JinjaExpressionPointer test;
  bool is_recursive = false;
  std::vector<Parameter> parameters;
  JinjaBody body;
  JinjaBody orelse;

  // Names that a body's own scope has from the start, as yet without a value, so that they hide
  // what is outside; see jinja_scopes.h.
  std::vector<std::string> hidden;
  std::vector<std::string> hidden_in_orelse;
  // What the body of a macro or call reads beyond its parameters.
  bool reads_caller = false;
  bool reads_keywords = false;
  bool reads_positionals = false;
};

struct JinjaTemplate {
  JinjaBody body;
  std::vector<std::string> hidden;     // at the top
  std::vector<std::string> variables;  // what it reads from outside, sorted
  std::vector<std::string> literals;   // its texts and string literals, in order
};

}  // namespace ingot::text
