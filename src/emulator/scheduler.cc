#include "emulator/scheduler.h"

#include <algorithm>

#include "emulator/collectives.h"

namespace heddle::emulator {
namespace {

struct Abandoned {};

// Fails the launch if a block ends as no block may.
void check_block(Scheduler& s, const Block& block, bool early) {
  if (!block.zones_intact()) {
    s.fail("block ({}, {}, {}) wrote outside of its {} bytes of dynamic shared memory", block.block_index.x,
           block.block_index.y, block.block_index.z, block.shared_bytes);
  }
  if (early && !block.waited) {
    s.fail("a block ended without a wait for the launch in front, which its kernel may begin before the end of");
  }
  s.transfers.check_end(block);
}

}  // namespace

namespace {
Scheduler* running = nullptr;
}  // namespace

Scheduler& scheduler() {
  return *running;
}

Scheduler::Scheduler() : transfers(*this), fibers_(&fiber_body), random_(1) {}

// ---- Switching

void Scheduler::select(Thread* thread) {
  current_ = thread;
  *thread_slot_ = thread;
  if (thread->owner != current_block_) {
    current_block_ = thread->owner;
    for (uint8_t** slot : kernel_->module->shared_slots()) *slot = current_block_->shared;
  }
}

// The next thread that can run, null where none can. Threads that poll run when nobody else can, in turn.
Thread* Scheduler::pick() {
  while (transfers.has_boxes() && (ready_.empty() || random_.one_in(8))) transfers.complete_box(!ready_.empty());
  while (transfers.has_remote() && (ready_.empty() || random_.one_in(4))) transfers.complete_remote();
  if (!ready_.empty()) {
    const uint32_t which = random_.below(static_cast<uint32_t>(ready_.size()));
    Thread* thread = ready_[which];
    ready_[which] = ready_.back();
    ready_.pop_back();
    if (thread->owner->works()) progress.made();
    return thread;
  }
  if (pollers_.empty() || !progress.may_poll(pollers_.size(), grid_)) return nullptr;
  Thread* thread = pollers_.front();
  pollers_.pop_front();
  thread->wait = Wait::kReady;
  return thread;
}

// Selects a thread, with a stack of its own, and returns where that is.
void* Scheduler::resume(Thread* thread) {
  if (thread->fiber == nullptr) {
    thread->fiber = fibers_.take();
    if (thread->fiber == nullptr) fail("the host has no memory for the stack of another thread");
    thread->fiber->next = thread;
  }
  select(thread);
  return thread->fiber->stack_pointer;
}

void Scheduler::switch_away() {
  Thread* self = current_;
  Fiber* fiber = self->fiber;
  Thread* next = pick();
  if (next == self) return;
  heddle_switch_stack(&fiber->stack_pointer, next != nullptr ? resume(next) : main_stack_);
}

void Scheduler::wait(Wait what, uint64_t detail, Place place) {
  current_->wait = what;
  current_->detail = detail;
  current_->place = place;
  switch_away();
}

void Scheduler::fail_access(const BadAccess& access) {
  Scheduler& s = scheduler();
  const emulated::Dim &block = s.current_->owner->block_index, &thread = s.current_->thread_index;
  s.failure_ = fmt::format("thread ({}, {}, {}) of block ({}, {}, {}) {}", thread.x, thread.y, thread.z, block.x,
                           block.y, block.z, s.memory_->describe(access));
  s.abandon();
}

void Scheduler::poll(Place place) {
  current_->owner->resumed_since_poll = 0;
  pollers_.push_back(current_);
  wait(Wait::kPoll, 0, place);
}

void Scheduler::wake(Thread* thread) {
  thread->wait = Wait::kReady;
  ready_.push_back(thread);
}

// Now and then the thread that ends a wait is not the first to go on.
void Scheduler::give_way(uint32_t one_in) {
  if (!random_.one_in(one_in)) return;
  ready_.push_back(current_);
  switch_away();
}

void Scheduler::fiber_body(Fiber* self) {
  Scheduler& s = scheduler();
  for (;;) {
    s.kernel_->info->run(s.arguments_);
    s.finish_current();
    Thread* next = s.pick();
    if (next != nullptr && next->fiber == nullptr) {  // on this stack
      next->fiber = self;
      s.select(next);
      continue;
    }
    s.fibers_.give_back(self);
    void* to = s.main_stack_;
    if (next != nullptr) {
      s.select(next);
      to = next->fiber->stack_pointer;
    }
    heddle_switch_stack(&self->stack_pointer, to);
  }
}

void Scheduler::abandon() {
  if (!on_fiber_) throw Abandoned{};
  void* abandoned = nullptr;
  heddle_switch_stack(&abandoned, main_stack_);
  __builtin_unreachable();
}

// ---- Blocks

void Scheduler::finish_current() {
  Thread& thread = *current_;
  thread.wait = Wait::kFinished;
  Block& block = *thread.owner;
  Group& group = *block.group;
  --group.live_threads;
  if (thread.cluster_phase > group.cluster_phase) --group.cluster_arrived;
  if (group.cluster_arrived > 0) release_cluster(*this, group);
  if (--block.live_threads == 0) return finish_block(block);
  release_barriers(*this, block);
}

void Scheduler::finish_block(Block& block) {
  check_block(*this, block, grid_.shape().early);
  progress.made();
  if (!grid_.end(block)) return;
  // Mostly one at a time, which is fastest; sometimes several, so that blocks meet that should not depend on an order.
  start_group();
  if (grid_.live_groups().size() == 1 && random_.one_in(4)) start_group();
}

void Scheduler::reset() {
  fibers_.reset();
  ready_.clear();
  pollers_.clear();
  on_fiber_ = false;
  progress.reset();
  current_ = nullptr;
  current_block_ = nullptr;
  failure_.clear();
  previous_ended_ = true;
  dependent_.clear();
}

std::string Scheduler::run(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory,
                           uint64_t seed) {
  clocks.begin(kernel, shape, false);
  prepare(kernel, shape, arguments, memory, seed);
  proceed();
  clocks.end();
  return failure_;
}

void Scheduler::begin(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed) {
  clocks.begin(kernel, shape, true);
  prepare(kernel, shape, arguments, memory, seed);
  previous_ended_ = false;
  if (random_.one_in(2)) start_group();
  proceed();
}

std::string Scheduler::finish() {
  previous_ended_ = true;
  current_block_ = nullptr;  // the other scheduler's blocks had the kernels' pointers
  progress.made();
  for (Thread* thread : dependent_) wake(thread);
  dependent_.clear();
  if (failure_.empty()) proceed();
  clocks.end();
  return failure_;
}

void Scheduler::grid_dependency_wait(Place place) {
  current_->owner->waited = true;
  if (!previous_ended_) {
    dependent_.push_back(current_);
    wait(Wait::kPrevious, 0, place);
  }
  clocks.wait(current_->clock);
}

void Scheduler::access(ThreadClock& clock, const MemoryAccess& access) {
  if (!clocks.access(clock, *memory_, access, &failure_)) abandon();
}

bool Scheduler::start_group() {
  const size_t before = ready_.size();
  const bool has_started = grid_.start_group(ready_);
  clocks.start(std::span(ready_).subspan(before));
  return has_started;
}

void Scheduler::prepare(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory,
                        uint64_t seed) {
  reset();
  random_ = Random(seed);
  kernel_ = &kernel;
  arguments_ = arguments;
  transfers.reset(memory);
  memory_ = &memory;
  const emulated::ModuleInfo& info = kernel.module->info();
  thread_slot_ = info.thread;
  *info.api = &api();
  grid_.begin(shape, random_);
  do {
    if (!start_group()) break;
  } while (shape.cooperative);
}

void Scheduler::proceed() {
  running = this;
  const FaultGuard guard(&fail_access, on_fiber_);
  try {
    run_all();
  } catch (const Abandoned&) {
  }
}

// Comes back to this stack when nobody can run.
void Scheduler::run_all() {
  while (failure_.empty()) {
    Thread* next = pick();
    if (next != nullptr) {
      void* to = resume(next);
      on_fiber_ = true;
      heddle_switch_stack(&main_stack_, to);
      on_fiber_ = false;
    } else if (!previous_ended_) {
      break;
    } else if (start_group()) {
      progress.made();
    } else {
      if (grid_.live_blocks() > 0) failure_ = describe_deadlock(grid_);
      break;
    }
  }
}

uint8_t* shared_at(Scheduler& s, Block& block, uint32_t address, uint32_t bytes, uint32_t alignment, const char* what,
                   Place place) {
  const uint32_t offset = address - block.shared_base;
  if (address % alignment != 0) {
    s.fail("{}: shared address {:#x} is not aligned to {} bytes ({}:{})", what, address, alignment, name_of(place),
           place.line);
  }
  if (address < block.shared_base || offset > block.shared_bytes || bytes > block.shared_bytes - offset) {
    s.fail("{}: {} bytes at shared address {:#x} are outside of the block's {} ({}:{})", what, bytes, address,
           block.shared_bytes, name_of(place), place.line);
  }
  return block.shared + offset;
}

Block& block_of_cluster(Scheduler& s, uint32_t rank) {
  const Group& group = *s.current().owner->group;
  if (rank >= group.blocks.size()) s.fail("a cluster of {} has no block {}", group.blocks.size(), rank);
  Block& block = *group.blocks[rank];
  if (block.live_threads == 0) s.fail("shared memory of block {} of the cluster is used after its end", rank);
  return block;
}

}  // namespace heddle::emulator
