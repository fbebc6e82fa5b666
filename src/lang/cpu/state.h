#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/text/writer.h"
#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

namespace heddle::lang::cpu {

using codegen::Writer;

// The location of a value. A pending value has no location: the loop of each op that needs the value computes it again.
struct Held {
  enum class Kind : uint8_t { kPending, kScalar, kBuffer };
  Kind kind = Kind::kPending;
  std::string name;    // of the variable, or of the pointer to the buffer
  bool owned = false;  // the buffer belongs to this value alone
};

// The index of an element along one dimension.
struct Index {
  std::string text;
  bool lane = false;   // lane i of a vector has index text + i
  bool inner = false;  // the text is valid only inside the loop over vectors
};
using Coords = std::vector<Index>;

// The state of code generation for one kernel: locations of values, buffers, and names.
class State {
 public:
  explicit State(const Kernel& kernel) : kernel(kernel), uses(kernel), held_(kernel.values.size()) {}

  const Kernel& kernel;
  const Uses uses;
  // The name of the spin_watch variable of the enclosing loop, if that loop may wait for other programs; else "".
  std::string watch;

  const Held& at(ValueId value) const { return held_[static_cast<size_t>(value)]; }
  const Type& type(ValueId value) const { return kernel.type(value); }
  bool is_pending(ValueId value) const { return at(value).kind == Held::Kind::kPending; }
  bool is_buffer(ValueId value) const { return at(value).kind == Held::Kind::kBuffer; }

  // Returns an unused variable name for a value: "acc_12".
  std::string fresh(ValueId value);
  // Adds a buffer for a value and returns the name of the pointer to it.
  std::string new_buffer(ValueId value);
  std::string new_floats(ValueId value, int64_t elements);  // a buffer of floats, named after the value
  void set_scalar(ValueId value, std::string name) { set(value, {Held::Kind::kScalar, std::move(name), false}); }
  void set_buffer(ValueId value, std::string name, bool owned = true) {
    set(value, {Held::Kind::kBuffer, std::move(name), owned});
  }
  // changes(): the number of set_scalar() and set_buffer() calls so far. undo_to(): restores the locations that all
  // values had after the first `changes` of these calls.
  size_t changes() const { return replaced_.size(); }
  void undo_to(size_t changes);
  // The values that set_scalar() set after the first `changes` calls, each listed once.
  std::vector<ValueId> scalars_since(size_t changes) const;

  // The number of operations per element that it takes to compute a pending value from values with a location. A load
  // alone is expensive enough to justify a buffer.
  int cost(ValueId value) const;
  bool has_load(ValueId value) const;  // true if computing the value reads memory outside of buffers
  static constexpr int kHeavy = 8;
  bool is_heavy(ValueId value) const { return is_pending(value) && (cost(value) >= kHeavy || has_load(value)); }

  // The value of an integer that is known at compile time and equal for all elements; else nullopt.
  std::optional<int64_t> constant(ValueId value) const;

  // True if all elements are known to be +0.
  bool is_zero(ValueId value) const;

  // buffer_declarations(): the declarations of all buffers. Buffers are on the stack up to a size limit.
  // scratch_bytes(): the scratch memory for the buffers beyond this limit.
  Writer buffer_declarations() const;
  int64_t scratch_bytes() const { return scratch_; }

 private:
  void set(ValueId value, Held held) {
    replaced_.emplace_back(value, std::exchange(held_[static_cast<size_t>(value)], std::move(held)));
  }
  std::string add_buffer(ValueId value, std::string type, int64_t elements, int64_t size);
  static constexpr int64_t kMostStack = 128 << 10, kMostStackBuffer = 32 << 10;
  struct Buffer {
    std::string name, type;
    int64_t elements, scratch;  // scratch: offset in scratch memory; -1: on the stack
  };
  std::vector<Held> held_;                          // by value
  std::vector<std::pair<ValueId, Held>> replaced_;  // previous locations of values, most recent last
  std::vector<Buffer> buffers_;
  std::map<std::string, int> names_;
  int64_t stack_ = 0, scratch_ = 0;
};

// True for ops whose code is not written in program order, but in the loops of the ops that use their results.
bool is_lazy(const Kernel& kernel, const Op& op);

// Converts coordinates in the result of a shape op to coordinates in its operand.
Coords operand_coords(const Kernel& kernel, const Op& op, const Coords& coords);

// A comment with the op's source location: "// softmax.py:7".
std::string place_comment(const Kernel& kernel, const Op& op);

}  // namespace heddle::lang::cpu
