#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace heddle::profile {

// One record: an operation of a GPU, or a request of the host.
struct GpuOperation {
  enum class Kind : uint8_t { kKernel, kCopy, kMemset, kSync, kAllocate, kFree, kOverhead };
  enum class Direction : uint8_t { kUnknown, kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer, kHostToHost };
  enum class Sync : uint8_t { kUnknown, kEvent, kStreamWait, kStream, kContext };

  Kind kind = Kind::kKernel;
  Direction direction = Direction::kUnknown;  // of a copy
  Sync sync = Sync::kUnknown;                 // of a synchronisation
  bool pageable = false;                      // a copy from or to memory of the host that is not page-locked

  // Nanoseconds since 1970. Both are 0 where they are unknown; an allocation or a free has one time, its start.
  uint64_t start = 0, end = 0;
  uint64_t launched = 0;  // when the host asked for it; 0: unknown
  // What Options::context returned on the thread that asked for it, within that call. 0: none.
  uint64_t context = 0;
  // Of an operation of a CUDA graph: the node in the launched graph, and what Options::context returned on the thread
  // that added it to the graph. 0: not of a graph, or unknown.
  uint64_t graph_node = 0, captured_context = 0;
  uint64_t bytes = 0;                  // of a copy, a memset, an allocation or a free
  const std::string* name = nullptr;   // of a kernel, as its symbol has it; lives as long as the process
  uint32_t device = 0, stream = 0;     // numbers of CUPTI
  uint32_t correlation = 0;            // the same for all operations of one call
  std::array<uint32_t, 3> grid = {};   // of a kernel, as all below
  std::array<uint16_t, 3> block = {};  // threads
  uint16_t registers = 0;              // per thread
  uint32_t shared_bytes = 0;           // per block, static and dynamic
  uint32_t local_bytes = 0;            // per thread

  bool has_times() const { return start != 0 && end >= start; }
  uint64_t duration() const { return has_times() ? end - start : 0; }
};

}  // namespace heddle::profile
