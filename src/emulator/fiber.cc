#include "emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#if !defined(__x86_64__)
#error "the emulator switches stacks of x86-64 only"
#endif

// The floating-point control words are the same in every fiber.
asm(R"(
  .text
  .globl heddle_switch_stack
  .hidden heddle_switch_stack
  .type heddle_switch_stack, @function
heddle_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size heddle_switch_stack, . - heddle_switch_stack

  .hidden heddle_start_fiber
  .type heddle_start_fiber, @function
heddle_start_fiber:
  movq %r12, %rdi
  call *%r13
  ud2
  .size heddle_start_fiber, . - heddle_start_fiber
)");

extern "C" void heddle_start_fiber();

namespace heddle::emulator {
namespace {

constexpr size_t kGuardBytes = 4096;
// Each guard page costs the kernel two mappings, of which a process may have 65530.
constexpr size_t kMostGuarded = 16384;

}  // namespace

FiberPool::~FiberPool() {
  for (const Stack& stack : stacks_) ::munmap(stack.base - kGuardBytes, kStackBytes + kGuardBytes);
}

void FiberPool::prepare(const Stack& stack) {
  // As heddle_switch_stack() left it: r15, r14, r13, r12, rbx, rbp and where to return to. The stack pointer is then
  // a multiple of 16, as before a call.
  auto* words = reinterpret_cast<uint64_t*>(stack.base + kStackBytes) - 9;
  words[0] = words[1] = words[4] = words[5] = 0;
  words[2] = reinterpret_cast<uint64_t>(body_);
  words[3] = reinterpret_cast<uint64_t>(stack.fiber.get());
  words[6] = reinterpret_cast<uint64_t>(&heddle_start_fiber);
  stack.fiber->stack_pointer = words;
}

Fiber* FiberPool::take() {
  if (idle_.empty()) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    void* memory = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (stacks_.size() < kMostGuarded) ::mprotect(memory, kGuardBytes, PROT_NONE);
    stacks_.push_back({std::make_unique<Fiber>(), static_cast<unsigned char*>(memory) + kGuardBytes});
    prepare(stacks_.back());
    idle_.push_back(stacks_.back().fiber.get());
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void FiberPool::reset() {
  idle_.clear();
  for (const Stack& stack : stacks_) {
    prepare(stack);
    idle_.push_back(stack.fiber.get());
  }
}

}  // namespace heddle::emulator
