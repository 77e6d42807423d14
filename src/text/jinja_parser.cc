#include "text/jinja_parser.h"

#include <charconv>
#include <utility>

#include "text/jinja_arguments.h"
#include "text/jinja_constants.h"
#include "text/jinja_expression_parser.h"
#include "text/jinja_scopes.h"

namespace ingot::text {
namespace {

using Kind = JinjaToken::Kind;
using StatementPointer = std::unique_ptr<JinjaStatement>;

// Statements; what stands in them is up to the ExpressionParser.
class Parser {
 public:
  explicit Parser(std::vector<JinjaToken> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_) {}

  TemplateResult<JinjaBody> run() {
    JinjaBody body = TRY(parse_body({}));
    if (tokens_.current().kind != Kind::kEnd) return tokens_.unexpected("this closes nothing");
    return body;
  }

 private:
  using Words = std::initializer_list<std::string_view>;

  bool at_any(Words words) const {
    for (const std::string_view word : words) {
      if (tokens_.at_name(word)) return true;
    }
    return false;
  }

  // Up to a block that begins with one of `ends`, whose name is then current; without any, up to
  // the end of the template.
  TemplateResult<JinjaBody> parse_body(Words ends) {
    if (++nesting_ > kJinjaNestingMax) {
      return tokens_.failure(fmt::format("blocks nest deeper than {}", kJinjaNestingMax));
    }
    JinjaBody body;
    while (tokens_.current().kind != Kind::kEnd) {
      const JinjaToken& token = tokens_.take();
      auto statement = std::make_unique<JinjaStatement>();
      statement->position = token.position;
      if (token.kind == Kind::kText) {
        statement->text.text = token.text;
      } else if (token.kind == Kind::kVariableBegin) {
        statement->kind = JinjaStatement::Kind::kPrint;
        statement->value = TRY(expressions_.parse_tuple());
        TRY(tokens_.expect(Kind::kVariableEnd, "}}"));
      } else {
        if (at_any(ends)) {
          --nesting_;
          return body;
        }
        TRY(parse_statement(*statement));
        TRY(tokens_.expect(Kind::kBlockEnd, "%}"));
      }
      body.push_back(std::move(statement));
    }
    if (ends.size() > 0) {
      return tokens_.failure(
          fmt::format("the template ends where {{% {} %}} has to come", *(ends.end() - 1)));
    }
    --nesting_;
    return body;
  }

  // The body of a statement, from the end of its own block to behind the name that ends it.
  TemplateResult<JinjaBody> parse_block(Words ends) {
    tokens_.skip_operator(":");
    TRY(tokens_.expect(Kind::kBlockEnd, "%}"));
    return parse_body(ends);
  }

  TemplateResult<JinjaBody> parse_last_block(std::string_view end) {
    JinjaBody body = TRY(parse_block({end}));
    tokens_.take();
    return body;
  }

  // A body that Python would put into a function: no loop outside can be left from within.
  TemplateResult<JinjaBody> parse_function_block(std::string_view end) {
    const size_t outside = std::exchange(num_loops_, 0);
    JinjaBody body = TRY(parse_last_block(end));
    num_loops_ = outside;
    return body;
  }

  TemplateResult<void> parse_statement(JinjaStatement& statement) {
    struct Row {
      std::string_view name;
      TemplateResult<void> (Parser::*parse)(JinjaStatement&);
    };
    static constexpr Row kRows[] = {
        {"if", &Parser::parse_if},
        {"for", &Parser::parse_for},
        {"set", &Parser::parse_set},
        {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call},
        {"filter", &Parser::parse_filter},
        {"with", &Parser::parse_with},
        {"print", &Parser::parse_print},
        {"generation", &Parser::parse_generation},
        {"break", &Parser::parse_break},
        {"continue", &Parser::parse_continue},
    };
    if (tokens_.current().kind != Kind::kName) return tokens_.unexpected("a statement comes here");
    const JinjaToken& name = tokens_.current();
    statement.position = name.position;
    for (const Row& row : kRows) {
      if (row.name != name.text) continue;
      tokens_.take();
      return (this->*row.parse)(statement);
    }
    if (name.text.starts_with("end") || name.text == "else" || name.text == "elif") {
      return tokens_.failure(fmt::format("'{}' belongs to nothing that is open here", name.text));
    }
    return tokens_.failure(fmt::format("statement '{}' is not supported", name.text));
  }

  TemplateResult<void> parse_if(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kIf;
    statement.value = TRY(expressions_.parse_tuple_without_condition());
    statement.body = TRY(parse_block({"elif", "else", "endif"}));
    const std::string end = tokens_.take().text;
    if (end == "else") {
      statement.orelse = TRY(parse_last_block("endif"));
    } else if (end == "elif") {
      if (++nesting_ > kJinjaNestingMax) {
        return tokens_.failure(fmt::format("more than {} branches", kJinjaNestingMax));
      }
      auto branch = std::make_unique<JinjaStatement>();
      branch->position = tokens_.current().position;
      TRY(parse_if(*branch));
      statement.orelse.push_back(std::move(branch));
      --nesting_;
    }
    return {};
  }

