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

// The location of a value. A pending value is computed in the loop of each op that needs it.
struct Held {
  enum class Kind : uint8_t { kPending, kScalar, kBuffer };
  Kind kind = Kind::kPending;
  std::string name;    // of the variable, or of the pointer to the buffer
  bool owned = false;  // the buffer belongs to this value alone
};

// An index of an element along a dimension.
struct Index {
  std::string text;
  bool lane = false;   // lane i of a vector has index text + i
  bool inner = false;  // the text is valid only inside the loop over vectors
};
using Coords = std::vector<Index>;

// State of code generation for a kernel: locations of values, buffers, names.
class State {
 public:
  explicit State(const Kernel& kernel) : kernel(kernel), uses(kernel), held_(kernel.values.size()) {}

  const Kernel& kernel;
  const Uses uses;
  // The variable that watches the enclosing loop if that loop may wait for other programs; "" without such a loop.
  std::string watch;

  const Held& at(ValueId value) const { return held_[static_cast<size_t>(value)]; }
  const Type& type(ValueId value) const { return kernel.type(value); }
  bool is_pending(ValueId value) const { return at(value).kind == Held::Kind::kPending; }
  bool is_buffer(ValueId value) const { return at(value).kind == Held::Kind::kBuffer; }

  // An unused variable name: "acc_12".
  std::string fresh(ValueId value);
  // Makes a buffer for a value and returns the name of the variable that points to it.
  std::string new_buffer(ValueId value);
  std::string new_floats(ValueId value, int64_t elements);  // named after a value
  void set_scalar(ValueId value, std::string name) { set(value, {Held::Kind::kScalar, std::move(name), false}); }
  void set_buffer(ValueId value, std::string name, bool owned = true) {
    set(value, {Held::Kind::kBuffer, std::move(name), owned});
  }
  // The number of set_scalar() and set_buffer() calls so far. undo_to() restores the values as they were after that
  // many calls.
  size_t changes() const { return replaced_.size(); }
  void undo_to(size_t changes);
  // The scalars among the values set since then, each once.
  std::vector<ValueId> scalars_since(size_t changes) const;

  // Cost of computing a pending value again: operations per element, down to held values. A load alone costs enough to
  // justify a buffer.
  int cost(ValueId value) const;
  bool has_load(ValueId value) const;  // computing it reads memory that is not a buffer
  static constexpr int kHeavy = 8;
  bool is_heavy(ValueId value) const { return is_pending(value) && (cost(value) >= kHeavy || has_load(value)); }

  // The value of an integer that is equal for all elements and known at compile time.
  std::optional<int64_t> constant(ValueId value) const;

  // True if all elements are known to be +0.
  bool is_zero(ValueId value) const;

  // Declarations of all buffers (on the stack up to a limit), and the bytes of scratch memory for those beyond the
  // limit.
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
    int64_t elements, scratch;  // -1: on the stack
  };
  std::vector<Held> held_;                          // by value
  std::vector<std::pair<ValueId, Held>> replaced_;  // earlier locations of values, the latest last
  std::vector<Buffer> buffers_;
  std::map<std::string, int> names_;
  int64_t stack_ = 0, scratch_ = 0;
};

// True for ops that are not written at their place but in the loops of the ops that need them.
bool is_lazy(const Kernel& kernel, const Op& op);

// The coordinates in the operand of a shape op for coordinates in its result.
Coords operand_coords(const Kernel& kernel, const Op& op, const Coords& coords);

// "// softmax.py:7"
std::string place_comment(const Kernel& kernel, const Op& op);

}  // namespace heddle::lang::cpu
