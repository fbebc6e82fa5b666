#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace heddle::profile {

// One record of a profile: an operation on a GPU, or a CUDA request of the host.
struct GpuOperation {
  enum class Kind : uint8_t { kKernel, kCopy, kMemset, kSync, kAllocate, kFree, kOverhead };
  enum class Direction : uint8_t { kUnknown, kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer, kHostToHost };
  enum class Sync : uint8_t { kUnknown, kEvent, kStreamWait, kStream, kContext };

  Kind kind = Kind::kKernel;
  Direction direction = Direction::kUnknown;  // for a copy
  Sync sync = Sync::kUnknown;                 // for a synchronisation
  bool pageable = false;                      // True for a copy from or to host memory that is not page-locked.

  // The start and end in nanoseconds since 1970. 0: unknown. An allocation or a free has only a start time.
  uint64_t start = 0, end = 0;
  uint64_t launched = 0;  // the time of the host's request; 0: unknown
  // The value of Options::context on the requesting thread during the request. 0: none.
  uint64_t context = 0;
  // For an operation in a CUDA graph: the node in the launched graph, and the value of Options::context on the thread
  // that added the operation to the graph. 0: not in a graph, or unknown.
  uint64_t graph_node = 0, captured_context = 0;
  uint64_t bytes = 0;                  // for a copy, a memset, an allocation or a free
  const std::string* name = nullptr;   // the mangled name of a kernel; valid until the process ends
  uint32_t device = 0, stream = 0;     // CUPTI's numbers of the device and the stream
  uint32_t correlation = 0;            // CUPTI's number of the request; all operations of one request share it
  std::array<uint32_t, 3> grid = {};   // for a kernel, like all members below
  std::array<uint16_t, 3> block = {};  // threads
  uint16_t registers = 0;              // per thread
  uint32_t shared_bytes = 0;           // per block, static and dynamic
  uint32_t local_bytes = 0;            // per thread

  bool has_times() const { return start != 0 && end >= start; }
  uint64_t duration() const { return has_times() ? end - start : 0; }
};

}  // namespace heddle::profile
