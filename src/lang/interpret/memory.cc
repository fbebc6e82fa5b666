#include "lang/interpret/memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "lang/interpret/report.h"

namespace heddle::lang {
namespace {

bool is_read(Memory::Access access) {
  return access == Memory::Access::kRead || access == Memory::Access::kVolatileRead;
}

}  // namespace

Memory::Memory(const Kernel& kernel, std::vector<Allocation> allocations, bool races)
    : kernel_(kernel), allocations_(std::move(allocations)), races_(races) {
  std::sort(allocations_.begin(), allocations_.end(),
            [](const Allocation& a, const Allocation& b) { return a.address < b.address; });
}

void Memory::enter_program(std::array<int64_t, 3> program) {
  programs_.push_back(program);
  ordered_ = false;
}

std::string Memory::where(size_t lane) const {
  return program_place(kernel_, *op_, programs_.back(), static_cast<int64_t>(lane));
}

Cell Memory::read(uint64_t address, Element element) {
  uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const void*>(address), static_cast<size_t>(size_of(element)));
  return decode(element, bits);
}

void Memory::write(uint64_t address, Element element, Cell value) {
  const uint64_t bits = encode(element, value);
  const auto size = static_cast<size_t>(size_of(element));
  if (std::memcmp(reinterpret_cast<void*>(address), &bits, size) == 0) return;
  std::memcpy(reinterpret_cast<void*>(address), &bits, size);
  ++changes_;
}

Cell Memory::load(uint64_t address, Element element, size_t lane, bool is_volatile) {
  if (is_volatile) order_program();
  check(address, element, lane, is_volatile ? Access::kVolatileRead : Access::kRead);
  return read(address, element);
}

void Memory::store(uint64_t address, Element element, Cell value, size_t lane) {
  check(address, element, lane, Access::kWrite);
  write(address, element, value);
}

void Memory::check(uint64_t address, Element element, size_t lane, Access access) {
  if (!allocations_.empty()) check_bounds(address, static_cast<uint64_t>(size_of(element)), lane, access);
  if (races_) check_race(address, lane, access);
}

void Memory::check_bounds(uint64_t address, uint64_t bytes, size_t lane, Access access) {
  const auto inside = [&](const Allocation& a) {
    return address >= a.address && address - a.address < a.bytes && a.bytes - (address - a.address) >= bytes;
  };
  if (inside(allocations_[last_])) return;
  auto next = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                               [](uint64_t at, const Allocation& a) { return at < a.address; });
  if (next != allocations_.begin() && inside(*std::prev(next))) {
    last_ = static_cast<size_t>(std::prev(next) - allocations_.begin());
    return;
  }
  // Name the allocation that is nearest.
  std::string near;
  const uint64_t before = next == allocations_.begin() ? ~uint64_t{0} : address - std::prev(next)->address;
  const uint64_t behind = next == allocations_.end() ? ~uint64_t{0} : next->address - address;
  if (before != ~uint64_t{0} && (before < behind || before - std::prev(next)->bytes < behind)) {
    const Allocation& a = *std::prev(next);
    near = before >= a.bytes
               ? fmt::format("{} bytes behind the end of {} ({} bytes)", before - a.bytes, a.name, a.bytes)
               : fmt::format("across the end of {} ({} bytes)", a.name, a.bytes);
  } else {
    near = fmt::format("{} bytes before {} ({} bytes)", behind, next->name, next->bytes);
  }
  fail(ErrorCode::kValueOutOfRange, where(lane),
       fmt::format("it {} {} bytes at an address outside of every argument: {}", is_read(access) ? "reads" : "writes",
                   bytes, near),
       "Mask what lies outside");
}

void Memory::check_race(uint64_t address, size_t lane, Access access) {
  Shadow& shadow = shadow_[address];
  const auto self = static_cast<int64_t>(programs_.size()) - 1;
  const bool atomic = access == Access::kAtomic || access == Access::kVolatileRead;
  const auto meets = [&](const Touch& other) {
    return other.program >= 0 && other.program != self && !(atomic && other.atomic) && !ordered_;
  };
  if (meets(shadow.write)) race(shadow.write, "wrote", lane);
  if (!is_read(access) && meets(shadow.read)) race(shadow.read, "read", lane);
  (is_read(access) ? shadow.read : shadow.write) = {self, op_->frame, atomic};
}

void Memory::race(const Touch& other, std::string_view what, size_t lane) const {
  const auto& p = programs_[static_cast<size_t>(other.program)];
  const std::string place = kernel_.place(other.frame);
  fail(ErrorCode::kValueOutOfRange, where(lane),
       fmt::format("program ({}, {}, {}) {} the same cell{}{}: programs run in any order", p[0], p[1], p[2], what,
                   place.empty() ? "" : " at ", place),
       "Give each program cells of its own, or use atomics");
}

}  // namespace heddle::lang
