#include "text/jinja_expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_tests.h"

namespace ingot::text {
namespace {

using Kind = JinjaExpression::Kind;
using Token = JinjaToken::Kind;

// Rules that call each other for one expression; bounds the parser's own stack.
constexpr size_t kRulesMax = 300;

// Functions of Jinja's that make text which nobody can foretell, or are of no use to a chat.
constexpr std::array<std::string_view, 3> kUnsupportedFunctions = {"lipsum", "cycler", "joiner"};

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

// Counts one rule for as long as it lives.
class Nesting {
 public:
  explicit Nesting(size_t& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool is_too_deep() const { return depth_ > kRulesMax; }

 private:
  size_t& depth_;
};

}  // namespace

bool JinjaTokens::at_name(std::string_view name) const {
  return current().kind == Token::kName && current().text == name;
}

bool JinjaTokens::at_operator(std::string_view symbol) const {
  return current().kind == Token::kOperator && current().text == symbol;
}

bool JinjaTokens::skip_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) take();
  return found;
}

bool JinjaTokens::skip_operator(std::string_view symbol) {
  const bool found = at_operator(symbol);
  if (found) take();
  return found;
}

TemplateResult<void> JinjaTokens::expect(Token kind, std::string_view what) {
  if (current().kind != kind) return unexpected(fmt::format("'{}' has to come here", what));
  take();
  return {};
}

TemplateResult<void> JinjaTokens::expect_name(std::string_view name) {
  if (!skip_name(name)) return unexpected(fmt::format("'{}' has to come here", name));
  return {};
}

TemplateResult<void> JinjaTokens::expect_operator(std::string_view symbol) {
  if (!skip_operator(symbol)) return unexpected(fmt::format("'{}' has to come here", symbol));
  return {};
}

std::unexpected<TemplateError> JinjaTokens::failure(std::string_view what) const {
  return syntax_error(current().position, what);
}

std::unexpected<TemplateError> JinjaTokens::unexpected(std::string_view what) const {
  switch (current().kind) {
    case Token::kEnd:
      return failure(fmt::format("{}, but the template ends", what));
    case Token::kText:
      return failure(fmt::format("{}, not text", what));
    default:
      return failure(fmt::format("{}, not '{}'", what, current().text));
  }
}

JinjaExpressionPointer ExpressionParser::make(Kind kind, TemplatePosition position) const {
  auto node = std::make_unique<JinjaExpression>();
  node->kind = kind;
  node->position = position;
  return node;
}

// Every node passes here once it has its operands.
ExpressionParser::Parsed ExpressionParser::finish(JinjaExpressionPointer node) const {
  size_t depth = 0;
  const auto look = [&](const JinjaExpressionPointer& child) {
    if (child != nullptr) depth = std::max(depth, child->depth);
  };
  std::for_each(node->operands.begin(), node->operands.end(), look);
  const JinjaCallArguments& arguments = node->arguments;
  std::for_each(arguments.positional.begin(), arguments.positional.end(), look);
  for (const auto& [keyword, value] : arguments.keywords) look(value);
  look(arguments.rest);
  look(arguments.options);
  node->depth = depth + 1;
  if (node->depth > kJinjaNestingMax) {
    return syntax_error(node->position,
                        fmt::format("an expression nests deeper than {}", kJinjaNestingMax));
  }
  return node;
}

ExpressionParser::Parsed ExpressionParser::parse_tuple_of(Rule rule, std::string_view end,
                                                          bool in_parentheses) {
  auto tuple = make(Kind::kTuple, tokens_.current().position);
  bool has_comma = false;
  const auto at_end = [&] {
    const Token kind = tokens_.current().kind;
    return kind == Token::kVariableEnd || kind == Token::kBlockEnd || tokens_.at_operator(")") ||
           (!end.empty() && tokens_.at_name(end));
  };
  while (!at_end()) {
    tuple->operands.push_back(TRY((this->*rule)()));
    if (!tokens_.skip_operator(",")) break;
    has_comma = true;
  }
  if (has_comma) return finish(std::move(tuple));
  if (!tuple->operands.empty()) return std::move(tuple->operands.front());
  if (!in_parentheses) return tokens_.unexpected("an expression comes here");
  return finish(std::move(tuple));
}

ExpressionParser::Parsed ExpressionParser::parse_target(std::string_view end) {
  return parse_tuple_of(&ExpressionParser::parse_target_item, end, false);
}

