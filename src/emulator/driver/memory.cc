// Memory of the device and copies.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

void* host(uint64_t address) {
  return reinterpret_cast<void*>(address);
}

Result check_range(Driver& driver, uint64_t address, size_t bytes) {
  if (bytes == 0 || driver.memory.contains(address, bytes)) return kSuccess;
  return driver.error(kInvalidValue, fmt::format("{} bytes at {:#x} are not inside an allocation", bytes, address));
}

// A copy on a stream; `on_device` are the addresses that must lie in allocations.
Result copy(void* stream, void* to, const void* from, size_t bytes, std::vector<uint64_t> on_device) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  for (const uint64_t address : on_device) {
    if (const Result result = check_range(call.driver, address, bytes); result != kSuccess) return result;
  }
  auto* s = static_cast<Stream*>(stream);
  const bool capturing = s != nullptr && s->capture != nullptr;
  const auto on_host = [&](const void* pointer) {
    return !call.driver.memory.contains(reinterpret_cast<uint64_t>(pointer), bytes) && !call.driver.is_pinned(pointer);
  };
  std::shared_ptr<std::vector<uint8_t>> staged;
  if (bytes > 0 && s != nullptr && !capturing && on_host(from)) {  // pageable memory is read before the call returns
    const auto* start = static_cast<const uint8_t*>(from);
    staged = std::make_shared<std::vector<uint8_t>>(start, start + bytes);
  }
  const auto place_of = [&](const void* pointer) {
    if (call.driver.memory.contains(reinterpret_cast<uint64_t>(pointer), bytes)) return Work::Place::kDevice;
    return call.driver.is_pinned(pointer) ? Work::Place::kPinned : Work::Place::kPageable;
  };
  Work work;
  work.kind = Work::Kind::kCopy;
  work.bytes = bytes;
  work.from = place_of(from);
  work.to = place_of(to);
  const Result result = call.driver.submit(
      stream,
      [=] {
        if (bytes > 0) std::memmove(to, staged == nullptr ? from : staged->data(), bytes);
        return kSuccess;
      },
      work);
  if (result != kSuccess || s == nullptr || capturing || !on_host(to)) return result;
  return call.driver.wait(s);  // pageable memory is written before the call returns
}

template <typename T>
Result fill(void* stream, uint64_t to, T value, size_t count) {
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  if (to % sizeof(T) != 0) return call.driver.error(kInvalidValue, "the address is not aligned");
  if (const Result result = check_range(call.driver, to, count * sizeof(T)); result != kSuccess) return result;
  Work work;
  work.kind = Work::Kind::kMemset;
  work.bytes = count * sizeof(T);
  return call.driver.submit(
      stream,
      [=] {
        std::fill_n(static_cast<T*>(host(to)), count, value);
        return kSuccess;
      },
      work);
}

}  // namespace
}  // namespace heddle::emulator

using namespace heddle::emulator;

HEDDLE_EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Call call;
  *total = Settings::now().memory_bytes;
  *free = *total - std::min<uint64_t>(*total, call.driver.memory.used());
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  const ApiCall api(243);
  const Call call;
  if (const Result result = call.ready(); result != kSuccess) return result;
  if (bytes == 0) return call.driver.error(kInvalidValue, "an allocation of 0 bytes");
  *pointer = call.driver.memory.allocate(bytes, Settings::now().memory_bytes);
  if (*pointer == 0) return call.driver.error(kOutOfMemory, fmt::format("{} bytes were asked for", bytes));
  Work work;
  work.kind = Work::Kind::kAllocate;
  work.bytes = bytes;
  call.driver.tell(work);
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemFree_v2(uint64_t pointer) {
  const ApiCall api(245);
  const Call call;
  if (pointer == 0) return kSuccess;
  call.driver.drain_all();
  std::string what;
  Work work;
  work.kind = Work::Kind::kFree;
  work.bytes = call.driver.memory.used();
  if (!call.driver.memory.release(pointer, &what)) return call.driver.error(kInvalidValue, what);
  if (!what.empty()) return call.driver.error(kLaunchFailed, what);
  work.bytes -= call.driver.memory.used();
  races().end_all();
  races().forget(pointer, work.bytes);
  call.driver.tell(work);
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemAllocAsync(uint64_t* pointer, size_t bytes, void*) {
  const ApiCall api(598);
  return cuMemAlloc_v2(pointer, bytes);
}
HEDDLE_EXPORT Result cuMemFreeAsync(uint64_t pointer, void*) {
  const ApiCall api(600);
  return cuMemFree_v2(pointer);
}
HEDDLE_EXPORT Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (bytes == 0) return kInvalidValue;
  const Call call;
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr) return kOutOfMemory;
  call.driver.pinned[reinterpret_cast<uint64_t>(*pointer)] = bytes;
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}
HEDDLE_EXPORT Result cuMemFreeHost(void* pointer) {
  const Call call;
  call.driver.drain_all();
  call.driver.pinned.erase(reinterpret_cast<uint64_t>(pointer));
  std::free(pointer);
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  const Call call;
  call.driver.pinned[reinterpret_cast<uint64_t>(pointer)] = bytes;
  return kSuccess;
}
HEDDLE_EXPORT Result cuMemHostUnregister(void* pointer) {
  const Call call;
  call.driver.drain_all();
  call.driver.pinned.erase(reinterpret_cast<uint64_t>(pointer));
  return kSuccess;
}

HEDDLE_EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  const ApiCall api(277);
  return copy(stream, host(to), from, bytes, {to});
}
HEDDLE_EXPORT Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const ApiCall api(279);
  return copy(stream, to, host(from), bytes, {from});
}
HEDDLE_EXPORT Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const ApiCall api(281);
  return copy(stream, host(to), host(from), bytes, {to, from});
}
HEDDLE_EXPORT Result cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const ApiCall api(306);
  return copy(stream, host(to), host(from), bytes, {});
}
HEDDLE_EXPORT Result cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  const ApiCall api(276);
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
HEDDLE_EXPORT Result cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  const ApiCall api(278);
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
HEDDLE_EXPORT Result cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  const ApiCall api(280);
  return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
}
HEDDLE_EXPORT Result cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  const ApiCall api(305);
  return cuMemcpyAsync(to, from, bytes, nullptr);
}
HEDDLE_EXPORT Result cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream) {
  const ApiCall api(220);
  return fill<uint32_t>(stream, to, value, count);
}
HEDDLE_EXPORT Result cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void* stream) {
  const ApiCall api(218);
  return fill<uint16_t>(stream, to, value, count);
}
HEDDLE_EXPORT Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void* stream) {
  const ApiCall api(216);
  return fill<uint8_t>(stream, to, value, count);
}
HEDDLE_EXPORT Result cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
  const ApiCall api(251);
  return fill<uint32_t>(nullptr, to, value, count);
}
HEDDLE_EXPORT Result cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
  const ApiCall api(249);
  return fill<uint8_t>(nullptr, to, value, count);
}
