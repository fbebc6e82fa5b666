// The functions that kernels call.
#include <algorithm>
#include <cstring>

#include "emulator/collectives.h"
#include "emulator/matrix.h"
#include "emulator/wgmma.h"

namespace heddle::emulator {
namespace {

Box make_box(const void* map, bool store, uint32_t shared_address, const int32_t* coordinates, uint32_t rank,
             Place place) {
  Scheduler& s = scheduler();
  Box box{};
  std::memcpy(&box.map, map, sizeof box.map);
  const bool windows = box.map.magic == TensorMap::kWindows;
  if (!windows && box.map.magic != TensorMap::kMagic) s.fail("a tensor map that the driver did not encode");
  if (windows && store) s.fail("a store of windows");
  if (box.map.rank + (windows ? box.map.rank - 2 : 0) != static_cast<int>(rank))
    s.fail("a tensor map of rank {} is used with {} coordinates", box.map.rank, rank);
  box.store = store;
  std::copy_n(coordinates, rank, box.at);
  box.shared_address = shared_address;
  box.owner = &s.current();
  box.place = place;
  return box;
}

}  // namespace

const emulated::Api& api() {
  static const emulated::Api one = {
      .fail = [](const char* text) { scheduler().fail("{}", text); },
      .misaligned =
          [](uint64_t address, uint32_t alignment, Place place) {
            scheduler().fail("a misaligned access to memory: {:#x} is no multiple of {} bytes ({}:{})", address,
                             alignment, name_of(place), place.line);
          },
      .poll = [](Place place) { scheduler().poll(place); },
      .saw = [](const void* address, uint64_t bits, bool changed) { scheduler().progress.saw(address, bits, changed); },
      .access =
          [](const void* address, uint32_t bytes, Access kind, Place place) {
            scheduler().access(scheduler().current().clock, {reinterpret_cast<uint64_t>(address), bytes, kind, place});
          },
      .fence = [] { scheduler().clocks.fence(scheduler().current().clock); },
      .barrier = [](uint32_t id, uint32_t threads, BarrierMode mode, bool predicate,
                    Place place) { return barrier(scheduler(), id, threads, mode, predicate, place); },
      .collect = [](Collective kind, uint64_t mask, uint64_t value,
                    Place place) { return collect(scheduler(), kind, mask, value, place); },
      .cluster_arrive = [](Place place) { cluster_arrive(scheduler(), place); },
      .cluster_wait = [](Place place) { cluster_wait(scheduler(), place); },
      .cluster_shared = [](uint32_t rank) { return block_of_cluster(scheduler(), rank).shared; },
      .mma = [](const emulated::MmaCall& call, Place place) { mma(scheduler(), call, place); },
      .load_matrices = [](uint32_t* words, uint32_t count, bool transposed, uint32_t address,
                          Place place) { load_matrices(scheduler(), words, count, transposed, address, place); },
      .store_matrices = [](const uint32_t* words, uint32_t count, bool transposed, uint32_t address,
                           Place place) { store_matrices(scheduler(), words, count, transposed, address, place); },
      .copy_async = [](uint32_t to, const void* from, uint32_t bytes, uint32_t valid,
                       Place place) { copy_async(scheduler(), to, from, bytes, valid, place); },
      .copy_commit = [] { copy_commit(scheduler()); },
      .copy_wait = [](uint32_t pending) { copy_wait(scheduler(), pending); },
      .barrier_init = [](uint32_t address, uint32_t arrivals,
                         Place place) { scheduler().transfers.barriers.init(address, arrivals, place); },
      .barrier_arrive = [](uint32_t address, uint32_t block, uint32_t expect_bytes,
                           Place place) { scheduler().transfers.barriers.arrive(address, block, expect_bytes, place); },
      .barrier_wait = [](uint32_t address, uint32_t parity,
                         Place place) { scheduler().transfers.barriers.wait(address, parity, place); },
      .store_async = [](uint32_t to, uint32_t block, const void* from, uint32_t bytes, uint32_t barrier,
                        Place place) { scheduler().transfers.store_async(to, block, from, bytes, barrier, place); },
      .fence_barrier_init = [] { scheduler().current().owner->unfenced_init = false; },
      .fence_async = [] { ++scheduler().current().owner->async_fences; },
      .copy_shared = [](uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t block,
                        Place place) { scheduler().transfers.copy_shared(to, from, bytes, barrier, block, place); },
      .load_box =
          [](const void* map, uint32_t to, uint32_t barrier, const int32_t* coordinates, uint32_t rank, uint32_t blocks,
             Place place) {
            Box box = make_box(map, false, to, coordinates, rank, place);
            box.barrier = barrier;
            box.blocks = blocks == 0 ? 1u << box.owner->owner->cluster_rank : blocks;
            scheduler().transfers.add_box(box);
          },
      .store_box =
          [](const void* map, uint32_t from, const int32_t* coordinates, uint32_t rank, Place place) {
            Box box = make_box(map, true, from, coordinates, rank, place);
            box.blocks = 1u << box.owner->owner->cluster_rank;
            box.group = box.owner->store_group;
            scheduler().transfers.add_box(box);
          },
      .store_commit = [] { scheduler().transfers.store_commit(); },
      .store_wait = [](uint32_t pending, Place place) { scheduler().transfers.store_wait(pending, place); },
      .wgmma = [](const emulated::WgmmaCall& call, Place place) { wgmma(scheduler(), call, place); },
      .wgmma_fence =
          [](Place place) {
            whole_warp(scheduler(), Collective::kWgmmaFence, 0, place,
                       [](Scheduler& s, const uint64_t*, Place) { s.current().warp->fenced = true; });
          },
      .wgmma_commit =
          [](Place place) {
            whole_warp(scheduler(), Collective::kWgmmaCommit, 0, place, [](Scheduler& s, const uint64_t*, Place) {
              Warp& warp = *s.current().warp;
              warp.commits.push_back(warp.products);
            });
          },
      .wgmma_wait = [](uint32_t pending, Place place) { wgmma_wait(scheduler(), pending, place); },
      .set_registers = [](uint32_t count, Place place) { set_registers(scheduler(), count, place); },
      .grid_dependency_wait = [](Place place) { scheduler().grid_dependency_wait(place); },
  };
  return one;
}

}  // namespace heddle::emulator