  TemplateResult<void> parse_for(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kFor;
    statement.target = TRY(expressions_.parse_target("in"));
    TRY(tokens_.expect_name("in"));
    statement.value = TRY(expressions_.parse_tuple_without_condition("recursive"));
    if (tokens_.skip_name("if")) statement.test = TRY(expressions_.parse());
    statement.is_recursive = tokens_.skip_name("recursive");
    // Python has a recursive loop's body, its else included, in a function of its own.
    const size_t outside = std::exchange(num_loops_, statement.is_recursive ? 0 : num_loops_);
    ++num_loops_;
    statement.body = TRY(parse_block({"else", "endfor"}));
    --num_loops_;
    if (tokens_.take().text == "else") statement.orelse = TRY(parse_last_block("endfor"));
    num_loops_ = outside;
    return {};
  }

  TemplateResult<void> parse_set(JinjaStatement& statement) {
    statement.target = TRY(expressions_.parse_target(""));
    if (tokens_.skip_operator("=")) {
      statement.kind = JinjaStatement::Kind::kSet;
      statement.value = TRY(expressions_.parse_tuple());
      return {};
    }
    statement.kind = JinjaStatement::Kind::kSetBlock;
    if (tokens_.at_operator("|")) statement.value = TRY(expressions_.parse_filters(nullptr));
    statement.body = TRY(parse_last_block("endset"));
    return {};
  }

  TemplateResult<void> parse_parameters(JinjaStatement& statement) {
    TRY(tokens_.expect_operator("("));
    while (!tokens_.at_operator(")")) {
      if (!statement.parameters.empty()) TRY(tokens_.expect_operator(","));
      const JinjaToken& token = tokens_.current();
      JinjaStatement::Parameter parameter {
        .name = TRY(parse_new_name())
        , .value = nullptr
      };
      for (const auto& other : statement.parameters) {
        if (other.name == parameter.name) {
          return syntax_error(token.position, fmt::format("'{}' comes twice", parameter.name));
        }
      }
      if (tokens_.skip_operator("=")) {
        parameter.value = TRY(expressions_.parse());
      } else if (!statement.parameters.empty() && statement.parameters.back().value != nullptr) {
        return syntax_error(token.position, fmt::format("'{}' needs a default, since one before it "
                                                        "has one",
                                                        parameter.name));
      }
      statement.parameters.push_back(std::move(parameter));
    }
    tokens_.take();
    return {};
  }

  // A name that can be assigned to.
  TemplateResult<std::string> parse_new_name() {
    auto target = TRY(expressions_.parse_name_target());
    return std::move(target->name);
  }

  TemplateResult<void> parse_macro(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kMacro;
    statement.name = TRY(parse_new_name());
    TRY(parse_parameters(statement));
    for (const auto& parameter : statement.parameters) {
      if (parameter.name == "caller") {
        return syntax_error(statement.position, "a parameter named 'caller' is not supported");
      }
    }
    statement.body = TRY(parse_function_block("endmacro"));
    return {};
  }

  TemplateResult<void> parse_call(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kCall;
    if (tokens_.at_operator("(")) TRY(parse_parameters(statement));
    statement.value = TRY(expressions_.parse());
    if (statement.value->kind != JinjaExpression::Kind::kCall) {
      return syntax_error(statement.value->position, "a call comes here");
    }
    statement.body = TRY(parse_function_block("endcall"));
    return {};
  }

  TemplateResult<void> parse_filter(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kFilter;
    statement.value = TRY(expressions_.parse_first_filter());
    statement.body = TRY(parse_last_block("endfilter"));
    return {};
  }

  TemplateResult<void> parse_with(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kWith;
    while (tokens_.current().kind != Kind::kBlockEnd) {
      if (!statement.parameters.empty()) TRY(tokens_.expect_operator(","));
      JinjaStatement::Parameter parameter {
        .name = TRY(parse_new_name())
        , .value = nullptr
      };
      TRY(tokens_.expect_operator("="));
      parameter.value = TRY(expressions_.parse());
      statement.parameters.push_back(std::move(parameter));
    }
    statement.body = TRY(parse_last_block("endwith"));
    return {};
  }

  TemplateResult<void> parse_print(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kPrint;
    statement.value = TRY(expressions_.parse());
    return {};
  }

  TemplateResult<void> parse_generation(JinjaStatement& statement) {
    statement.kind = JinjaStatement::Kind::kScope;
    statement.body = TRY(parse_function_block("endgeneration"));
    return {};
  }

  TemplateResult<void> parse_break(JinjaStatement& statement) {
    return parse_leave(statement, JinjaStatement::Kind::kBreak);
  }
  TemplateResult<void> parse_continue(JinjaStatement& statement) {
    return parse_leave(statement, JinjaStatement::Kind::kContinue);
  }
  TemplateResult<void> parse_leave(JinjaStatement& statement, JinjaStatement::Kind kind) {
    statement.kind = kind;
    if (num_loops_ == 0) return syntax_error(statement.position, "no loop is open here");
    return {};
  }

  JinjaTokens tokens_;
  ExpressionParser expressions_;
  size_t nesting_ = 0;
  size_t num_loops_ = 0;  // that break and continue could leave
};

}  // namespace

TemplateResult<JinjaTemplate> parse_jinja(std::string_view source) {
  JinjaTemplate parsed;
  std::vector<JinjaToken> tokens = TRY(lex_jinja(source));
  for (const JinjaToken& token : tokens) {
    const bool is_literal =
        token.kind == JinjaToken::Kind::kText || token.kind == JinjaToken::Kind::kString;
    if (is_literal) parsed.literals.push_back(token.text);
  }
  parsed.body = TRY(Parser(std::move(tokens)).run());
  resolve_scopes(parsed);
  TRY(fold_constants(parsed));
  return parsed;
}

}  // namespace ingot::text
