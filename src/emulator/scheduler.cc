#include "emulator/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace heddle::emulator {
namespace {

struct Abandoned {};

}  // namespace

namespace {
Scheduler* running = nullptr;
}  // namespace

Scheduler& scheduler() {
  return *running;
}

Scheduler::Scheduler() : fibers_(&fiber_body), random_(1) {}

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
  while (!boxes_.empty() && (ready_.empty() || random_.one_in(8))) complete_box(!ready_.empty());
  while (!remote_.empty() && (ready_.empty() || random_.one_in(4))) complete_remote();
  if (!ready_.empty()) {
    stale_polls_ = 0;
    const uint32_t which = random_.below(static_cast<uint32_t>(ready_.size()));
    Thread* thread = ready_[which];
    ready_[which] = ready_.back();
    ready_.pop_back();
    return thread;
  }
  if (pollers_.empty() || stale_polls_ > stalled_polls_limit()) return nullptr;
  ++stale_polls_;
  Thread* thread = pollers_.front();
  pollers_.pop_front();
  thread->wait = Wait::kReady;
  return thread;
}

// A few rounds without progress start more blocks; many with all of them running are a deadlock.
uint32_t Scheduler::stalled_polls_limit() const {
  const uint32_t rounds = unstarted_.empty() || live_blocks_ >= shape_.resident ? 10000 : 4;
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{rounds} * (pollers_.size() + 1), 0x7fffffff));
}

void Scheduler::switch_away() {
  Thread* self = current_;
  Fiber* fiber = self->fiber;
  Thread* next = pick();
  if (next == self) return;
  void* to = main_stack_;
  if (next != nullptr) {
    if (next->fiber == nullptr) {
      next->fiber = fibers_.take();
      if (next->fiber == nullptr) fail("the host has no memory for the stack of another thread");
      next->fiber->next = next;
    }
    select(next);
    to = next->fiber->stack_pointer;
  }
  heddle_switch_stack(&fiber->stack_pointer, to);
}

