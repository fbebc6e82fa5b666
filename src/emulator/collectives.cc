#include "emulator/collectives.h"

namespace heddle::emulator {
namespace {

uint32_t result_of(const Barrier& barrier, BarrierMode mode) {
  switch (mode) {
    case BarrierMode::kOr:
      return barrier.any;
    case BarrierMode::kAnd:
      return barrier.all;
    default:
      return barrier.count;
  }
}

// Lanes of one warp must leave a barrier from the same place: the hardware's barrier is one instruction of the warp.
void check_convergence(Scheduler& s, const Barrier& barrier) {
  Block& block = *s.current().owner;
  ++block.barrier_stamp;
  const auto check = [&](const Thread& thread) {
    Warp& warp = *thread.warp;
    if (warp.barrier_stamp != block.barrier_stamp) {
      warp.barrier_stamp = block.barrier_stamp;
      warp.barrier_place = thread.place;
    } else if (warp.barrier_place.line != thread.place.line) {
      s.fail("lanes of one warp are in different barriers: {}:{} and {}:{}", name_of(warp.barrier_place),
             warp.barrier_place.line, name_of(thread.place), thread.place.line);
    }
  };
  for (const Thread* thread : barrier.waiting) check(*thread);
}

// Lets all threads of a barrier continue.
void release(Scheduler& s, Barrier& barrier) {
  for (Thread* thread : barrier.waiting) {
    thread->result = result_of(barrier, static_cast<BarrierMode>(thread->result));
    s.clocks.acquire(thread->clock, barrier.clock);
    s.wake(thread);
  }
  barrier.waiting.clear();
  barrier.clock.clear();
  barrier.arrived = barrier.any = barrier.count = 0;
  barrier.all = 1;
}

}  // namespace

void release_barriers(Scheduler& s, Block& block) {
  for (Barrier& barrier : block.barriers) {
    if (barrier.arrived > 0 && barrier.of_block && barrier.arrived >= block.live_threads) release(s, barrier);
  }
}

uint32_t barrier(Scheduler& s, uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place) {
  Thread& self = s.current();
  Block& block = *self.owner;
  if (id >= Block::kBarriers) s.fail("barrier {} does not exist ({}:{})", id, name_of(place), place.line);
  const auto all = static_cast<uint32_t>(block.threads.size());
  const uint32_t expected = threads == 0 ? all : threads;
  if (expected > all || (threads != 0 && threads % block.warp_lanes != 0)) {
    s.fail("barrier {} for {} threads in a block of {} ({}:{})", id, threads, all, name_of(place), place.line);
  }
  Barrier& barrier = block.barriers[id];
  if (barrier.arrived > 0 && barrier.expected != expected) {
    s.fail("barrier {} is for {} threads and for {} ({}:{})", id, barrier.expected, expected, name_of(place),
           place.line);
  }
  barrier.expected = expected;
  barrier.of_block = threads == 0;
  barrier.any |= predicate;
  barrier.all &= predicate;
  barrier.count += predicate;
  self.place = place;
  self.result = static_cast<uint32_t>(mode);
  s.clocks.release(self.clock, barrier.clock);
  if (++barrier.arrived < (barrier.of_block ? block.live_threads : expected)) {
    if (mode == BarrierMode::kArrive) return 0;
    barrier.waiting.push_back(&self);
    s.wait(Wait::kBarrier, id, place);
    return self.result;
  }
  barrier.waiting.push_back(&self);
  check_convergence(s, barrier);
  barrier.waiting.pop_back();
  const uint32_t result = result_of(barrier, mode);
  if (mode != BarrierMode::kArrive) s.clocks.acquire(self.clock, barrier.clock);
  release(s, barrier);
  s.give_way(2);
  return result;
}

emulated::Collected collect(Scheduler& s, Collective kind, uint64_t mask, uint64_t value, Place place, Action action) {
  Thread& self = s.current();
  Warp& warp = *self.warp;
  const uint32_t lane = self.linear % self.owner->warp_lanes;
  const uint64_t all = mask & warp.lanes;
  if ((mask >> lane & 1) == 0) s.fail("a lane is not in its own mask {:#x} ({}:{})", mask, name_of(place), place.line);
  Exchange* exchange = nullptr;
  for (const auto& candidate : warp.exchanges) {
    if (candidate->mask == mask) exchange = candidate.get();
  }
  if (exchange == nullptr) {
    warp.exchanges.push_back(std::make_unique<Exchange>());
    exchange = warp.exchanges.back().get();
    exchange->mask = mask;
  }
  if (exchange->arrived == 0) {
    exchange->kind = kind;
    exchange->place = place;
  } else if (exchange->kind != kind) {
    s.fail("lanes of one warp are in different exchanges: {}:{} and {}:{}", name_of(exchange->place),
           exchange->place.line, name_of(place), place.line);
  }
  auto& values = exchange->values[exchange->turn];
  values[lane] = value;
  // Only __syncwarp() orders accesses to memory.
  if (kind == Collective::kSync) s.clocks.release(self.clock, exchange->clock);
  exchange->arrived |= uint64_t{1} << lane;
  if (exchange->arrived != all) {
    exchange->waiting[exchange->waiting_count++] = &self;
    s.wait(Wait::kLanes, mask, place);
    return {values.data(), all};
  }
  if (action != nullptr) action(s, values.data(), place);
  if (kind == Collective::kSync) {
    s.clocks.acquire(self.clock, exchange->clock);
    for (uint32_t i = 0; i < exchange->waiting_count; ++i)
      s.clocks.acquire(exchange->waiting[i]->clock, exchange->clock);
    exchange->clock.clear();
  }
  for (uint32_t i = 0; i < exchange->waiting_count; ++i) s.wake(exchange->waiting[i]);
  exchange->arrived = exchange->waiting_count = 0;
  exchange->turn ^= 1;
  s.give_way(8);
  return {values.data(), all};
}

void whole_warp(Scheduler& s, Collective kind, uint64_t value, Place place, Action action) {
  constexpr uint64_t kAll = ~uint32_t{0};
  if (s.current().warp->lanes != kAll) {
    s.fail("a warp of another number of lanes than 32 at an instruction of whole warps ({}:{})", name_of(place),
           place.line);
  }
  collect(s, kind, kAll, value, place, action);
}

void release_cluster(Scheduler& s, Group& group) {
  if (group.cluster_arrived < group.live_threads) return;
  for (Thread* thread : group.cluster_waiting) {
    s.clocks.acquire(thread->clock, group.cluster_clock);
    s.wake(thread);
  }
  group.cluster_waiting.clear();
  group.cluster_released = std::move(group.cluster_clock);
  group.cluster_clock.clear();
  group.cluster_arrived = 0;
  ++group.cluster_phase;
}

void cluster_arrive(Scheduler& s, Place place) {
  Group& group = *s.current().owner->group;
  if (s.current().cluster_phase > group.cluster_phase) {
    s.fail("a thread arrives twice at the barrier of its cluster ({}:{})", name_of(place), place.line);
  }
  s.current().cluster_phase = group.cluster_phase + 1;
  ++group.cluster_arrived;
  s.clocks.release(s.current().clock, group.cluster_clock);
  release_cluster(s, group);
}

void cluster_wait(Scheduler& s, Place place) {
  Group& group = *s.current().owner->group;
  if (group.cluster_phase >= s.current().cluster_phase) {
    s.clocks.acquire(s.current().clock, group.cluster_released);
    return s.give_way(2);
  }
  group.cluster_waiting.push_back(&s.current());
  s.wait(Wait::kCluster, 0, place);
}

}  // namespace heddle::emulator
