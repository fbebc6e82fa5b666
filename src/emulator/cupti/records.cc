#include "emulator/cupti/records.h"

#include <cstring>

namespace heddle::emulator {
namespace {

constexpr uint32_t kCopy = 1, kMemset = 2, kKernel = 10, kSync = 38, kMemory = 49, kUnknown = 250;

struct Size {
  uint32_t kind;
  size_t bytes, old_bytes;
};
constexpr Size kSizes[] = {{kCopy, 96, 88}, {kMemset, 88, 80},   {kKernel, 216, 208},
                           {kSync, 56, 40}, {kMemory, 128, 120}, {kUnknown, 40, 40}};

size_t bytes_of(uint32_t kind, bool old) {
  for (const Size& size : kSizes) {
    if (size.kind == kind) return old ? size.old_bytes : size.bytes;
  }
  return 0;
}

// Fields by their offsets, so that this says independently of a reader's structs where they are.
class Record {
 public:
  Record(uint32_t kind, bool old) : bytes_(bytes_of(kind, old)) { put(0, kind); }
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  std::vector<uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

uint8_t direction_of(const Work& work) {
  constexpr uint8_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8, kHostToHost = 9;
  const bool from = work.from == Work::Place::kDevice, to = work.to == Work::Place::kDevice;
  if (from && to) return kDeviceToDevice;
  if (to) return kHostToDevice;
  return from ? kDeviceToHost : kHostToHost;
}

void put_kernel(const Work& work, const Times& times, const char* name, Record& r) {
  constexpr uint16_t kRegisters = 32;
  r.put(6, kRegisters);
  r.put(16, times.start);
  r.put(24, times.end);
  r.put(48, work.stream);
  for (size_t i = 0; i < 3; ++i) {
    r.put(52 + 4 * i, work.grid[i]);
    r.put(64 + 4 * i, work.block[i]);
    r.put(176 + 4 * i, work.cluster[i]);
  }
  r.put(80, work.shared_bytes);
  r.put(92, work.correlation);
  r.put(104, name);
  r.put(144, work.graph_node);
  r.put(156, static_cast<uint32_t>(work.graph_node >> 32));
}

void put_transfer(const Work& work, const Times& times, Record& r) {
  if (work.kind == Work::Kind::kCopy) {
    r.put(4, direction_of(work));
    r.put(5, static_cast<uint8_t>(work.from));
    r.put(6, static_cast<uint8_t>(work.to));
  }
  r.put(8, work.bytes);
  r.put(16, times.start);
  r.put(24, times.end);
  r.put(40, work.stream);
  r.put(44, work.correlation);
  r.put(64, work.graph_node);
}

}  // namespace

uint32_t activity_of(Work::Kind kind) {
  switch (kind) {
    case Work::Kind::kKernel:
      return kKernel;
    case Work::Kind::kCopy:
      return kCopy;
    case Work::Kind::kMemset:
      return kMemset;
    case Work::Kind::kSync:
      return kSync;
    default:
      return kMemory;
  }
}

std::vector<uint8_t> record_of(const Work& work, const Times& times, const char* name, bool old) {
  Record r(activity_of(work.kind), old);
  if (work.kind == Work::Kind::kKernel) {
    put_kernel(work, times, name, r);
  } else if (work.kind == Work::Kind::kCopy || work.kind == Work::Kind::kMemset) {
    put_transfer(work, times, r);
  } else if (work.kind == Work::Kind::kSync) {
    r.put(4, work.sync);
    r.put(8, times.start);
    r.put(16, times.end);
    r.put(24, work.correlation);
    r.put(32, work.stream);
  } else {
    const uint32_t operation = work.kind == Work::Kind::kFree ? 2 : 1;
    r.put(4, operation);
    r.put(8, uint32_t{3});
    r.put(12, work.correlation);
    r.put(24, work.bytes);
    r.put(32, times.start);
    r.put(60, work.stream);
  }
  return r.bytes();
}

std::vector<uint8_t> unknown_record() {
  return Record(kUnknown, false).bytes();
}

size_t record_bytes(const uint8_t* bytes, bool old) {
  uint32_t kind = 0;
  std::memcpy(&kind, bytes, sizeof kind);
  return bytes_of(kind, old);
}

}  // namespace heddle::emulator
