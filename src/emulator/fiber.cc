#include "emulator/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

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

// ---- Faults

namespace {

struct Watched {
  pthread_t thread;
  void (*report)(const BadAccess&);
  const bool* on_fiber;
  struct sigaction segment, bus;  // before
  stack_t stack;
  BadAccess access;
};
Watched watched;
alignas(64) unsigned char handler_stack[64 << 10], report_stack[64 << 10];

void report_access() {
  watched.report(watched.access);
}

void handle_fault(int signal, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (::pthread_equal(watched.thread, ::pthread_self()) == 0 || !*watched.on_fiber) {
    // The access is repeated and reaches the previous handler.
    ::sigaction(signal, signal == SIGSEGV ? &watched.segment : &watched.bus, nullptr);
    return;
  }
  constexpr int64_t kWrites = 2;  // bit of the error code of a page fault
  // The host's kernel reports no address if none can be mapped there.
  const bool has_address = info->si_code != SI_KERNEL;
  watched.access = {reinterpret_cast<uint64_t>(info->si_addr), has_address, (registers[REG_ERR] & kWrites) != 0};
  // The fiber's own stack may have overflowed. Aligned as after a call: 8 bytes below a multiple of 16.
  registers[REG_RSP] = reinterpret_cast<int64_t>(report_stack + sizeof report_stack - 72);
  registers[REG_RIP] = reinterpret_cast<int64_t>(&report_access);
}

}  // namespace

FaultGuard::FaultGuard(void (*report)(const BadAccess&), const bool& on_fiber) {
  watched.thread = ::pthread_self();
  watched.report = report;
  watched.on_fiber = &on_fiber;
  stack_t own{};
  own.ss_sp = handler_stack;
  own.ss_size = sizeof handler_stack;
  ::sigaltstack(&own, &watched.stack);
  struct sigaction action {};
  action.sa_sigaction = &handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &watched.segment);
  ::sigaction(SIGBUS, &action, &watched.bus);
}

FaultGuard::~FaultGuard() {
  ::sigaction(SIGSEGV, &watched.segment, nullptr);
  ::sigaction(SIGBUS, &watched.bus, nullptr);
  ::sigaltstack(&watched.stack, nullptr);
}

}  // namespace heddle::emulator