void Scheduler::wait(Wait what, uint32_t detail, Place place) {
  current_->wait = what;
  current_->detail = detail;
  current_->place = place;
  switch_away();
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
    s.run_current();
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

void Scheduler::run_current() {
  kernel_->info->run(arguments_);
}

void Scheduler::abandon() {
  if (!on_fiber_) throw Abandoned{};
  void* abandoned = nullptr;
  heddle_switch_stack(&abandoned, main_stack_);
  __builtin_unreachable();
}

// ---- Blocks

void Scheduler::set_up_warps(Block& block) {
  constexpr uint32_t kRegisters = 65536, kMostRegisters = 248;
  const auto threads = static_cast<uint32_t>(block.threads.size());
  block.warps.resize((threads + 31) / 32);
  block.warpgroups.assign((threads + 127) / 128, {});
  // As many as launch bounds of one block per SM allow, in steps of 8.
  const auto warps = static_cast<uint32_t>(block.warps.size());
  const uint32_t registers = std::min(kMostRegisters, kRegisters / (32 * warps) / 8 * 8);
  block.free_registers = kRegisters - 32 * warps * registers;
  for (uint32_t i = 0; i < block.warps.size(); ++i) {
    Warp& warp = block.warps[i];
    const uint32_t lanes = std::min(32u, threads - 32 * i);
    warp.lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.barrier_stamp = warp.products = 0;
    warp.commits.clear();
    warp.fenced = false;
    warp.waiting.clear();
    warp.registers = registers;
    warp.registers_wanted = 0;
    for (const auto& exchange : warp.exchanges) exchange->arrived = exchange->waiting_count = 0;
  }
}

void Scheduler::start_block(Block& block, Group& group, uint32_t number, uint32_t rank) {
  const emulated::Dim& grid = shape_.grid;
  block.block_index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
  block.block_dim = shape_.block;
  block.grid_dim = grid;
  block.cluster_rank = rank;
  block.cluster_blocks = static_cast<uint32_t>(group.blocks.size());
  block.group = &group;
  block.set_shared(shape_.shared_bytes, shared_base_);
  const uint32_t threads = shape_.block.x * shape_.block.y * shape_.block.z;
  block.live_threads = threads;
  block.async_fences = 0;
  block.unfenced_init = false;
  block.waited = false;
  block.threads.resize(threads);
  set_up_warps(block);
  for (Barrier& barrier : block.barriers) {
    barrier.expected = barrier.arrived = barrier.any = barrier.count = 0;
    barrier.all = 1;
    barrier.waiting.clear();
  }
  for (std::vector<Copy>& copies : block.copies) copies.clear();
  for (uint32_t i = 0; i < threads; ++i) {
    Thread& thread = block.threads[i];
    thread = Thread{};
    thread.thread_index = {i % shape_.block.x, i / shape_.block.x % shape_.block.y,
                           i / shape_.block.x / shape_.block.y};
    thread.linear = i;
    thread.block = thread.owner = &block;
    thread.warp = &block.warps[i / 32];
    ready_.push_back(&thread);
  }
  ++live_blocks_;
}

// Starts the next cluster (or block) where one is left and fits.
bool Scheduler::start_group() {
  const emulated::Dim c = shape_.cluster;
  const uint32_t size = c.x * c.y * c.z;
  if (unstarted_.empty() || (live_blocks_ > 0 && live_blocks_ + size > shape_.resident)) return false;
  const uint32_t number = unstarted_.back();
  unstarted_.pop_back();
  if (free_groups_.empty()) {
    groups_.push_back(std::make_unique<Group>());
    free_groups_.push_back(groups_.back().get());
  }
  Group& group = *free_groups_.back();
  free_groups_.pop_back();
  group.blocks.assign(size, nullptr);
  group.live_blocks = size;
  group.live_threads = size * shape_.block.x * shape_.block.y * shape_.block.z;
  group.cluster_arrived = group.cluster_phase = 0;
  group.cluster_waiting.clear();
  for (Block*& block : group.blocks) {
    if (free_blocks_.empty()) {
      blocks_.push_back(std::make_unique<Block>());
      free_blocks_.push_back(blocks_.back().get());
    }
    block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  const emulated::Dim groups = {shape_.grid.x / c.x, shape_.grid.y / c.y, shape_.grid.z / c.z};
  const emulated::Dim first = {number % groups.x * c.x, number / groups.x % groups.y * c.y,
                               number / groups.x / groups.y * c.z};
  for (uint32_t rank = 0; rank < size; ++rank) {
    const uint32_t x = first.x + rank % c.x, y = first.y + rank / c.x % c.y, z = first.z + rank / c.x / c.y;
    start_block(*group.blocks[rank], group, x + shape_.grid.x * (y + shape_.grid.y * z), rank);
  }
  live_groups_.push_back(&group);
  return true;
}

void Scheduler::finish_current() {
  Thread& thread = *current_;
  thread.wait = Wait::kFinished;
  Block& block = *thread.owner;
  Group& group = *block.group;
  --group.live_threads;
  if (thread.cluster_phase > group.cluster_phase) --group.cluster_arrived;
  if (group.cluster_arrived > 0) release_cluster(group);
  if (--block.live_threads == 0) finish_block(block);
}

void Scheduler::finish_block(Block& block) {
  if (!block.zones_intact()) {
    fail("block ({}, {}, {}) wrote outside of its {} bytes of dynamic shared memory", block.block_index.x,
         block.block_index.y, block.block_index.z, block.shared_bytes);
  }
  if (shape_.early && !block.waited) {
    fail("a block ended without a wait for the launch in front, which its kernel may begin before the end of");
  }
  check_copies(block);
  check_remote(block);
  Group& group = *block.group;
  --live_blocks_;
  if (--group.live_blocks > 0) return;
  for (Block* ended : group.blocks) free_blocks_.push_back(ended);
  free_groups_.push_back(&group);
  std::erase(live_groups_, &group);
  // Mostly one at a time, which is fastest; sometimes several, so that blocks meet that should not depend on an order.
  start_group();
  if (live_groups_.size() == 1 && random_.one_in(4)) start_group();
}

void Scheduler::reset() {
  fibers_.reset();
  ready_.clear();
  pollers_.clear();
  boxes_.clear();
  remote_.clear();
  barrier_waiters_.clear();
  unstarted_.clear();
  live_groups_.clear();
  on_fiber_ = false;
  free_blocks_.clear();
  free_groups_.clear();
  for (const auto& block : blocks_) free_blocks_.push_back(block.get());
  for (const auto& group : groups_) free_groups_.push_back(group.get());
  live_blocks_ = 0;
  stale_polls_ = 0;
  current_ = nullptr;
  current_block_ = nullptr;
  failure_.clear();
  previous_ended_ = true;
  dependent_.clear();
}

std::string Scheduler::run(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory,
                           uint64_t seed) {
  prepare(kernel, shape, arguments, memory, seed);
  proceed();
  return failure_;
}

void Scheduler::begin(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory, uint64_t seed) {
  prepare(kernel, shape, arguments, memory, seed);
  previous_ended_ = false;
  if (random_.one_in(2)) start_group();
  proceed();
}

std::string Scheduler::finish() {
  previous_ended_ = true;
  current_block_ = nullptr;  // the other scheduler's blocks had the kernels' pointers
  stale_polls_ = 0;
  for (Thread* thread : dependent_) wake(thread);
  dependent_.clear();
  if (failure_.empty()) proceed();
  return failure_;
}

void Scheduler::grid_dependency_wait(Place place) {
  current_->owner->waited = true;
  if (previous_ended_) return;
  dependent_.push_back(current_);
  wait(Wait::kPrevious, 0, place);
}

void Scheduler::prepare(Kernel& kernel, const LaunchShape& shape, void** arguments, const Memory& memory,
                        uint64_t seed) {
  reset();
  random_ = Random(seed);
  kernel_ = &kernel;
  shape_ = shape;
  arguments_ = arguments;
  memory_ = &memory;
  const emulated::ModuleInfo& info = kernel.module->info();
  thread_slot_ = info.thread;
  *info.api = &api();
  shared_base_ = 1024 + 128 * random_.below(8);

  const uint32_t cluster = shape.cluster.x * shape.cluster.y * shape.cluster.z;
  unstarted_.resize(size_t{shape.grid.x} * shape.grid.y * shape.grid.z / cluster);
  std::iota(unstarted_.begin(), unstarted_.end(), 0);
  for (size_t i = unstarted_.size(); i > 1; --i) {
    std::swap(unstarted_[i - 1], unstarted_[random_.below(static_cast<uint32_t>(i))]);
  }
  do {
    if (!start_group()) break;
  } while (shape.cooperative);
}

void Scheduler::proceed() {
  running = this;
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
      if (next->fiber == nullptr) {
        next->fiber = fibers_.take();
        if (next->fiber == nullptr) fail("the host has no memory for the stack of another thread");
        next->fiber->next = next;
      }
      select(next);
      on_fiber_ = true;
      heddle_switch_stack(&main_stack_, next->fiber->stack_pointer);
      on_fiber_ = false;
    } else if (!previous_ended_) {
      break;
    } else if (start_group()) {
      stale_polls_ = 0;
    } else {
      if (live_blocks_ > 0) failure_ = describe_deadlock();
      break;
    }
  }
}

