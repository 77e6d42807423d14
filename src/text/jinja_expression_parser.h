#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_lexer.h"
#include "text/jinja_syntax.h"
#include "text/template_error.h"

namespace ingot::text {

// The tokens of a template, read one after the other. The last one, kEnd, is never passed.
class JinjaTokens {
 public:
  explicit JinjaTokens(std::vector<JinjaToken> tokens) : tokens_(std::move(tokens)) {}

  const JinjaToken& current() const { return tokens_[at_]; }
  const JinjaToken& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const JinjaToken& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

  bool at_name(std::string_view name) const;
  bool at_operator(std::string_view symbol) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view symbol);
  TemplateResult<void> expect(JinjaToken::Kind kind, std::string_view what);
  TemplateResult<void> expect_name(std::string_view name);
  TemplateResult<void> expect_operator(std::string_view symbol);

  // An error at the current token; unexpected() also says what that is.
  std::unexpected<TemplateError> failure(std::string_view what) const;
  std::unexpected<TemplateError> unexpected(std::string_view what) const;

 private:
  std::vector<JinjaToken> tokens_;
  size_t at_ = 0;
};

// Jinja's expressions, with its own order of precedence. Reads from tokens that it does not own.
class ExpressionParser {
 public:
  explicit ExpressionParser(JinjaTokens& tokens) : tokens_(tokens) {}

  using Parsed = TemplateResult<JinjaExpressionPointer>;

  Parsed parse() { return parse_conditional(); }
  // One expression, or with commas a tuple; `end` is a name that ends it after a comma.
  Parsed parse_tuple() { return parse_tuple_of(&ExpressionParser::parse_conditional, "", false); }
  // The same without "a if b", where an if may follow.
  Parsed parse_tuple_without_condition(std::string_view end = "") {
    return parse_tuple_of(&ExpressionParser::parse_or, end, false);
  }
  // What a set or for assigns to: names, with commas a tuple of names, in a set name.attribute too.
  Parsed parse_target(std::string_view end);
  Parsed parse_name_target();
  // The filters behind a "|" that is current, applied to `input`.
  Parsed parse_filters(JinjaExpressionPointer input);
  // A filter without "|" before it, and those that follow.
  Parsed parse_first_filter();

 private:
  using Rule = Parsed (ExpressionParser::*)();

  JinjaExpressionPointer make(JinjaExpression::Kind kind, TemplatePosition position) const;
  Parsed finish(JinjaExpressionPointer node) const;
  Parsed parse_tuple_of(Rule rule, std::string_view end, bool in_parentheses);
  Parsed parse_target_item();
  Parsed parse_conditional();
  Parsed parse_or();
  Parsed parse_and();
  Parsed parse_not();
  Parsed parse_compare();
  Parsed parse_sum();
  Parsed parse_concat();
  Parsed parse_product();
  Parsed parse_power();
  Parsed parse_unary();
  Parsed parse_signed();
  Parsed parse_primary();
  Parsed parse_number();
  Parsed parse_list();
  Parsed parse_dict();
  Parsed parse_postfix(JinjaExpressionPointer node);
  Parsed parse_filters_and_tests(JinjaExpressionPointer node);
  Parsed parse_attribute(JinjaExpressionPointer node);
  Parsed parse_subscript(JinjaExpressionPointer node);
  Parsed parse_call(JinjaExpressionPointer callee);
  Parsed parse_filter(JinjaExpressionPointer input);
  Parsed parse_test(JinjaExpressionPointer input);
  TemplateResult<void> check_named_argument(const JinjaExpression& node) const;
  TemplateResult<JinjaCallArguments> parse_arguments();
  TemplateResult<void> parse_argument(JinjaCallArguments& arguments);
  Parsed parse_left(Rule operand, JinjaExpression::Kind kind,
                    std::initializer_list<std::pair<std::string_view, JinjaOperator>> operators);

  JinjaTokens& tokens_;
  size_t nesting_ = 0;
};

}  // namespace ingot::text
