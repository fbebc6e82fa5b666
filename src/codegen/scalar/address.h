#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/scalar/text_value.h"

namespace heddle::codegen {

// Names of the leaves of expressions.
struct Names {
  std::vector<std::string> buffers;              // by Expr::id of a load: a pointer to const storage_type(dtype)
  std::map<uint32_t, int64_t> begins;            // elements of a buffer in front of that pointer
  std::map<uint32_t, TextValue> locals;          // by Expr::id of a kLocal
  std::map<schedule::VarId, std::string> vars;   // an int64_t; for the vector variable, the index of lane 0
  std::map<schedule::ExprId, TextValue> cached;  // values that the surrounding code already has
  std::set<uint32_t> evict_first, l1_resident;   // buffers with special load instructions on a GPU
  std::map<int64_t, std::string> numbers;        // positive strides and offsets that are variables instead of literals
};

// The lanes of a vector loop.
struct Lanes {
  schedule::VarId var;
  std::string width = "W";  // an integer constant expression
  std::string count = "n";  // tile::index_constant<W>, or an int64_t: how many lanes are real
  int64_t aligned = 1;  // lane 0 is a multiple of this; if it is the width, quotients by it are equal in a whole vector
};

// How text differs between machines that have the same vectors.
struct Style {
  bool cuda = false;                                  // accesses name their alignment, there are no partial vectors
  std::string index = "int64_t";                      // the type of loop variables
  std::map<schedule::VarId, int64_t> multiples = {};  // divisors of variables
  bool fast = false;  // results are rounded to 16 bits or fewer, so tile/op/cuda/fast.h is exact enough
};

// Writes indices and memory accesses as text, for the lanes of set_lanes(). Without lanes everything is of width 1.
class AddressEmitter {
 public:
  Names& names() { return names_; }
  const Names& names() const { return names_; }
  void set_lanes(std::optional<Lanes> lanes) { lanes_ = std::move(lanes); }
  void set_style(Style style) { style_ = std::move(style); }
  // Numbers that the compiler need not know get marks (numbers.h), unless names() has variables for them.
  void mark_numbers() { marked_ = true; }
  bool has_lanes() const { return lanes_.has_value(); }

  // An int64_t expression.
  std::string index(const schedule::Index& at);
  // The coefficient of the vector variable in an index that is affine in it (0: independent); nullopt: not affine.
  std::optional<int64_t> lane_stride(const schedule::Index& at) const;
  // The condition lo <= index < hi.
  std::string within(const schedule::Index& index, int64_t lo, int64_t hi);
  // aligned_at(): a load's lanes are adjacent and aligned to their number. place(): the position of lane 0.
  bool aligned_at(schedule::ExprId load) const;
  std::string place(schedule::ExprId load);
  // On a GPU: the elements of a load of the current width as they lie in memory.
  std::string stored(schedule::ExprId load);

 protected:
  AddressEmitter(const schedule::ExprPool& pool, Names names) : pool_(pool), names_(std::move(names)) {}
  ~AddressEmitter() = default;

  // The value of an expression that an index is computed from. All lanes share it.
  virtual TextValue value(schedule::ExprId e) = 0;

  // wide(): lanes have values of their own. has_wide_local(): they have them because of a local.
  bool wide(schedule::ExprId e) const;
  bool has_wide_local(schedule::ExprId e) const;
  const std::string& width(bool wide) const;
  std::string extent(int64_t value) const;
  // The lanes of a load that is affine in them, or its one element.
  std::string load(schedule::ExprId load);
  // The statement that stores a vec of the current width.
  std::string store(const std::string& buffer, const schedule::Index& at, const std::string& value, bool stream);
  // The condition of a guard.
  std::string condition(const schedule::Expr& guard) { return within(guard.index, guard.lo, guard.hi); }
  bool same_for_all_lanes(const schedule::Expr& guard) const;

  const schedule::ExprPool& pool_;
  Names names_;
  std::optional<Lanes> lanes_;
  Style style_;
  bool marked_ = false;

 private:
  std::string term(schedule::AtomId id);
  std::map<schedule::VarId, int64_t> multiples() const;
  int64_t alignment(const schedule::Index& at) const;
  const char* load_kind(uint32_t buffer) const;
  std::string number(int64_t value) const;

  mutable std::map<schedule::ExprId, bool> wide_local_memo_;
};

}  // namespace heddle::codegen
