#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/scalar/text_value.h"

namespace heddle::codegen {

// The C++ names of the leaves of expressions.
struct Names {
  std::vector<std::string> buffers;              // by Expr::id of a load: a pointer to const storage_type(dtype)
  std::map<uint32_t, int64_t> begins;            // by index in `buffers`: the element that the pointer points to
  std::map<uint32_t, TextValue> locals;          // by Expr::id of a kLocal
  std::map<schedule::VarId, std::string> vars;   // an int64_t; for the vector variable, the index of lane 0
  std::map<schedule::ExprId, TextValue> cached;  // values that the surrounding code has already computed
  std::set<uint32_t> evict_first, l1_resident;   // buffers with special load instructions on a GPU
  std::map<int64_t, std::string> numbers;        // positive strides and offsets that are variables instead of literals
};

// The lanes of a vector loop.
struct Lanes {
  schedule::VarId var;
  std::string width = "W";  // an integer constant expression
  std::string count = "n";  // the number of valid lanes: a tile::index_constant<W> or an int64_t
  int64_t aligned = 1;      // divides the index of lane 0; if it is the width, index / width is equal in all lanes
};

// Differences of the text between targets that use the same vector types.
struct Style {
  bool cuda = false;                                  // accesses state their alignment; there are no partial vectors
  bool cpu = false;                                   // text for a CPU, whose tile library has look_up_bytes()
  std::string index = "int64_t";                      // the type of loop variables
  std::map<schedule::VarId, int64_t> multiples = {};  // by variable: a number that divides its value
  bool fast = false;  // results are rounded to 16 bits or fewer, so tile/op/cuda/fast.h is accurate enough
};

// Generates the text of indices and memory accesses for the lanes of set_lanes(). Without lanes, all values are of
// width 1.
class AddressEmitter {
 public:
  Names& names() { return names_; }
  const Names& names() const { return names_; }
  void set_lanes(std::optional<Lanes> lanes) { lanes_ = std::move(lanes); }
  void set_style(Style style) { style_ = std::move(style); }
  // From now on, puts marks (numbers.h) around numbers that need not be compile-time constants, except numbers for
  // which names() has a variable.
  void mark_numbers() { marked_ = true; }
  bool has_lanes() const { return lanes_.has_value(); }

  // The index as an int64_t expression.
  std::string index(const schedule::Index& at);
  // If the index is affine in the vector variable, returns the variable's coefficient (0 if the index does not depend
  // on it). Otherwise returns nullopt.
  std::optional<int64_t> lane_stride(const schedule::Index& at) const;
  // The condition lo <= index < hi, as text.
  std::string within(const schedule::Index& index, int64_t lo, int64_t hi);
  // True if the lanes of a load are contiguous and aligned to the vector width.
  bool aligned_at(schedule::ExprId load) const;
  // The address of lane 0 of a load.
  std::string place(schedule::ExprId load);
  // On a GPU: loads the elements of a vector of the current width in their storage format, without conversion.
  std::string stored(schedule::ExprId load);

 protected:
  AddressEmitter(const schedule::ExprPool& pool, Names names) : pool_(pool), names_(std::move(names)) {}
  ~AddressEmitter() = default;

  // The value of an expression from which an index is computed. The value is the same for all lanes.
  virtual TextValue value(schedule::ExprId e) = 0;

  // wide(): True if the value of `e` may differ between lanes. has_wide_local(): True if it may differ because `e`
  // depends on a wide local.
  bool wide(schedule::ExprId e) const;
  bool has_wide_local(schedule::ExprId e) const;
  const std::string& width(bool wide) const;
  std::string extent(int64_t value) const;
  // The text of a load. A wide load loads a vector; its index must be affine in the lane index. Any other load loads
  // one element.
  std::string load(schedule::ExprId load);
  // The statement that stores a vec of the current width.
  std::string store(const std::string& buffer, const schedule::Index& at, const std::string& value, bool stream);
  // The condition of a guard, as text.
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
