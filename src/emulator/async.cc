// What happens while threads go on: copies of cp.async, barriers that count bytes, TMA. Each operation
// happens at some time between when it is asked for and when somebody waits for it, so that a missing wait shows.
#include <algorithm>
#include <cstring>

#include "emulator/scheduler.h"
#include "tile/arch/emulated/tile/arch/sm80/cvt.h"

namespace heddle::emulator {
namespace {

// An mbarrier, in the eight bytes of shared memory that it has. Poisoned memory is none: `none` is 1 there.
struct TransactionBarrier {
  uint64_t pending : 20;
  uint64_t expected : 20;
  int64_t bytes : 22;
  uint64_t phase : 1;
  uint64_t none : 1;
};
static_assert(sizeof(TransactionBarrier) == 8);
constexpr uint32_t kMostArrivals = (1 << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;

const char* name_of(Place place) {
  return place.file == nullptr ? "?" : place.file;
}

TransactionBarrier load_barrier(const uint8_t* at) {
  TransactionBarrier barrier;
  std::memcpy(&barrier, at, sizeof barrier);
  return barrier;
}

// The windows lie in a rectangle of each image, line by line.
void next_window(const TensorMap& map, int64_t (&at)[4]) {
  for (int i = 1; i < 3; ++i) {
    at[i] += map.element_strides[i];
    if (at[i] < static_cast<int64_t>(map.extents[i]) + map.last[i - 1]) return;
    at[i] = map.first[i - 1];
  }
  ++at[3];
}

void run_copy(const Copy& copy) {
  if (copy.valid > 0) std::memcpy(copy.to, copy.from, copy.valid);
  std::memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
}

}  // namespace

uint8_t* Scheduler::shared_at(Block& block, uint32_t address, uint32_t bytes, uint32_t alignment, const char* what,
                              Place place) {
  const uint32_t offset = address - block.shared_base;
  if (address % alignment != 0) {
    fail("{}: shared address {:#x} is not aligned to {} bytes ({}:{})", what, address, alignment, name_of(place),
         place.line);
  }
  if (address < block.shared_base || offset > block.shared_bytes || bytes > block.shared_bytes - offset) {
    fail("{}: {} bytes at shared address {:#x} are outside of the block's {} ({}:{})", what, bytes, address,
         block.shared_bytes, name_of(place), place.line);
  }
  return block.shared + offset;
}

// ---- cp.async

void Scheduler::copy_async(uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place) {
  Block& block = *current_->owner;
  if (valid > bytes) fail("cp.async: {} of {} bytes ({}:{})", valid, bytes, name_of(place), place.line);
  if (valid > 0 && reinterpret_cast<uintptr_t>(from) % bytes != 0) {
    fail("cp.async: the source is not aligned to {} bytes ({}:{})", bytes, name_of(place), place.line);
  }
  const Copy copy = {shared_at(block, to, bytes, bytes, "cp.async", place), from, bytes, valid, current_->copy_group};
  if (random_.one_in(2)) return run_copy(copy);
  if (block.copies.size() < block.threads.size()) block.copies.resize(block.threads.size());
  block.copies[current_->linear].push_back(copy);
}

void Scheduler::copy_commit() {
  ++current_->copy_group;
}

void Scheduler::copy_wait(uint32_t pending) {
  Block& block = *current_->owner;
  if (current_->linear >= block.copies.size()) return;
  std::erase_if(block.copies[current_->linear], [&](const Copy& copy) {
    if (copy.group + pending >= current_->copy_group) return false;
    run_copy(copy);
    return true;
  });
}

// ---- Barriers that count bytes

void Scheduler::barrier_init(uint32_t address, uint32_t arrivals, Place place) {
  uint8_t* at = shared_at(*current_->owner, address, 8, 8, "mbarrier", place);
  if (arrivals == 0 || arrivals > kMostArrivals) {
    fail("mbarrier: a count of {} ({}:{})", arrivals, name_of(place), place.line);
  }
  TransactionBarrier barrier{};
  barrier.pending = barrier.expected = arrivals;
  std::memcpy(at, &barrier, sizeof barrier);
  current_->owner->unfenced_init = true;
}

// Ends the phase where nothing is missing.
void Scheduler::settle(uint8_t* at) {
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = barrier.expected;
  std::memcpy(at, &barrier, sizeof barrier);
  const auto found = barrier_waiters_.find(at);
  if (found == barrier_waiters_.end()) return;
  for (Thread* thread : found->second) wake(thread);
  barrier_waiters_.erase(found);
}

void Scheduler::barrier_arrive(uint32_t address, uint32_t rank, uint32_t expect_bytes, Place place) {
  Block& block = rank == emulated::kOwnBlock ? *current_->owner : block_of_cluster(rank);
  uint8_t* at = shared_at(block, address, 8, 8, "mbarrier", place);
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.none != 0) {
    fail("the mbarrier at {:#x} is used before it is initialised ({}:{})", address, name_of(place), place.line);
  }
  if (barrier.pending == 0) {
    fail("more arrivals at the mbarrier at {:#x} than its count of {} ({}:{})", address,
         static_cast<uint32_t>(barrier.expected), name_of(place), place.line);
  }
  if (rank != emulated::kOwnBlock) check_init_fence(block, place);
  const int64_t bytes = barrier.bytes + int64_t{expect_bytes};
  if (bytes > kMostBytes)
    fail("the mbarrier at {:#x} waits for {} bytes ({}:{})", address, bytes, name_of(place), place.line);
  barrier.bytes = bytes;
  barrier.pending = barrier.pending - 1;
  std::memcpy(at, &barrier, sizeof barrier);
  settle(at);
}

// TMA and other blocks see an mbarrier only after a fence.
void Scheduler::check_init_fence(const Block& block, Place place) {
  if (!block.unfenced_init) return;
  fail("an mbarrier is used by TMA or another block without fence_barrier_init() after its init ({}:{})",
       name_of(place), place.line);
}

void Scheduler::complete_bytes(Block& block, uint32_t address, uint32_t bytes, Place place) {
  uint8_t* at = shared_at(block, address, 8, 8, "mbarrier", place);
  TransactionBarrier barrier = load_barrier(at);
  if (barrier.none != 0) {
    fail("a copy reports to the mbarrier at {:#x} before it is initialised ({}:{})", address, name_of(place),
         place.line);
  }
  check_init_fence(block, place);
  if (barrier.bytes - int64_t{bytes} < -kMostBytes) {
    fail("the mbarrier at {:#x} received too many bytes ({}:{})", address, name_of(place), place.line);
  }
  barrier.bytes = barrier.bytes - int64_t{bytes};
  std::memcpy(at, &barrier, sizeof barrier);
  settle(at);
}

void Scheduler::barrier_wait(uint32_t address, uint32_t parity, Place place) {
  uint8_t* at = shared_at(*current_->owner, address, 8, 8, "mbarrier", place);
  for (;;) {
    const TransactionBarrier barrier = load_barrier(at);
    if (barrier.none != 0) {
      fail("the mbarrier at {:#x} is used before it is initialised ({}:{})", address, name_of(place), place.line);
    }
    if (barrier.phase != (parity & 1)) return;
    barrier_waiters_[at].push_back(current_);
    wait(Wait::kTransactions, address, place);
  }
}

// ---- Stores into other blocks

void Scheduler::store_async(uint32_t to, uint32_t rank, const void* from, uint32_t bytes, uint32_t barrier,
                            Place place) {
  Block& block = block_of_cluster(rank);
  RemoteStore store{&block, shared_at(block, to, bytes, bytes, "st.async", place), {}, bytes, barrier, place};
  std::memcpy(store.value.data(), from, bytes);
  remote_.push_back(store);
  give_way(8);
}

void Scheduler::complete_remote() {
  const uint32_t which = random_.below(static_cast<uint32_t>(remote_.size()));
  const RemoteStore store = remote_[which];
  remote_[which] = remote_.back();
  remote_.pop_back();
  stale_polls_ = 0;
  std::memcpy(store.to, store.value.data(), store.bytes);
  complete_bytes(*store.block, store.barrier, store.bytes, store.place);
}

// A block stays until everything that others store into it is there.
void Scheduler::check_remote(const Block& block) {
  for (const RemoteStore& store : remote_) {
    if (store.block != &block) continue;
    fail("a block ends while a store into it is on its way ({}:{})", name_of(store.place), store.place.line);
  }
}

// ---- TMA

// At once: the latest that a barrier could report is when somebody waits for it.
void Scheduler::copy_shared(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t rank, Place place) {
  Block& own = *current_->owner;
  Block& other = block_of_cluster(rank);
  if (bytes % 16 != 0) fail("a copy between blocks of {} bytes ({}:{})", bytes, name_of(place), place.line);
  if (own.async_fences == 0) {
    fail("a copy between blocks without fence_async_shared() ({}:{})", name_of(place), place.line);
  }
  const uint8_t* source = shared_at(own, from, bytes, 16, "a copy between blocks", place);
  std::memcpy(shared_at(other, to, bytes, 16, "a copy between blocks", place), source, bytes);
  complete_bytes(other, barrier, bytes, place);
  give_way(8);
}

void Scheduler::add_box(Box box) {
  Block& block = *box.owner->owner;
  uint32_t bytes = box.map.element_bytes;
  for (int i = 0; i < box.map.rank; ++i) bytes *= box.map.box[i];
  const uint32_t row = uint32_t{box.map.box[0]} * box.map.element_bytes;
  if (box.map.swizzle != Swizzle::kNone && row != 16u << static_cast<int>(box.map.swizzle)) {
    fail("rows of a box of {} bytes are narrower than its swizzle, which is not emulated ({}:{})", row,
         name_of(box.place), box.place.line);
  }
  shared_at(block, box.shared_address, bytes, 128, box.store ? "a store of a box" : "a load of a box", box.place);
  for (int i = 0; i < box.map.rank; ++i) {
    if (box.map.magic != TensorMap::kWindows && box.map.element_strides[i] != 1)
      fail("boxes with element strides are not emulated");
  }
  if (!box.store && (box.blocks >> block.cluster_blocks) != 0) {
    fail("a load of a box for blocks {:#x} of a cluster of {} ({}:{})", box.blocks, block.cluster_blocks,
         name_of(box.place), box.place.line);
  }
  // Ordinary writes reach TMA only through a fence. A buffer is written anew after a wait for its stores.
  if (box.store && block.async_fences == box.owner->async_fences) {
    fail("a store of a box without fence_async_shared() since the last wait for stores ({}:{})", name_of(box.place),
         box.place.line);
  }
  box.late = random_.one_in(2);
  boxes_.push_back(box);
  give_way(8);
}

void Scheduler::complete_box(bool only_early) {
  const uint32_t which = random_.below(static_cast<uint32_t>(boxes_.size()));
  if (only_early && boxes_[which].late) return;
  const Box box = boxes_[which];
  boxes_[which] = boxes_.back();
  boxes_.pop_back();
  stale_polls_ = 0;
  const Group& group = *box.owner->owner->group;
  uint32_t bytes = box.map.element_bytes;
  for (int i = 0; i < box.map.rank; ++i) bytes *= box.map.box[i];
  for (uint32_t rank = 0; rank < group.blocks.size(); ++rank) {
    if ((box.blocks >> rank & 1) == 0) continue;
    copy_box(box, *group.blocks[rank]);
    if (!box.store) complete_bytes(*group.blocks[rank], box.barrier, bytes, box.place);
  }
  if (box.store && box.owner->wait == Wait::kStores) wake(box.owner);
}

// Between the box in shared memory, rows one behind another and swizzled by their addresses, and what of it lies inside
// of the tensor.
void Scheduler::copy_box(const Box& box, Block& block) {
  const TensorMap& map = box.map;
  const uint32_t row_bytes = uint32_t{map.box[0]} * map.element_bytes;
  const uint32_t mask = map.swizzle == Swizzle::kNone ? 0 : (1u << static_cast<int>(map.swizzle)) - 1;
  const bool round = map.type == 11 || map.type == 12;  // f32 that becomes tf32
  uint32_t rows = 1;
  for (int i = 1; i < map.rank; ++i) rows *= map.box[i];
  // Elements of a row that are inside: [first, last).
  const int64_t first = std::clamp<int64_t>(-int64_t{box.at[0]}, 0, map.box[0]);
  const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(map.extents[0]) - box.at[0], 0, map.box[0]);
  uint8_t line[2048 * 8];
  const bool windows = map.magic == TensorMap::kWindows;
  int64_t window[4] = {0, box.at[1], box.at[2], box.at[3]};  // of this row
  for (uint32_t row = 0; row < rows; ++row) {
    bool inside = first < last;
    int64_t offset = (box.at[0] + first) * map.element_bytes;
    for (uint32_t i = 1, rest = row; i < map.rank; rest /= map.box[i], ++i) {
      int64_t index = int64_t{box.at[i]} + rest % map.box[i];
      if (windows) index = window[i] + (i < 3 ? box.at[3 + i] : 0);
      inside = inside && index >= 0 && index < static_cast<int64_t>(map.extents[i]);
      offset += index * static_cast<int64_t>(map.strides[i]);
    }
    if (windows) next_window(map, window);
    uint8_t* global = reinterpret_cast<uint8_t*>(map.base) + offset;
    size_t bytes = inside ? static_cast<size_t>(last - first) * map.element_bytes : 0;
    if (box.store && bytes > 0) {  // as an H200 does: the last piece of 16 bytes of a row is written as a whole
      const size_t piece = (16 - (reinterpret_cast<uintptr_t>(global) + bytes) % 16) % 16;
      bytes = std::min<size_t>(bytes + piece, row_bytes - first * map.element_bytes);
    }
    if (bytes > 0 && !memory_->contains(reinterpret_cast<uint64_t>(global), bytes)) {
      fail("a box reaches outside of the memory behind its tensor map ({}:{})", name_of(box.place), box.place.line);
    }
    uint8_t* part = line + first * map.element_bytes;
    const uint32_t start = box.shared_address + row * row_bytes;
    const auto piece_at = [&](uint32_t piece) {
      const uint32_t address = start + piece;
      return block.shared + ((address ^ ((address >> 7 & mask) << 4)) - block.shared_base);
    };
    if (box.store) {
      for (uint32_t piece = 0; piece < row_bytes; piece += 16) std::memcpy(line + piece, piece_at(piece), 16);
      if (bytes > 0) std::memcpy(global, part, bytes);
      continue;
    }
    std::memset(line, 0, row_bytes);
    if (bytes > 0) std::memcpy(part, global, bytes);
    for (size_t i = 0; round && i + 4 <= row_bytes; i += 4) {
      float value;
      std::memcpy(&value, line + i, 4);
      const uint32_t bits = tile::cuda::float_to_tf32(value);
      std::memcpy(line + i, &bits, 4);
    }
    for (uint32_t piece = 0; piece < row_bytes; piece += 16) std::memcpy(piece_at(piece), line + piece, 16);
  }
}

void Scheduler::store_commit() {
  ++current_->store_group;
}

void Scheduler::store_wait(uint32_t pending, Place place) {
  const auto left = [&] {
    return std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
      return box.store && box.owner == current_ && box.group + pending < current_->store_group;
    });
  };
  while (left()) wait(Wait::kStores, pending, place);
  current_->async_fences = current_->owner->async_fences;
}

// A block may not end before the copies that touch its shared memory.
void Scheduler::check_copies(const Block& block) {
  for (const Box& box : boxes_) {
    const Block& owner = *box.owner->owner;
    const bool touched =
        &owner == &block || (owner.group == block.group && (box.blocks >> block.cluster_rank & 1) != 0);
    if (touched) {
      fail("a block ended while a copy of a box, asked for at {}:{}, was under way", name_of(box.place),
           box.place.line);
    }
  }
}

}  // namespace heddle::emulator
