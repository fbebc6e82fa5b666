#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/scalar/gather.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

// Writes expressions as statements on tile vectors (tile/op/lanes.h, math.h, arith.h). Every expression is written once
// per scope.
class ScalarEmitter final : public GatherEmitter {
 public:
  ScalarEmitter(const schedule::ExprPool& pool, Names names, Writer& out);

  // Sets the value that is stored next in 16 bits. Short forms serve for it, and for the values below it that lose
  // little by them. nullopt: the next value is not rounded.
  void set_rounded(std::optional<schedule::ExprId> value) { rounded_ = value; }
  // Values written between push and pop are forgotten at pop (they went out of C++ scope).
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() {
    scopes_.pop_back();
    std::erase_if(divisors_, [&](const auto& d) { return d.second.second > scopes_.size(); });
  }

  // Writes what `e` needs and returns its name.
  TextValue value(schedule::ExprId e) override;
  // The same as a vec of the current width (masks stay masks).
  std::string vector(schedule::ExprId e);
  // Writes "to = e;", where `to` is a vec of the current width; it stands for `e` from then on.
  void assign(const std::string& to, schedule::ExprId e);
  // Writes the loop-invariant parts of `e`, before the loop is opened: those that depend only on the variables in
  // `bound` and are computed whatever guards say.
  void hoist(schedule::ExprId e, uint64_t bound);
  // Stores `e` as `storage` at element `at` of the pointer called `buffer`; `stream`: past the caches.
  void store(const std::string& buffer, DType storage, const schedule::Index& at, schedule::ExprId e,
             bool stream = false);

 private:
  const TextValue* find(schedule::ExprId e) const override;
  TextValue keep(schedule::ExprId e, TextValue value) {
    scopes_.back()[e] = value;
    return value;
  }
  TextValue write(schedule::ExprId e);
  TextValue write_constant(const schedule::Expr& e) const;
  TextValue write_random(schedule::ExprId e);
  TextValue write_load(schedule::ExprId e);
  TextValue write_index(schedule::ExprId e);
  TextValue write_op(schedule::ExprId e);
  std::optional<TextValue> write_short_form(schedule::ExprId e);
  TextValue write_guard(schedule::ExprId e);
  TextValue per_lane(schedule::ExprId e);
  std::string declare(schedule::ExprId e, const std::string& text);

  Writer& out_;
  std::optional<schedule::ExprId> rounded_;
  std::optional<std::pair<schedule::ExprId, std::string>> assigned_;  // by the next declare() of this expression
  std::vector<std::map<schedule::ExprId, TextValue>> scopes_;
  // Divisors that a loop shares, prepared before it: name and depth of their scope.
  std::map<schedule::ExprId, std::pair<std::string, size_t>> divisors_;
  int next_ = 0;
};

}  // namespace heddle::codegen
