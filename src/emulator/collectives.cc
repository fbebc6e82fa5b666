// What threads wait for together: barriers of the block, exchanges between lanes, barriers of the cluster.
#include "emulator/scheduler.h"

namespace heddle::emulator {
namespace {

const char* name_of(Place place) {
  return place.file == nullptr ? "?" : place.file;
}

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

}  // namespace

void Scheduler::poll(Place place) {
  pollers_.push_back(current_);
  wait(Wait::kPoll, 0, place);
}

// Lanes of one warp must leave a barrier from the same place: the hardware's barrier is one instruction of the warp.
void Scheduler::check_convergence(const Barrier& barrier) {
  ++barrier_stamp_;
  const auto check = [&](const Thread& thread) {
    Warp& warp = *thread.warp;
    if (warp.barrier_stamp != barrier_stamp_) {
      warp.barrier_stamp = barrier_stamp_;
      warp.barrier_place = thread.place;
    } else if (warp.barrier_place.line != thread.place.line) {
      fail("lanes of one warp are in different barriers: {}:{} and {}:{}", name_of(warp.barrier_place),
           warp.barrier_place.line, name_of(thread.place), thread.place.line);
    }
  };
  for (const Thread* thread : barrier.waiting) check(*thread);
  check(*current_);
}

uint32_t Scheduler::barrier(uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place) {
  Thread& self = *current_;
  Block& block = *self.owner;
  if (id >= Block::kBarriers) fail("barrier {} does not exist ({}:{})", id, name_of(place), place.line);
  const auto all = static_cast<uint32_t>(block.threads.size());
  const uint32_t expected = threads == 0 ? all : threads;
  if (expected > all || (threads != 0 && threads % 32 != 0)) {
    fail("barrier {} for {} threads in a block of {} ({}:{})", id, threads, all, name_of(place), place.line);
  }
  Barrier& barrier = block.barriers[id];
  if (barrier.arrived > 0 && barrier.expected != expected) {
    fail("barrier {} is for {} threads and for {} ({}:{})", id, barrier.expected, expected, name_of(place), place.line);
  }
  barrier.expected = expected;
  barrier.any |= predicate;
  barrier.all &= predicate;
  barrier.count += predicate;
  self.place = place;
  self.result = static_cast<uint32_t>(mode);
  if (++barrier.arrived < expected) {
    if (mode == BarrierMode::kArrive) return 0;
    barrier.waiting.push_back(&self);
    wait(Wait::kBarrier, id, place);
    return self.result;
  }
  check_convergence(barrier);
  for (Thread* thread : barrier.waiting) {
    thread->result = result_of(barrier, static_cast<BarrierMode>(thread->result));
    wake(thread);
  }
  const uint32_t result = result_of(barrier, mode);
  barrier.waiting.clear();
  barrier.arrived = barrier.any = barrier.count = 0;
  barrier.all = 1;
  give_way(2);
  return result;
}

emulated::Collected Scheduler::collect(Collective kind, uint32_t mask, uint64_t value, Place place, Action action) {
  Thread& self = *current_;
  Warp& warp = *self.warp;
  const uint32_t lane = self.linear % 32;
  const uint32_t all = mask & warp.lanes;
  if ((mask >> lane & 1) == 0) fail("a lane is not in its own mask {:#x} ({}:{})", mask, name_of(place), place.line);
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
    fail("lanes of one warp are in different exchanges: {}:{} and {}:{}", name_of(exchange->place),
         exchange->place.line, name_of(place), place.line);
  }
  auto& values = exchange->values[exchange->turn];
  values[lane] = value;
  exchange->arrived |= 1u << lane;
  if (exchange->arrived != all) {
    exchange->waiting[exchange->waiting_count++] = &self;
    wait(Wait::kLanes, mask, place);
    return {values.data(), all};
  }
  if (action != nullptr) action(*this, values.data(), place);
  for (uint32_t i = 0; i < exchange->waiting_count; ++i) wake(exchange->waiting[i]);
  exchange->arrived = exchange->waiting_count = 0;
  exchange->turn ^= 1;
  give_way(8);
  return {values.data(), all};
}

void Scheduler::whole_warp(Collective kind, uint64_t value, Place place, Action action) {
  if (current_->warp->lanes != ~0u) {
    fail("a warp of fewer than 32 lanes at an instruction of whole warps ({}:{})", name_of(place), place.line);
  }
  collect(kind, ~0u, value, place, action);
}

// Threads that ended count as arrived.
void Scheduler::release_cluster(Group& group) {
  if (group.cluster_arrived < group.live_threads) return;
  for (Thread* thread : group.cluster_waiting) wake(thread);
  group.cluster_waiting.clear();
  group.cluster_arrived = 0;
  ++group.cluster_phase;
}

void Scheduler::cluster_arrive(Place place) {
  Group& group = *current_->owner->group;
  if (current_->cluster_phase > group.cluster_phase) {
    fail("a thread arrives twice at the barrier of its cluster ({}:{})", name_of(place), place.line);
  }
  current_->cluster_phase = group.cluster_phase + 1;
  ++group.cluster_arrived;
  release_cluster(group);
}

void Scheduler::cluster_wait(Place place) {
  Group& group = *current_->owner->group;
  if (group.cluster_phase >= current_->cluster_phase) return give_way(2);
  group.cluster_waiting.push_back(current_);
  wait(Wait::kCluster, 0, place);
}

Block& Scheduler::block_of_cluster(uint32_t rank) {
  const Group& group = *current_->owner->group;
  if (rank >= group.blocks.size()) fail("a cluster of {} has no block {}", group.blocks.size(), rank);
  Block& block = *group.blocks[rank];
  if (block.live_threads == 0) fail("shared memory of block {} of the cluster is used after its end", rank);
  return block;
}

uint8_t* Scheduler::cluster_shared(uint32_t rank) {
  return block_of_cluster(rank).shared;
}

}  // namespace heddle::emulator
