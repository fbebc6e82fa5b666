#include "emulator/transfers.h"

#include <algorithm>
#include <cstring>

#include "emulator/scheduler.h"
#include "tile/arch/emulated/tile/arch/sm80/cvt.h"

namespace heddle::emulator {

namespace {

// The windows lie in a rectangle of each image, line by line.
void next_window(const TensorMap& map, int64_t (&at)[4]) {
  for (int i = 1; i < 3; ++i) {
    at[i] += map.element_strides[i];
    if (at[i] < static_cast<int64_t>(map.extents[i]) + map.last[i - 1]) return;
    at[i] = map.first[i - 1];
  }
  ++at[3];
}

// The clock of a copy that a thread asks for. What the thread does from then on is not part of what the copy releases.
ThreadClock request(Thread& thread) {
  ThreadClock clock = thread.clock;
  ++thread.clock.now;
  return clock;
}

void run_copy(const Copy& copy) {
  if (copy.valid > 0) std::memcpy(copy.to, copy.from, copy.valid);
  std::memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
}

}  // namespace

void Transfers::reset(const Memory& memory) {
  memory_ = &memory;
  boxes_.clear();
  remote_.clear();
  barriers.clear();
}

void Transfers::store_async(uint32_t to, uint32_t rank, const void* from, uint32_t bytes, uint32_t barrier,
                            Place place) {
  Block& block = block_of_cluster(s_, rank);
  RemoteStore store{
      &block, shared_at(s_, block, to, bytes, bytes, "st.async", place), {}, bytes, barrier, request(s_.current()),
      place};
  std::memcpy(store.value.data(), from, bytes);
  remote_.push_back(store);
  s_.give_way(8);
}

void Transfers::complete_remote() {
  const uint32_t which = s_.random().below(static_cast<uint32_t>(remote_.size()));
  const RemoteStore store = remote_[which];
  remote_[which] = remote_.back();
  remote_.pop_back();
  s_.progress.made();
  std::memcpy(store.to, store.value.data(), store.bytes);
  barriers.complete(*store.block, store.barrier, store.bytes, store.clock, store.place);
}

// At once: the latest that a barrier could report is when somebody waits for it.
void Transfers::copy_shared(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier, uint32_t rank, Place place) {
  Block& own = *s_.current().owner;
  Block& other = block_of_cluster(s_, rank);
  if (bytes % 16 != 0) s_.fail("a copy between blocks of {} bytes ({}:{})", bytes, name_of(place), place.line);
  if (own.async_fences == 0) {
    s_.fail("a copy between blocks without fence_async_shared() ({}:{})", name_of(place), place.line);
  }
  const uint8_t* source = shared_at(s_, own, from, bytes, 16, "a copy between blocks", place);
  std::memcpy(shared_at(s_, other, to, bytes, 16, "a copy between blocks", place), source, bytes);
  barriers.complete(other, barrier, bytes, request(s_.current()), place);
  s_.give_way(8);
}

void Transfers::add_box(Box box) {
  Block& block = *box.owner->owner;
  uint32_t bytes = box.map.element_bytes;
  for (int i = 0; i < box.map.rank; ++i) bytes *= box.map.box[i];
  const uint32_t row = uint32_t{box.map.box[0]} * box.map.element_bytes;
  if (box.map.swizzle != Swizzle::kNone && row != 16u << static_cast<int>(box.map.swizzle)) {
    s_.fail("rows of a box of {} bytes are narrower than its swizzle, which is not emulated ({}:{})", row,
            name_of(box.place), box.place.line);
  }
  shared_at(s_, block, box.shared_address, bytes, 128, box.store ? "a store of a box" : "a load of a box", box.place);
  for (int i = 0; i < box.map.rank; ++i) {
    if (box.map.magic != TensorMap::kWindows && box.map.element_strides[i] != 1)
      s_.fail("boxes with element strides are not emulated");
  }
  if (!box.store && (box.blocks >> block.cluster_blocks) != 0) {
    s_.fail("a load of a box for blocks {:#x} of a cluster of {} ({}:{})", box.blocks, block.cluster_blocks,
            name_of(box.place), box.place.line);
  }
  // Ordinary writes reach TMA only through a fence. A buffer is written anew after a wait for its stores.
  if (box.store && block.async_fences == box.owner->async_fences) {
    s_.fail("a store of a box without fence_async_shared() since the last wait for stores ({}:{})", name_of(box.place),
            box.place.line);
  }
  box.late = s_.random().one_in(2);
  box.clock = request(*box.owner);
  boxes_.push_back(box);
  s_.give_way(8);
}

void Transfers::complete_box(bool only_early) {
  const uint32_t which = s_.random().below(static_cast<uint32_t>(boxes_.size()));
  if (only_early && boxes_[which].late) return;
  Box box = boxes_[which];
  boxes_[which] = boxes_.back();
  boxes_.pop_back();
  s_.progress.made();
  const Group& group = *box.owner->owner->group;
  uint32_t bytes = box.map.element_bytes;
  for (int i = 0; i < box.map.rank; ++i) bytes *= box.map.box[i];
  for (uint32_t rank = 0; rank < group.blocks.size(); ++rank) {
    if ((box.blocks >> rank & 1) == 0) continue;
    copy_box(box, *group.blocks[rank]);
    if (!box.store) barriers.complete(*group.blocks[rank], box.barrier, bytes, box.clock, box.place);
  }
  if (box.store && box.owner->wait == Wait::kStores) s_.wake(box.owner);
}

// Between the box in shared memory, rows one behind another and swizzled by their addresses, and what of it lies inside
// of the tensor.
void Transfers::copy_box(Box& box, Block& block) {
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
    if (box.store && bytes > 0) {  // as hardware does: the last piece of 16 bytes of a row is written as a whole
      const size_t piece = (16 - (reinterpret_cast<uintptr_t>(global) + bytes) % 16) % 16;
      bytes = std::min<size_t>(bytes + piece, row_bytes - first * map.element_bytes);
    }
    if (bytes > 0 && !memory_->contains(reinterpret_cast<uint64_t>(global), bytes)) {
      s_.fail("a box reaches outside of the memory behind its tensor map ({}:{})", name_of(box.place), box.place.line);
    }
    const Access kind = box.store ? Access::kWrite : Access::kRead;
    s_.access(box.clock,
              {reinterpret_cast<uint64_t>(global), static_cast<uint32_t>(bytes), kind, box.place, box.store});
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

void Transfers::store_commit() {
  ++s_.current().store_group;
}

void Transfers::store_wait(uint32_t pending, Place place) {
  const auto left = [&] {
    return std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
      return box.store && box.owner == &s_.current() && box.group + pending < s_.current().store_group;
    });
  };
  while (left()) s_.wait(Wait::kStores, pending, place);
  s_.current().async_fences = s_.current().owner->async_fences;
}

