#include "text/jinja_scopes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_functions.h"

namespace ingot::text {
namespace {

using Names = std::set<std::string, std::less<>>;
using ExpressionKind = JinjaExpression::Kind;
using StatementKind = JinjaStatement::Kind;

// The names of one scope while it is read from top to bottom.
class Scope {
 public:
  explicit Scope(const Scope* parent) : parent_(parent) {}
  // The same scope within one branch of an if: what changes there is kept apart.
  static Scope branch_of(const Scope& base) {
    Scope branch(base.parent_);
    branch.base_ = &base;
    return branch;
  }

  void declare(const std::string& name) {
    sources_[name] = Source::kGiven;
    stores_.insert(name);
  }
  void load(const std::string& name) {
    if (!knows(name)) sources_[name] = Source::kOutside;
  }
  void store(const std::string& name) {
    if (!has_source(name)) {
      const bool is_enclosing = parent_ != nullptr && parent_->knows(name);
      sources_[name] = is_enclosing ? Source::kEnclosing : Source::kNothing;
    }
    if (!has_store(name)) stores_.insert(name);
  }
  // What is set in a branch may not have been set behind it, nor in another branch.
  void merge(std::initializer_list<const Scope*> branches) {
    Names stores;
    for (const Scope* branch : branches) {
      for (const auto& [name, source] : branch->sources_) sources_[name] = source;
      stores.insert(branch->stores_.begin(), branch->stores_.end());
    }
    for (const std::string& name : stores) {
      const bool is_enclosing = parent_ != nullptr && parent_->knows(name);
      sources_[name] = is_enclosing ? Source::kEnclosing : Source::kOutside;
    }
    stores_.merge(stores);
  }

  std::vector<std::string> hidden() const { return names_from(Source::kNothing); }
  std::vector<std::string> outside() const { return names_from(Source::kOutside); }

 private:
  // What a name is before the scope sets it.
  enum class Source { kGiven, kOutside, kEnclosing, kNothing };

  bool has_source(const std::string& name) const {
    return sources_.contains(name) || (base_ != nullptr && base_->has_source(name));
  }
  bool has_store(const std::string& name) const {
    return stores_.contains(name) || (base_ != nullptr && base_->has_store(name));
  }
  bool knows(const std::string& name) const {
    return has_source(name) || (parent_ != nullptr && parent_->knows(name));
  }
  std::vector<std::string> names_from(Source source) const {
    std::vector<std::string> names;
    for (const auto& [name, its_source] : sources_) {
      if (its_source == source) names.push_back(name);
    }
    return names;
  }

  const Scope* parent_ = nullptr;
  const Scope* base_ = nullptr;
  std::map<std::string, Source> sources_;
  Names stores_;
};

// Finds which of some names a macro's body reads before it sets them, at any depth.
class UndeclaredNames {
 public:
  explicit UndeclaredNames(std::initializer_list<std::string_view> names)
      : watched_(names.begin(), names.end()) {}

  void visit(const JinjaBody& body) {
    for (const auto& statement : body) visit(*statement);
  }
  bool reads(std::string_view name) const { return found_.contains(name); }

 private:
  void visit(const JinjaExpression& node) {
    if (node.kind == ExpressionKind::kName && watched_.contains(node.name)) {
      found_.insert(node.name);
    }
    for_each_child(node, [&](const JinjaExpressionPointer& child) { visit(*child); });
  }
  void visit(const JinjaExpressionPointer& node) {
    if (node != nullptr) visit(*node);
  }
  void store(const JinjaExpressionPointer& target) {
    if (target == nullptr) return;
    if (target->kind == ExpressionKind::kName) watched_.erase(target->name);
    for (const auto& item : target->operands) store(item);
  }
  void visit(const JinjaStatement& statement) {
    const bool is_call = statement.kind == StatementKind::kCall;
    store(statement.target);
    if (is_call) visit(statement.value);
    for (const auto& parameter : statement.parameters) watched_.erase(parameter.name);
    for (const auto& parameter : statement.parameters) visit(parameter.value);
    if (!is_call) visit(statement.value);
    visit(statement.body);
    visit(statement.orelse);
    visit(statement.test);
  }

  Names watched_;
  Names found_;
};

class Resolver {
 public:
  explicit Resolver(Names& variables) : variables_(variables) {}

  std::vector<std::string> resolve(JinjaBody& body) {
    Scope scope(nullptr);
    read(scope, body);
    return close(scope, body);
  }