ExpressionParser::Parsed ExpressionParser::parse_name_target() {
  const JinjaToken& token = tokens_.current();
  if (token.kind != Token::kName) return tokens_.unexpected("a name comes here");
  if (is_constant_name(token.text) || token.text == "loop") {
    return tokens_.failure(fmt::format("'{}' cannot be assigned to", token.text));
  }
  auto node = make(Kind::kName, token.position);
  node->name = token.text;
  tokens_.take();
  return node;
}

ExpressionParser::Parsed ExpressionParser::parse_target_item() {
  const Nesting nesting(nesting_);
  if (nesting.is_too_deep()) return tokens_.failure("parentheses nest too deep");
  if (tokens_.skip_operator("(")) {
    auto tuple = TRY(parse_tuple_of(&ExpressionParser::parse_target_item, "", true));
    TRY(tokens_.expect_operator(")"));
    return tuple;
  }
  auto node = TRY(parse_name_target());
  if (tokens_.skip_operator(".")) {
    node->kind = Kind::kNamespace;
    node->attribute = tokens_.current().text;
    TRY(tokens_.expect(Token::kName, "a name"));
  }
  return node;
}

ExpressionParser::Parsed ExpressionParser::parse_conditional() {
  const Nesting nesting(nesting_);
  if (nesting.is_too_deep()) return tokens_.failure("the expression nests too deep");
  const TemplatePosition position = tokens_.current().position;
  auto left = TRY(parse_or());
  while (tokens_.skip_name("if")) {
    auto node = make(Kind::kConditional, position);
    node->operands.push_back(std::move(left));
    node->operands.push_back(TRY(parse_or()));
    node->operands.push_back(nullptr);
    if (tokens_.skip_name("else")) node->operands.back() = TRY(parse_conditional());
    left = TRY(finish(std::move(node)));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::parse_or() {
  auto left = TRY(parse_and());
  while (tokens_.at_name("or")) {
    auto node = make(Kind::kOr, tokens_.take().position);
    node->operands.push_back(std::move(left));
    node->operands.push_back(TRY(parse_and()));
    left = TRY(finish(std::move(node)));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::parse_and() {
  auto left = TRY(parse_not());
  while (tokens_.at_name("and")) {
    auto node = make(Kind::kAnd, tokens_.take().position);
    node->operands.push_back(std::move(left));
    node->operands.push_back(TRY(parse_not()));
    left = TRY(finish(std::move(node)));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) return parse_compare();
  const Nesting nesting(nesting_);
  if (nesting.is_too_deep()) return tokens_.failure("the expression nests too deep");
  auto node = make(Kind::kNot, tokens_.take().position);
  node->operands.push_back(TRY(parse_not()));
  return finish(std::move(node));
}

ExpressionParser::Parsed ExpressionParser::parse_compare() {
  static constexpr std::pair<std::string_view, JinjaOperator> kSymbols[] = {
      {"==", JinjaOperator::kEqual},  {"!=", JinjaOperator::kNotEqual},
      {"<", JinjaOperator::kLess},    {"<=", JinjaOperator::kLessEqual},
      {">", JinjaOperator::kGreater}, {">=", JinjaOperator::kGreaterEqual},
  };
  auto node = make(Kind::kCompare, tokens_.current().position);
  node->operands.push_back(TRY(parse_sum()));
  while (true) {
    const auto symbol =
        std::find_if(std::begin(kSymbols), std::end(kSymbols),
                     [&](const auto& row) { return tokens_.at_operator(row.first); });
    const bool is_not_in = tokens_.at_name("not") && tokens_.next().kind == Token::kName &&
                           tokens_.next().text == "in";
    if (symbol != std::end(kSymbols)) {
      node->operators.push_back(symbol->second);
    } else if (is_not_in) {
      tokens_.take();
      node->operators.push_back(JinjaOperator::kNotIn);
    } else if (tokens_.at_name("in")) {
      node->operators.push_back(JinjaOperator::kIn);
    } else {
      break;
    }
    tokens_.take();
    node->operands.push_back(TRY(parse_sum()));
  }
  if (node->operators.empty()) return std::move(node->operands.front());
  return finish(std::move(node));
}

// Binary operators of one rank, from left to right.
ExpressionParser::Parsed ExpressionParser::parse_left(
    Rule operand, Kind kind,
    std::initializer_list<std::pair<std::string_view, JinjaOperator>> operators) {
  auto left = TRY((this->*operand)());
  while (true) {
    const auto found = std::find_if(operators.begin(), operators.end(), [&](const auto& row) {
      return tokens_.at_operator(row.first);
    });
    if (found == operators.end()) return left;
    auto node = make(kind, tokens_.take().position);
    node->operators.push_back(found->second);
    node->operands.push_back(std::move(left));
    node->operands.push_back(TRY((this->*operand)()));
    left = TRY(finish(std::move(node)));
  }
}

ExpressionParser::Parsed ExpressionParser::parse_sum() {
  return parse_left(&ExpressionParser::parse_concat, Kind::kBinary,
                    {{"+", JinjaOperator::kAdd}, {"-", JinjaOperator::kSubtract}});
}

ExpressionParser::Parsed ExpressionParser::parse_concat() {
  auto node = make(Kind::kConcat, tokens_.current().position);
  do {
    node->operands.push_back(TRY(parse_product()));
  } while (tokens_.skip_operator("~"));
  if (node->operands.size() == 1) return std::move(node->operands.front());
  return finish(std::move(node));
}

ExpressionParser::Parsed ExpressionParser::parse_product() {
  return parse_left(&ExpressionParser::parse_power, Kind::kBinary,
                    {{"*", JinjaOperator::kMultiply},
                     {"/", JinjaOperator::kDivide},
                     {"//", JinjaOperator::kFloorDivide},
                     {"%", JinjaOperator::kModulo}});
}

ExpressionParser::Parsed ExpressionParser::parse_power() {
  return parse_left(&ExpressionParser::parse_unary, Kind::kBinary, {{"**", JinjaOperator::kPower}});
}

ExpressionParser::Parsed ExpressionParser::parse_unary() {
  return parse_filters_and_tests(TRY(parse_signed()));
}

ExpressionParser::Parsed ExpressionParser::parse_signed() {
  const Nesting nesting(nesting_);
  if (nesting.is_too_deep()) return tokens_.failure("the expression nests too deep");
  const bool is_negative = tokens_.at_operator("-");
  if (!is_negative && !tokens_.at_operator("+")) return parse_postfix(TRY(parse_primary()));
  auto node = make(is_negative ? Kind::kNegative : Kind::kPositive, tokens_.take().position);
  node->operands.push_back(TRY(parse_signed()));
  return parse_postfix(TRY(finish(std::move(node))));
}

ExpressionParser::Parsed ExpressionParser::parse_primary() {
  const JinjaToken& token = tokens_.current();
  if (token.kind == Token::kName) {
    tokens_.take();
    auto node = make(Kind::kConstant, token.position);
    if (token.text == "none" || token.text == "None") {
      node->constant = TemplateValue::none();
    } else if (is_constant_name(token.text)) {
      node->constant = TemplateValue::boolean(token.text == "true" || token.text == "True");
    } else {
      node->kind = Kind::kName;
      node->name = token.text;
    }
    return node;
  }
  if (token.kind == Token::kString) {
    auto node = make(Kind::kConstant, token.position);
    std::string text;
    while (tokens_.current().kind == Token::kString) text += tokens_.take().text;
    node->constant = TemplateValue::trusted(std::move(text));
    return node;
  }
  if (token.kind == Token::kInteger || token.kind == Token::kFloat) return parse_number();
  if (tokens_.skip_operator("(")) {
    auto node = TRY(parse_tuple_of(&ExpressionParser::parse_conditional, "", true));
    TRY(tokens_.expect_operator(")"));
    return node;
  }
  if (tokens_.at_operator("[")) return parse_list();
  if (tokens_.at_operator("{")) return parse_dict();
  return tokens_.unexpected("an expression comes here");
}

ExpressionParser::Parsed ExpressionParser::parse_number() {
  const JinjaToken& token = tokens_.take();
  auto node = make(Kind::kConstant, token.position);
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == Token::kFloat) {
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc{}) {
      return syntax_error(token.position, "a number that fits no double");
    }
    node->constant = TemplateValue::real(value);
    return node;
  }
  int64_t value = 0;
  node->constant = std::from_chars(begin, end, value).ec == std::errc{}
                       ? TemplateValue::integer(value)
                       : TemplateValue::big_integer(token.text);
  return node;
}

ExpressionParser::Parsed ExpressionParser::parse_list() {
  auto node = make(Kind::kList, tokens_.take().position);
  while (!tokens_.at_operator("]")) {
    node->operands.push_back(TRY(parse_conditional()));
    if (!tokens_.at_operator("]")) TRY(tokens_.expect_operator(","));
  }
  tokens_.take();
  return finish(std::move(node));
}

ExpressionParser::Parsed ExpressionParser::parse_dict() {
  auto node = make(Kind::kDict, tokens_.take().position);
  while (!tokens_.at_operator("}")) {
    node->operands.push_back(TRY(parse_conditional()));
    TRY(tokens_.expect_operator(":"));
    node->operands.push_back(TRY(parse_conditional()));
    if (!tokens_.at_operator("}")) TRY(tokens_.expect_operator(","));
  }
  tokens_.take();
  return finish(std::move(node));
}

ExpressionParser::Parsed ExpressionParser::parse_postfix(JinjaExpressionPointer node) {
  while (true) {
    if (tokens_.at_operator(".")) {
      node = TRY(parse_attribute(std::move(node)));
    } else if (tokens_.at_operator("[")) {
      node = TRY(parse_subscript(std::move(node)));
    } else if (tokens_.at_operator("(")) {
      node = TRY(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionParser::Parsed ExpressionParser::parse_filters_and_tests(JinjaExpressionPointer node) {
  while (true) {
    if (tokens_.at_operator("|")) {
      node = TRY(parse_filters(std::move(node)));
    } else if (tokens_.at_name("is")) {
      node = TRY(parse_test(std::move(node)));
    } else if (tokens_.at_operator("(")) {
      node = TRY(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionParser::Parsed ExpressionParser::parse_attribute(JinjaExpressionPointer node) {
  tokens_.take();
  const JinjaToken& token = tokens_.current();
  if (token.kind == Token::kInteger) {
    auto item = make(Kind::kItem, token.position);
    item->operands.push_back(std::move(node));
    item->operands.push_back(TRY(parse_number()));
    return finish(std::move(item));
  }
  auto attribute = make(Kind::kAttribute, token.position);
  attribute->name = token.text;
  TRY(tokens_.expect(Token::kName, "a name"));
  attribute->operands.push_back(std::move(node));
  return finish(std::move(attribute));
}

ExpressionParser::Parsed ExpressionParser::parse_subscript(JinjaExpressionPointer node) {
  auto item = make(Kind::kItem, tokens_.take().position);
  item->operands.push_back(std::move(node));
  const auto at_part_end = [&] { return tokens_.at_operator(":") || tokens_.at_operator("]"); };
  if (tokens_.at_operator("]")) return tokens_.failure("an index comes here");
  item->operands.push_back(at_part_end() ? nullptr : TRY(parse_conditional()));
  if (tokens_.at_operator(":")) {
    item->kind = Kind::kSlice;
    item->operands.resize(4);
    for (size_t part = 2; part < 4 && tokens_.skip_operator(":"); ++part) {
      if (!at_part_end()) item->operands[part] = TRY(parse_conditional());
    }
  }
  if (tokens_.at_operator(",")) {
    return tokens_.failure("several indexes in one pair of brackets are not supported");
  }
  TRY(tokens_.expect_operator("]"));
  return finish(std::move(item));
}

ExpressionParser::Parsed ExpressionParser::parse_call(JinjaExpressionPointer callee) {
  const TemplatePosition position = callee->position;
  if (callee->kind == Kind::kAttribute && !is_jinja_method_name(callee->name)) {
    return syntax_error(position, fmt::format("method '{}' is not supported", callee->name));
  }
  const bool is_unsupported = callee->kind == Kind::kName &&
                              std::find(kUnsupportedFunctions.begin(), kUnsupportedFunctions.end(),
                                        callee->name) != kUnsupportedFunctions.end();
  if (is_unsupported) {
    return syntax_error(position, fmt::format("function '{}' is not supported", callee->name));
  }
  auto node = make(Kind::kCall, position);
  node->arguments = TRY(parse_arguments());
  node->operands.push_back(std::move(callee));
  return finish(std::move(node));
}

TemplateResult<JinjaCallArguments> ExpressionParser::parse_arguments() {
  TRY(tokens_.expect_operator("("));
  JinjaCallArguments arguments;
  while (!tokens_.at_operator(")")) {
    TRY(parse_argument(arguments));
    if (!tokens_.at_operator(")")) TRY(tokens_.expect_operator(","));
  }
  tokens_.take();
  return arguments;
}

TemplateResult<void> ExpressionParser::parse_argument(JinjaCallArguments& arguments) {
  const bool after_rest = arguments.rest != nullptr || arguments.options != nullptr;
  const JinjaToken& token = tokens_.current();
  if (tokens_.at_operator("*") && !after_rest) {
    tokens_.take();
    arguments.rest = TRY(parse_conditional());
    return {};
  }
  if (tokens_.at_operator("**") && arguments.options == nullptr) {
    tokens_.take();
    arguments.options = TRY(parse_conditional());
    return {};
  }
  const JinjaToken& next = tokens_.next();
  const bool is_keyword =
      token.kind == Token::kName && next.kind == Token::kOperator && next.text == "=";
  if (is_keyword && arguments.options == nullptr) {
    for (const auto& [keyword, value] : arguments.keywords) {
      if (keyword == token.text) return tokens_.failure("this argument comes twice");
    }
    tokens_.take();
    tokens_.take();
    arguments.keywords.emplace_back(token.text, TRY(parse_conditional()));
    return {};
  }
  if (is_keyword || after_rest || !arguments.keywords.empty()) {
    return tokens_.failure("arguments by position come first, then keywords, then * and **");
  }
  arguments.positional.push_back(TRY(parse_conditional()));
  return {};
}

ExpressionParser::Parsed ExpressionParser::parse_filters(JinjaExpressionPointer input) {
  while (tokens_.skip_operator("|")) input = TRY(parse_filter(std::move(input)));
  return input;
}

ExpressionParser::Parsed ExpressionParser::parse_first_filter() {
  return parse_filters(TRY(parse_filter(nullptr)));
}

ExpressionParser::Parsed ExpressionParser::parse_filter(JinjaExpressionPointer input) {
  const JinjaToken& token = tokens_.current();
  TRY(tokens_.expect(Token::kName, "the name of a filter"));
  auto node = make(Kind::kFilter, token.position);
  node->name = token.text;
  node->filter = find_jinja_filter(token.text);
  if (node->filter == nullptr) {
    return syntax_error(token.position, fmt::format("filter '{}' is not supported", token.text));
  }
  if (tokens_.at_operator("(")) node->arguments = TRY(parse_arguments());
  node->operands.push_back(std::move(input));
  const std::string wrong = complaint_about(fmt::format("filter '{}'", token.text),
                                            node->filter->signature, node->arguments);
  if (!wrong.empty()) return syntax_error(token.position, wrong);
  TRY(check_named_argument(*node));
  return finish(std::move(node));
}

// map('upper') and select('defined') name a filter or test that must be there.
TemplateResult<void> ExpressionParser::check_named_argument(const JinjaExpression& node) const {
  const JinjaFilter& filter = *node.filter;
  if (filter.names == JinjaFilter::Names::kNothing ||
      node.arguments.positional.size() <= filter.name_argument) {
    return {};
  }
  const JinjaExpression& argument = *node.arguments.positional[filter.name_argument];
  const PromptText* name = argument.constant.as_text();
  if (name == nullptr) return {};
  const bool is_filter = filter.names == JinjaFilter::Names::kFilter;
  if (is_filter ? find_jinja_filter(name->text) != nullptr
                : find_jinja_test(name->text) != nullptr) {
    return {};
  }
  return syntax_error(argument.position, fmt::format("{} '{}' is not supported",
                                                     is_filter ? "filter" : "test", name->text));
}

ExpressionParser::Parsed ExpressionParser::parse_test(JinjaExpressionPointer input) {
  tokens_.take();
  const TemplatePosition position = tokens_.current().position;
  const bool is_negated = tokens_.skip_name("not");
  const JinjaToken& token = tokens_.current();
  TRY(tokens_.expect(Token::kName, "the name of a test"));
  auto node = make(Kind::kTest, token.position);
  node->name = token.text;
  node->test = find_jinja_test(token.text);
  if (node->test == nullptr) {
    return syntax_error(token.position, fmt::format("test '{}' is not supported", token.text));
  }
  const JinjaToken& next = tokens_.current();
  const bool ends = tokens_.at_name("else") || tokens_.at_name("or") || tokens_.at_name("and");
  const bool is_operand = next.kind == Token::kName || next.kind == Token::kString ||
                          next.kind == Token::kInteger || next.kind == Token::kFloat ||
                          tokens_.at_operator("[") || tokens_.at_operator("{");
  if (tokens_.at_operator("(")) {
    node->arguments = TRY(parse_arguments());
  } else if (is_operand && !ends) {
    if (tokens_.at_name("is")) return tokens_.failure("tests cannot be chained");
    node->arguments.positional.push_back(TRY(parse_postfix(TRY(parse_primary()))));
  }
  node->operands.push_back(std::move(input));
  const std::string wrong =
      complaint_about(fmt::format("test '{}'", token.text), node->test->signature, node->arguments);
  if (!wrong.empty()) return syntax_error(token.position, wrong);
  auto tested = TRY(finish(std::move(node)));
  if (!is_negated) return tested;
  auto negation = make(Kind::kNot, position);
  negation->operands.push_back(std::move(tested));
  return finish(std::move(negation));
}

}  // namespace ingot::text
