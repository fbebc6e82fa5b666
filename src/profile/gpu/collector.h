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

// How complete a collection was, and its cost.
struct GpuStats {
  uint64_t operations = 0;     // operations that take() has returned or will return
  uint64_t dropped = 0;        // records that CUPTI dropped for lack of space
  uint64_t lost = 0;           // operations discarded because of Options::most_bytes
  uint64_t unknown_times = 0;  // operations without a start or end time; they are counted but have no duration
  uint64_t unknown_kinds = 0;  // records of kinds that this version does not know
  uint64_t malformed = 0;      // buffers whose rest was skipped after a malformed record
  uint64_t lost_contexts = 0;  // calls whose context was discarded because of Options::most_bytes
  uint64_t calls = 0;          // CUDA calls that were observed
  // CPU time of observing these calls, in the calling threads; estimated from every 61st call.
  uint64_t call_ns = 0;
  uint64_t overhead_ns = 0;  // CUPTI's overhead, as reported by CUPTI
  uint32_t version = 0;      // of CUPTI, as returned by cuptiGetVersion()
  std::string library;       // path of the CUPTI library
};

// Converts the statistics to entries of a profile's header: what was recorded, the cost, and any missing data.
std::vector<std::pair<std::string, std::string>> facts_of(const GpuStats& stats);

// Collects GPU activity of this process through CUPTI. Only one collector can exist at a time, since CUPTI serves one
// client per process. In a forked child the collector is empty, since the child has neither the collector's threads nor
// access to the GPU.
class GpuCollector {
 public:
  struct Options {
    // Returns the caller's context, which is attached to operations; 0 means none. Called in the launching thread
    // within its CUDA call, and also while nodes are added to a graph. The collector holds no lock during the call. The
    // function must not call CUDA and must not throw.
    std::function<uint64_t()> context = {};
    size_t most_bytes = size_t{160} << 20;  // limit of the data kept between two calls of take()
  };

  // Starts the collection. CUDA graphs whose operations need calling contexts must be captured after this call. Throws
  // kDevice with the remedy if CUPTI cannot be loaded, if another tool uses CUPTI, or if this process lacks the
  // permission to use CUPTI.
  static std::unique_ptr<GpuCollector> start(Options options);
  ~GpuCollector();  // calls stop()
  GpuCollector(const GpuCollector&) = delete;
  GpuCollector& operator=(const GpuCollector&) = delete;

  // Returns the operations that arrived since the last call, ordered by start time. Holds back about the last 300 ms,
  // since operations that began earlier may still arrive. After flush(), take() returns all operations that have ended.
  // flush() and take() may be called from any thread, but not from Options::context.
  std::vector<GpuOperation> take();
  void flush();
  // Ends the collection; take() then returns the remaining operations. The device should be idle, since operations
  // still running are not recorded. Waits until calls of Options::context have returned, so the caller must hold no
  // lock that these calls need.
  GpuStats stop();
  GpuStats stats() const;

  class Session;

 private:
  explicit GpuCollector(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::shared_ptr<Session> session_;
};

}  // namespace heddle::profile
