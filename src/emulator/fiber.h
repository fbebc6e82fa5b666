#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::emulator {

// Saves the callee-saved registers and the stack pointer into *save, then continues at the point saved in `to`.
extern "C" void heddle_switch_stack(void** save, void* to);

struct Thread;

// A stack that runs threads of a kernel one after another, until one of them has to wait.
struct Fiber {
  void* stack_pointer = nullptr;
  Thread* next = nullptr;  // the thread to run when the idle fiber is resumed
};

// A pool of stacks of kStackBytes each, separated by guard pages. Stacks are kept for the next launch.
class FiberPool {
 public:
  static constexpr size_t kStackBytes = 64 << 10;

  explicit FiberPool(void (*body)(Fiber*)) : body_(body) {}
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // Returns an idle fiber, or null if there is no memory for another stack.
  Fiber* take();
  void give_back(Fiber* fiber) { idle_.push_back(fiber); }
  // Abandons the work of all fibers, so that each fiber starts from its beginning.
  void reset();

 private:
  struct Stack {
    std::unique_ptr<Fiber> fiber;
    unsigned char* base;  // lowest address of the stack; the guard page is before it
  };
  void prepare(const Stack& stack);

  void (*body_)(Fiber*);
  std::vector<Stack> stacks_;
  std::vector<Fiber*> idle_;
};

// An access to unmapped memory.
struct BadAccess {
  uint64_t address = 0;
  bool has_address = false, writes = false;
};

// While a guard exists, a fiber of this thread that accesses unmapped memory continues in `report`, which runs on a
// separate stack and does not return. Faults of other code reach the previous signal handlers. At most one guard exists
// at a time.
class FaultGuard {
 public:
  FaultGuard(void (*report)(const BadAccess&), const bool& on_fiber);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
};

}  // namespace heddle::emulator
