#pragma once

#include <map>
#include <string>
#include <vector>

#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

namespace heddle::lang::cpu {

// Lines of text, indented when they are joined.
class Lines {
 public:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  // "head {", the block, "}" and `end`.
  void block(const std::string& head, const Lines& body, const std::string& end = "}");
  void close_block(const Lines& body);  // the second one of a block that ended in "} else {"
  void append(const Lines& other) { lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end()); }
  bool empty() const { return lines_.empty(); }
  std::string text(int depth) const;

 private:
  std::vector<std::string> lines_;
};

// Where a value is. What is pending is computed by whoever needs it, in that one's loop.
struct Held {
  enum class Kind : uint8_t { kPending, kScalar, kBuffer };
  Kind kind = Kind::kPending;
  std::string name;    // of the variable, or of the pointer to the buffer
  bool owned = false;  // a buffer that is of this value alone
};

// An index of an element along a dimension.
struct Index {
  std::string text;
  bool lane = false;   // lane i of a vector has the index text + i
  bool inner = false;  // the text is known within the loop over vectors only
};
using Coords = std::vector<Index>;

// What is known while a kernel is written: where values are, the buffers, names.
class State {
 public:
  explicit State(const Kernel& kernel) : kernel(kernel), uses(kernel), held(kernel.values.size()) {}

  const Kernel& kernel;
  const Uses uses;
  std::vector<Held> held;
  // The variable that watches the loop around, if that may wait for other programs; "": none does.
  std::string watch;

  Held& at(ValueId value) { return held[static_cast<size_t>(value)]; }
  const Held& at(ValueId value) const { return held[static_cast<size_t>(value)]; }
  const Type& type(ValueId value) const { return kernel.type(value); }
  bool is_pending(ValueId value) const { return at(value).kind == Held::Kind::kPending; }
  bool is_buffer(ValueId value) const { return at(value).kind == Held::Kind::kBuffer; }

  // A name that no other variable has: "acc_12".
  std::string fresh(ValueId value);
  // A buffer for a value; the name of the variable that points to it.
  std::string new_buffer(ValueId value);
  std::string new_floats(ValueId value, int64_t elements);  // named after a value
  void set_scalar(ValueId value, std::string name) { at(value) = {Held::Kind::kScalar, std::move(name), false}; }
  void set_buffer(ValueId value, std::string name, bool owned = true) {
    at(value) = {Held::Kind::kBuffer, std::move(name), owned};
  }

  // What pending values cost to compute again: operations for an element down to what is held. A load costs as much as
  // makes it worth a buffer.
  int cost(ValueId value) const;
  bool has_load(ValueId value) const;  // reads memory that is not a buffer
  static constexpr int kHeavy = 8;
  bool is_heavy(ValueId value) const { return is_pending(value) && (cost(value) >= kHeavy || has_load(value)); }

  // The value of an integer that is the same for all elements and known now.
  std::optional<int64_t> constant(ValueId value) const;

  // Whether all elements are known to be 0, with the sign of +0.
  bool is_zero(ValueId value) const;

  // Declarations of all buffers, on the stack up to a limit, and the bytes of scratch that the others take.
  Lines buffer_declarations() const;
  int64_t scratch_bytes() const { return scratch_; }

 private:
  std::string add_buffer(ValueId value, std::string type, int64_t elements, int64_t size);
  static constexpr int64_t kMostStack = 128 << 10, kMostStackBuffer = 32 << 10;
  struct Buffer {
    std::string name, type;
    int64_t elements, scratch;  // -1: on the stack
  };
  std::vector<Buffer> buffers_;
  std::map<std::string, int> names_;
  int64_t stack_ = 0, scratch_ = 0;
};

// Ops that are not written where they stand, but in the loops of those that need them.
bool is_lazy(const Kernel& kernel, const Op& op);

// Coordinates of the operand of a shape op for those of its result.
Coords operand_coords(const Kernel& kernel, const Op& op, const Coords& coords);

// "// softmax.py:7"
std::string place_comment(const Kernel& kernel, const Op& op);

}  // namespace heddle::lang::cpu