// ---- Reports

std::string Scheduler::describe_deadlock() const {
  struct Where {
    Wait wait;
    uint32_t detail;
    std::string file;
    uint32_t line;
    auto operator<=>(const Where&) const = default;
  };
  std::map<Where, uint64_t> waiting;
  uint64_t finished = 0, blocks = 0;
  for (const Group* group : live_groups_) {
    for (const Block* block : group->blocks) {
      ++blocks;
      for (const Thread& thread : block->threads) {
        if (thread.wait == Wait::kFinished) {
          ++finished;
        } else {
          const char* file = thread.place.file == nullptr ? "?" : thread.place.file;
          ++waiting[{thread.wait, thread.detail, file, thread.place.line}];
        }
      }
    }
  }
  std::string text = fmt::format("deadlock in {} block(s), {} not started:", blocks, unstarted_.size());
  for (const auto& [where, count] : waiting) {
    std::string what;
    switch (where.wait) {
      case Wait::kBarrier:
        what = where.detail == 0 ? "in __syncthreads" : fmt::format("in barrier {}", where.detail);
        break;
      case Wait::kLanes:
        what = fmt::format("for the lanes {:#010x} of their warp", where.detail);
        break;
      case Wait::kCluster:
        what = "in the barrier of the cluster";
        break;
      case Wait::kPoll:
        what = "for a value in memory";
        break;
      case Wait::kTransactions:
        what = fmt::format("for the barrier at shared address {:#x}", where.detail);
        break;
      case Wait::kStores:
        what = "for their stores";
        break;
      case Wait::kProducts:
        what = "for a wgmma that not all warps of the warpgroup asked for";
        break;
      case Wait::kPrevious:
        what = "for the launch in front";
        break;
      case Wait::kRegisters:
        what = fmt::format("for {} registers each", where.detail);
        break;
      default:
        what = "for nothing known";
    }
    text += fmt::format(" {} thread(s) wait {} ({}:{});", count, what, where.file, where.line);
  }
  return text + fmt::format(" {} have ended", finished);
}

}  // namespace heddle::emulator