 private:
  // What a scope does with names itself; the scopes within it come afterwards, since they see all
  // of its names.
  void read(Scope& scope, const JinjaBody& body) {
    for (const auto& statement : body) read(scope, *statement);
  }
  void read(Scope& scope, const JinjaExpressionPointer& node) {
    if (node != nullptr) read(scope, *node);
  }
  void read(Scope& scope, const JinjaExpression& node) {
    if (node.kind == ExpressionKind::kName) scope.load(node.name);
    for_each_child(node, [&](const JinjaExpressionPointer& child) { read(scope, *child); });
  }
  void read(Scope& scope, const JinjaStatement& statement) {
    switch (statement.kind) {
      case StatementKind::kIf:
        return read_if(scope, statement);
      case StatementKind::kMacro:
        return scope.store(statement.name);
      case StatementKind::kWith:
        for (const auto& parameter : statement.parameters) read(scope, parameter.value);
        return;
      case StatementKind::kSetBlock:  // its filter belongs to the scope of its body
        return store(scope, *statement.target);
      default:
        read(scope, statement.value);
        if (statement.kind == StatementKind::kSet) store(scope, *statement.target);
    }
  }
  void read_if(Scope& scope, const JinjaStatement& statement) {
    read(scope, statement.value);
    Scope body = Scope::branch_of(scope);
    read(body, statement.body);
    Scope orelse = Scope::branch_of(scope);
    read(orelse, statement.orelse);
    scope.merge({&body, &orelse});
  }
  void store(Scope& scope, const JinjaExpression& target) {
    if (target.kind == ExpressionKind::kName) scope.store(target.name);
    if (target.kind == ExpressionKind::kNamespace) scope.load(target.name);
    for (const auto& item : target.operands) store(scope, *item);
  }
  void declare(Scope& scope, const JinjaExpression& target) {
    if (target.kind == ExpressionKind::kName) scope.declare(target.name);
    for (const auto& item : target.operands) declare(scope, *item);
  }

  std::vector<std::string> close(const Scope& scope, JinjaBody& body) {
    for (std::string& name : scope.outside()) variables_.insert(std::move(name));
    open(scope, body);
    return scope.hidden();
  }
  void open(const Scope& scope, JinjaBody& body) {
    for (auto& statement : body) open(scope, *statement);
  }
  void open(const Scope& scope, JinjaStatement& statement) {
    switch (statement.kind) {
      case StatementKind::kIf:
        open(scope, statement.body);
        return open(scope, statement.orelse);
      case StatementKind::kFor:
        return open_for(scope, statement);
      case StatementKind::kMacro:
      case StatementKind::kCall:
      case StatementKind::kScope:  // Jinja makes it a macro that is called without arguments
        return open_macro(scope, statement);
      case StatementKind::kSetBlock:
      case StatementKind::kFilter:
      case StatementKind::kWith:
        return open_block(scope, statement);
      default:
        return;
    }
  }
  void open_for(const Scope& scope, JinjaStatement& statement) {
    Scope body(&scope);
    body.declare("loop");
    declare(body, *statement.target);
    read(body, statement.body);
    statement.hidden = close(body, statement.body);
    Scope orelse(&scope);
    read(orelse, statement.orelse);
    statement.hidden_in_orelse = close(orelse, statement.orelse);
    Scope test(&scope);
    declare(test, *statement.target);
    read(test, statement.test);
    JinjaBody nothing;
    close(test, nothing);
  }
  void open_macro(const Scope& scope, JinjaStatement& statement) {
    Names parameters;
    for (const auto& parameter : statement.parameters) parameters.insert(parameter.name);
    UndeclaredNames undeclared{"caller", "kwargs", "varargs"};
    undeclared.visit(statement.body);
    statement.reads_caller = undeclared.reads("caller");
    statement.reads_keywords = undeclared.reads("kwargs") && !parameters.contains("kwargs");
    statement.reads_positionals = undeclared.reads("varargs") && !parameters.contains("varargs");
    Scope body(&scope);
    if (statement.reads_caller) body.declare("caller");
    if (statement.reads_keywords) body.declare("kwargs");
    if (statement.reads_positionals) body.declare("varargs");
    for (const std::string& name : parameters) body.declare(name);
    for (const auto& parameter : statement.parameters) read(body, parameter.value);
    read(body, statement.body);
    statement.hidden = close(body, statement.body);
  }
  void open_block(const Scope& scope, JinjaStatement& statement) {
    Scope body(&scope);
    if (statement.kind == StatementKind::kWith) {
      for (const auto& parameter : statement.parameters) body.declare(parameter.name);
    }
    read(body, statement.body);
    if (statement.kind == StatementKind::kSetBlock) read(body, statement.value);
    statement.hidden = close(body, statement.body);
  }

  Names& variables_;
};

}  // namespace

void resolve_scopes(JinjaTemplate& parsed) {
  Names variables;
  parsed.hidden = Resolver(variables).resolve(parsed.body);
  for (const std::string& name : variables) {
    if (find_jinja_function(name) == nullptr) parsed.variables.push_back(name);
  }
}

}  // namespace ingot::text
