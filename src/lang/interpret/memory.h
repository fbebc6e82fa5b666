#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lang/interpret/number.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// A range of memory that a kernel may access.
struct Allocation {
  uint64_t address = 0, bytes = 0;
  std::string name;  // its name in messages
};

// Memory of this process as seen by programs that run one after another. If `allocations` is not empty, each access
// must be inside one of them. With `races`, it is an error if two programs access the same cell and one of them writes
// it. There are two exceptions: both accesses are atomic, or the later program executed an atomic operation with
// acquire semantics before its access.
class Memory {
 public:
  Memory(const Kernel& kernel, std::vector<Allocation> allocations, bool races);

  void enter_program(std::array<int64_t, 3> program);
  // Sets the op that performs the following accesses. Their argument `lane` is the index of an element in the op's
  // tile.
  void enter_op(const Op& op) { op_ = &op; }

  // `is_volatile`: the value may come from another program. The load then counts as an atomic operation with acquire
  // semantics.
  Cell load(uint64_t address, Element element, size_t lane, bool is_volatile = false);
  void store(uint64_t address, Element element, Cell value, size_t lane);
  // Replaces the value at `address` by update(old value) and returns the old value. Call check() first.
  template <typename F>
  Cell exchange(uint64_t address, Element element, const F& update) {
    const Cell old = read(address, element);
    write(address, element, update(old));
    return old;
  }
  enum class Access : uint8_t { kRead, kVolatileRead, kWrite, kAtomic };
  void check(uint64_t address, Element element, size_t lane, Access access);
  void order_program() { ordered_ = true; }
  // The number of writes that changed a value.
  int64_t changes() const { return changes_; }

  // The location of an access for messages: "softmax.py:9: `load` in program (1, 0, 0), element 7".
  std::string where(size_t lane) const;

 private:
  struct Touch {
    int64_t program = -1;
    int frame = -1;
    bool atomic = false;
  };
  struct Shadow {
    Touch write, read;
  };
  static Cell read(uint64_t address, Element element);
  void write(uint64_t address, Element element, Cell value);
  void check_bounds(uint64_t address, uint64_t bytes, size_t lane, Access access);
  void check_race(uint64_t address, size_t lane, Access access);
  [[noreturn]] void race(const Touch& other, std::string_view what, size_t lane) const;

  const Kernel& kernel_;
  std::vector<Allocation> allocations_;  // sorted by address
  size_t last_ = 0;                      // the index of the allocation that the last access hit
  bool races_;
  std::unordered_map<uint64_t, Shadow> shadow_;
  std::vector<std::array<int64_t, 3>> programs_;
  const Op* op_ = nullptr;
  bool ordered_ = false;
  int64_t changes_ = 0;
};

}  // namespace heddle::lang
