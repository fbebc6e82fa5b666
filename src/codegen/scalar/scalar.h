#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/scalar/byte_form.h"
#include "codegen/scalar/gather.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

// Writes expressions as statements on tile vectors (tile/op/lanes.h, math.h, arith.h). Each expression is written only
// once per scope.
class ScalarEmitter final : public GatherEmitter {
 public:
  ScalarEmitter(const schedule::ExprPool& pool, Names names, Writer& out);

  // Sets the value that is stored next, in a 16-bit type. Shorter, less exact forms of functions may be used for this
  // value, and for those of its operands whose errors hardly change the result. nullopt: the next value is not rounded.
  void set_rounded(std::optional<schedule::ExprId> value) { rounded_ = value; }
  // Values written between push_scope() and pop_scope() are forgotten at pop_scope(), because their C++ scope ends.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() {
    scopes_.pop_back();
    std::erase_if(divisors_, [&](const auto& d) { return d.second.second > scopes_.size(); });
  }

  // Writes the statements that compute `e`, unless the scope has them already. Returns the name of the value.
  TextValue value(schedule::ExprId e) override;
  // Like value(), but returns a vec of the current width (masks stay masks).
  std::string vector(schedule::ExprId e);
  // Writes "to = e;". `to` is a vec of the current width. From then on, `to` stands for `e`.
  void assign(const std::string& to, schedule::ExprId e);
  // Writes the loop-invariant parts of `e` before the loop is opened: the parts that depend only on variables in
  // `bound` and that are computed unconditionally (under no guard).
  void hoist(schedule::ExprId e, uint64_t bound);
  // Writes a store of `e`, converted to `storage`, to element `at` of the pointer named `buffer`. `stream`: the store
  // bypasses the caches.
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
  ByteForms byte_forms_;
  std::optional<schedule::ExprId> rounded_;
  std::optional<std::pair<schedule::ExprId, std::string>> assigned_;  // used by its next declare()
  std::vector<std::map<schedule::ExprId, TextValue>> scopes_;
  // Divisors that are invariant in a loop and prepared before it: the name, and the depth of the scope that declares
  // it.
  std::map<schedule::ExprId, std::pair<std::string, size_t>> divisors_;
  int next_ = 0;
};

}  // namespace heddle::codegen