void Transfers::check_end(const Block& block) {
  for (const Box& box : boxes_) {
    const Block& owner = *box.owner->owner;
    const bool touched =
        &owner == &block || (owner.group == block.group && (box.blocks >> block.cluster_rank & 1) != 0);
    if (touched) {
      s_.fail("a block ended while a copy of a box, asked for at {}:{}, was under way", name_of(box.place),
              box.place.line);
    }
  }
  for (const RemoteStore& store : remote_) {
    if (store.block != &block) continue;
    s_.fail("a block ends while a store into it is on its way ({}:{})", name_of(store.place), store.place.line);
  }
}

void copy_async(Scheduler& s, uint32_t to, const void* from, uint32_t bytes, uint32_t valid, Place place) {
  Block& block = *s.current().owner;
  if (valid > bytes) s.fail("cp.async: {} of {} bytes ({}:{})", valid, bytes, name_of(place), place.line);
  if (valid > 0 && reinterpret_cast<uintptr_t>(from) % bytes != 0) {
    s.fail("cp.async: the source is not aligned to {} bytes ({}:{})", bytes, name_of(place), place.line);
  }
  s.access(s.current().clock, {reinterpret_cast<uint64_t>(from), valid, Access::kRead, place});
  const Copy copy = {shared_at(s, block, to, bytes, bytes, "cp.async", place), from, bytes, valid,
                     s.current().copy_group};
  if (s.random().one_in(2)) return run_copy(copy);
  if (block.copies.size() < block.threads.size()) block.copies.resize(block.threads.size());
  block.copies[s.current().linear].push_back(copy);
}

void copy_commit(Scheduler& s) {
  ++s.current().copy_group;
}

void copy_wait(Scheduler& s, uint32_t pending) {
  Block& block = *s.current().owner;
  if (s.current().linear >= block.copies.size()) return;
  std::erase_if(block.copies[s.current().linear], [&](const Copy& copy) {
    if (copy.group + pending >= s.current().copy_group) return false;
    run_copy(copy);
    return true;
  });
}

}  // namespace heddle::emulator
