#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profile/gpu/operation.h"

namespace heddle::profile {

// How complete and how costly a collection was.
struct GpuStats {
  uint64_t operations = 0;     // that take() has returned or will return
  uint64_t dropped = 0;        // records that CUPTI had no room for
  uint64_t lost = 0;           // operations beyond Options::most_bytes
  uint64_t unknown_times = 0;  // operations without a start or an end, which count but have no duration
  uint64_t unknown_kinds = 0;  // records that this version does not know
  uint64_t malformed = 0;      // buffers abandoned at a malformed record
  uint64_t lost_contexts = 0;  // calls whose context was dropped for Options::most_bytes
  uint64_t calls = 0;          // CUDA calls that were observed
  uint64_t call_ns = 0;        // time spent on them in their threads, estimated from every 61st
  uint64_t overhead_ns = 0;    // CUPTI's own overhead, as it reports it
  uint32_t version = 0;        // of CUPTI, as cuptiGetVersion() has it
  std::string library;         // its path
};

// The same for a profile's header: what was recorded, what it cost, and what is missing, if anything.
std::vector<std::pair<std::string, std::string>> facts_of(const GpuStats& stats);

// Collects GPU activity of this process through CUPTI. One at a time: CUPTI serves one client per process. In a forked
// child, which has neither its threads nor the GPU, it is empty.
class GpuCollector {
 public:
  struct Options {
    // The caller's context, which operations carry; 0: none. Called in the launching thread, within its CUDA call, also
    // while a graph's nodes are added. The collector holds no lock then. Must not call CUDA or throw.
    std::function<uint64_t()> context = {};
    size_t most_bytes = size_t{160} << 20;  // of data kept between two calls of take()
  };

  // Call it before capturing CUDA graphs whose operations need contexts. Throws kDevice with the remedy if CUPTI cannot
  // be loaded, is used by another tool, or lacks the permission.
  static std::unique_ptr<GpuCollector> start(Options options);
  ~GpuCollector();  // as stop()
  GpuCollector(const GpuCollector&) = delete;
  GpuCollector& operator=(const GpuCollector&) = delete;

  // Operations that arrived since the last call, in order of start. The last 300 ms or so are held back, since
  // operations that began earlier may still arrive. After flush(), all operations that have ended are there. Both may
  // be called from any thread, but not from Options::context.
  std::vector<GpuOperation> take();
  void flush();
  // Ends the collection; take() returns the rest. The device should be idle: operations that still run are not
  // recorded. Waits until calls of Options::context have returned, so the caller must not hold what they wait for.
  GpuStats stop();
  GpuStats stats() const;

  class Session;

 private:
  explicit GpuCollector(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::shared_ptr<Session> session_;
};

}  // namespace heddle::profile
