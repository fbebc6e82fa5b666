#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/text/writer.h"
#include "schedule/expr/expr.h"

namespace heddle::codegen {

// A value in the text. Its C++ type is tile::vec<T, W> where it is wide and tile::vec<T, 1> where all lanes share it
// (T = computed_type(dtype)); bool values are tile::mask<mask_bytes, W or 1>.
struct TextValue {
  std::string text;
  DType dtype = DType::kF32;
  bool wide = false;
  int mask_bytes = 0;    // > 0: a mask
  bool literal = false;  // text is a plain C++ literal of type T, not a vec
};

// What the leaves of expressions are called.
struct Names {
  std::vector<std::string> buffers;              // by Expr::id of a load: a pointer to const storage_type(dtype)
  std::map<uint32_t, TextValue> locals;          // by Expr::id of a kLocal
  std::map<schedule::VarId, std::string> vars;   // an int64_t; for the vector variable, the index of lane 0
  std::map<schedule::ExprId, TextValue> cached;  // values that the surrounding code already has
  std::set<uint32_t> evict_first, l1_resident;   // buffers with loads of a kind of their own on a GPU
  std::map<int64_t, std::string> numbers;        // positive strides and offsets that are variables instead of literals
};

// The lanes of a vector loop.
struct Lanes {
  schedule::VarId var;
  std::string width = "W";  // an integer constant expression
  std::string count = "n";  // tile::index_constant<W>, or an int64_t: how many lanes are real
  int64_t aligned = 1;  // lane 0 is a multiple of this; where it is the width, whole vectors share what divides by it
};

// How text differs between machines that have the same vectors.
struct Style {
  bool cuda = false;                                  // accesses name their alignment, there are no partial vectors
  std::string index = "int64_t";                      // the type of loop variables
  std::map<schedule::VarId, int64_t> multiples = {};  // divisors of variables
  bool fast = false;  // results are rounded to 16 bits or fewer: tile/op/cuda/fast.h serves
};

std::string_view storage_type(DType dtype);   // "tile::half"
std::string_view computed_type(DType dtype);  // "float"; bool: "uint8_t"

// A function of one value that has a form which rounds two neighbours to 16 bits: function<Out>(low, high).
struct PackForm {
  const char* function;
  schedule::ExprId argument;
};
std::optional<PackForm> pack_form_of(const schedule::ExprPool& pool, schedule::ExprId id);

// Writes expressions as statements on tile vectors (tile/op/lanes.h, math.h, arith.h). Every expression is written once
// per scope. Without lanes everything is of width 1.
class ScalarEmitter {
 public:
  ScalarEmitter(const schedule::ExprPool& pool, Names names, Writer& out);

  Names& names() { return names_; }
  const Names& names() const { return names_; }
  void set_lanes(std::optional<Lanes> lanes) { lanes_ = std::move(lanes); }
  void set_style(Style style) { style_ = std::move(style); }
  // Numbers that the compiler need not know get marks (numbers.h), unless names() has variables for them.
  void mark_numbers() { marked_ = true; }
  // The value that is stored next is rounded to 16 bits: short forms serve for it, and for what loses little by them
  // below it. nullopt: it is not.
  void set_rounded(std::optional<schedule::ExprId> value) { rounded_ = value; }
  bool has_lanes() const { return lanes_.has_value(); }
  // Whether a load's lanes are side by side from a multiple of their number on, and where lane 0 is.
  bool aligned_at(schedule::ExprId load) const;
  std::string place(schedule::ExprId load);
  // Values written between push and pop are forgotten at pop (they went out of C++ scope).
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() {
    scopes_.pop_back();
    std::erase_if(divisors_, [&](const auto& d) { return d.second.second > scopes_.size(); });
  }

  // Writes what `e` needs and returns its name.
  TextValue value(schedule::ExprId e);
  // The same as a vec of the current width (masks stay masks).
  std::string vector(schedule::ExprId e);
  // Writes "to = e;", where `to` is a vec of the current width; it stands for `e` from then on.
  void assign(const std::string& to, schedule::ExprId e);
  // Writes the parts of `e` that depend on the variables in `bound` only and are computed whatever guards say: the
  // loop-invariant ones, before the loop is opened.
  void hoist(schedule::ExprId e, uint64_t bound);
  // On a GPU: the elements of a load of the current width as they lie in memory.
  std::string stored(schedule::ExprId load);
  // Stores `e` as `storage` at element `at` of the pointer called `buffer`; `stream`: past the caches.
  void store(const std::string& buffer, DType storage, const schedule::Index& at, schedule::ExprId e,
             bool stream = false);

  // An int64_t expression.
  std::string index(const schedule::Index& at);
  // The coefficient of the vector variable in an index that is affine in it (0: independent); nullopt: not affine.
  std::optional<int64_t> lane_stride(const schedule::Index& at) const;

 private:
  bool wide(schedule::ExprId e) const;
  bool has_wide_local(schedule::ExprId e) const;
  const TextValue* find(schedule::ExprId e) const;
  TextValue keep(schedule::ExprId e, TextValue value) {
    scopes_.back()[e] = value;
    return value;
  }
  TextValue write(schedule::ExprId e);
  TextValue write_load(schedule::ExprId e);
  TextValue write_index(schedule::ExprId e);
  TextValue write_op(schedule::ExprId e);
  std::optional<TextValue> write_fast(schedule::ExprId e);
  TextValue write_guard(schedule::ExprId e);
  TextValue per_lane(schedule::ExprId e);
  std::string cast(const schedule::Expr& e, const TextValue& from);
  std::string operation(const schedule::Expr& e, std::vector<TextValue>& args, int& mask_bytes);
  std::string logic(const schedule::Expr& e, std::vector<TextValue>& args, int& mask_bytes);
  std::string declare(schedule::ExprId e, const std::string& text);
  std::string widened(const TextValue& value, bool wide) const;
  std::string as_mask(const TextValue& value, int bytes) const;
  std::string condition(const schedule::Expr& guard);
  bool same_for_all_lanes(const schedule::Expr& guard) const;
  std::map<schedule::VarId, int64_t> multiples() const;
  int64_t alignment(const schedule::Index& at) const;
  std::string pointer(const schedule::Expr& load);
  const char* load_kind(uint32_t buffer) const;
  std::string literal(const schedule::Expr& e) const;
  std::string plain_literal(const schedule::Expr& e) const;
  std::string number(int64_t value) const;
  std::string extent(int64_t value) const;
  const std::string& width(bool wide) const;

  const schedule::ExprPool& pool_;
  Names names_;
  Writer& out_;
  std::optional<Lanes> lanes_;
  Style style_;
  bool marked_ = false;
  std::optional<schedule::ExprId> rounded_;
  std::optional<std::pair<schedule::ExprId, std::string>> assigned_;  // by the next declare() of this expression
  std::vector<std::map<schedule::ExprId, TextValue>> scopes_;
  // Divisors that a loop shares, prepared before it: name and depth of their scope.
  std::map<schedule::ExprId, std::pair<std::string, size_t>> divisors_;
  mutable std::map<schedule::ExprId, bool> wide_local_memo_;
  int next_ = 0;
};

}  // namespace heddle::codegen
