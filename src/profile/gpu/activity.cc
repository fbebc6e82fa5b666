#include "profile/gpu/activity.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>

#include "profile/gpu/cupti_types.h"

namespace heddle::profile {
namespace {

using Kind = GpuOperation::Kind;
using Direction = GpuOperation::Direction;
using GpuSync = GpuOperation::Sync;

constexpr size_t kLongestName = size_t{64} << 10;

// Copied, since nothing says that a record is aligned.
template <typename Record>
bool read(std::span<const uint8_t> bytes, Record& record) {
  if (bytes.size() < sizeof(Record)) return false;
  std::memcpy(&record, bytes.data(), sizeof(Record));
  return true;
}

template <typename Record>
void set_common(const Record& r, GpuOperation& operation) {
  operation.start = r.start;
  operation.end = r.end;
  operation.correlation = r.correlation;
  operation.stream = r.stream;
  if constexpr (requires { r.graph_node; }) {
    operation.device = r.device;
    operation.graph_node = r.graph_node;
  }
  if constexpr (requires { r.bytes; }) operation.bytes = r.bytes;
}

// Arrays are memory of the device.
Direction direction_of(uint8_t direction) {
  using enum Direction;
  constexpr Direction kDirections[] = {
      kUnknown,        kHostToDevice,   kDeviceToHost,   kHostToDevice, kDeviceToHost, kDeviceToDevice,
      kDeviceToDevice, kDeviceToDevice, kDeviceToDevice, kHostToHost,   kPeer};
  return direction < std::size(kDirections) ? kDirections[direction] : kUnknown;
}

uint32_t positive(int64_t value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
}

bool kernel(std::span<const uint8_t> bytes, GpuOperation& operation) {
  cupti::KernelRecord r;
  if (!read(bytes, r)) return false;
  set_common(r, operation);
  operation.kind = Kind::kKernel;
  operation.registers = r.registers;
  operation.local_bytes = r.local_bytes;
  operation.shared_bytes = positive(int64_t{r.static_shared} + r.dynamic_shared);
  for (size_t i = 0; i < 3; ++i) {
    operation.grid[i] = positive(r.grid[i]);
    operation.block[i] = static_cast<uint16_t>(std::clamp(r.block[i], 0, UINT16_MAX));
  }
  if (r.name != nullptr) operation.name = interned({r.name, ::strnlen(r.name, kLongestName)});
  return true;
}

template <typename Record>
bool copy(std::span<const uint8_t> bytes, GpuOperation& operation) {
  constexpr uint8_t kPageable = 1;
  Record r;
  if (!read(bytes, r)) return false;
  set_common(r, operation);
  operation.kind = Kind::kCopy;
  operation.direction = direction_of(r.direction);
  operation.pageable = r.from == kPageable || r.to == kPageable;
  return true;
}

bool memset(std::span<const uint8_t> bytes, GpuOperation& operation) {
  cupti::MemsetRecord r;
  if (!read(bytes, r)) return false;
  set_common(r, operation);
  operation.kind = Kind::kMemset;
  return true;
}

bool synchronisation(std::span<const uint8_t> bytes, GpuOperation& operation) {
  cupti::SynchronisationRecord r;
  if (!read(bytes, r)) return false;
  set_common(r, operation);
  operation.kind = Kind::kSync;
  if (r.type >= 1 && r.type <= 4) operation.sync = static_cast<GpuSync>(r.type);
  return true;
}

bool memory(std::span<const uint8_t> bytes, GpuOperation& operation) {
  constexpr uint32_t kRelease = 2;
  cupti::MemoryRecord r;
  if (!read(bytes, r)) return false;
  operation.kind = r.operation == kRelease ? Kind::kFree : Kind::kAllocate;
  operation.start = operation.end = r.time;
  operation.bytes = r.bytes;
  operation.device = r.device;
  operation.stream = r.stream;
  operation.correlation = r.correlation;
  return true;
}

// Of what CUPTI does itself: flushes, instrumentation, its resources, requests for buffers. The driver's compiler,
// modules loaded late and full queues would be there without it, too.
bool overhead(std::span<const uint8_t> bytes, GpuOperation& operation, bool& own) {
  cupti::OverheadRecord r;
  if (!read(bytes, r)) return false;
  operation.kind = Kind::kOverhead;
  operation.start = r.start;
  operation.end = r.end;
  const uint32_t what = r.what >> 16;
  own = (what >= 1 && what <= 3) || what == 7;
  return true;
}

enum class Parsed { kOperation, kUnknown, kCutOff };

Parsed parse_record(std::span<const uint8_t> bytes, GpuOperation& operation, bool& own_overhead) {
  const auto result = [](bool complete) { return complete ? Parsed::kOperation : Parsed::kCutOff; };
  uint32_t kind = 0;
  if (!read(bytes, kind)) return Parsed::kCutOff;
  switch (kind) {
    case cupti::kKernel:
    case cupti::kSerialKernel:
      return result(kernel(bytes, operation));
    case cupti::kCopy:
      return result(copy<cupti::CopyRecord>(bytes, operation));
    case cupti::kPeerCopy:
      return result(copy<cupti::PeerCopyRecord>(bytes, operation));
    case cupti::kMemset:
      return result(memset(bytes, operation));
    case cupti::kSynchronisation:
      return result(synchronisation(bytes, operation));
    case cupti::kMemory:
      return result(memory(bytes, operation));
    case cupti::kOverhead:
      return result(overhead(bytes, operation, own_overhead));
    default:
      return Parsed::kUnknown;
  }
}

}  // namespace

void parse_activity(std::span<const uint8_t> buffer, const NextRecord& next, std::vector<GpuOperation>& operations,
                    ActivityCounts& counts) {
  const auto address = [](const uint8_t* at) { return reinterpret_cast<uintptr_t>(at); };
  const uintptr_t begin = address(buffer.data()), end = begin + buffer.size();
  const uint8_t* previous = nullptr;
  while (const uint8_t* record = next(buffer, previous)) {
    const uintptr_t at = address(record);
    GpuOperation operation;
    bool own_overhead = false;
    Parsed parsed = Parsed::kCutOff;
    if (at >= begin && at < end && (previous == nullptr || at > address(previous))) {
      parsed = parse_record(buffer.subspan(at - begin), operation, own_overhead);
    }
    if (parsed == Parsed::kCutOff) {
      ++counts.malformed;
      return;
    }
    previous = record;
    if (parsed == Parsed::kUnknown) {
      ++counts.unknown_kinds;
      continue;
    }
    if (operation.start == 0 || operation.end < operation.start) {
      operation.start = operation.end = 0;
      ++counts.unknown_times;
    }
    if (operation.kind == Kind::kOverhead) {
      if (own_overhead) counts.overhead_ns += operation.duration();
    }
    operations.push_back(operation);
  }
}

const std::string* interned(std::string_view text) {
  static std::mutex mutex;
  static auto* texts = new std::set<std::string, std::less<>>();  // never destroyed: operations point into it
  const std::lock_guard lock(mutex);
  const auto found = texts->find(text);
  return &*(found != texts->end() ? found : texts->emplace(text).first);
}

}  // namespace heddle::profile
