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
  uint64_t operations = 0;     // that take() gave or will give
  uint64_t dropped = 0;        // records that CUPTI could not keep
  uint64_t lost = 0;           // operations beyond Options::most_bytes
  uint64_t unknown_times = 0;  // operations without a start or an end, which count but have no duration
  uint64_t unknown_kinds = 0;  // records that this version does not know
  uint64_t malformed = 0;      // buffers that were left at a record that is not one
  uint64_t lost_contexts = 0;  // calls whose context was given up for Options::most_bytes
  uint64_t calls = 0;          // of CUDA that were looked at
  uint64_t call_ns = 0;        // what that took on their threads, estimated from every 61st
  uint64_t overhead_ns = 0;    // what CUPTI says that it took itself
  uint32_t version = 0;        // of CUPTI, as cuptiGetVersion() has it
  std::string library;         // its path
};

// The same for a profile's header: by what was recorded, what that cost, and what is missing, where something is.
std::vector<std::pair<std::string, std::string>> facts_of(const GpuStats& stats);

// Collects what GPUs do for this process by CUPTI. One at a time: CUPTI serves one client a process. In a child of a
// fork, which has neither its threads nor the GPU, it is empty.
class GpuCollector {
 public:
  struct Options {
    // The caller's context, which operations carry. Called in the thread that launches, within the call, with no lock
    // of the collector held, also while a graph's nodes are added. Must not call CUDA nor throw. 0: none.
    std::function<uint64_t()> context = {};
    size_t most_bytes = size_t{160} << 20;  // of what is kept between two take()
  };

  // Before CUDA graphs are captured whose operations are to have contexts. Throws kDevice with the remedy where CUPTI
  // cannot be loaded, is used by another tool, or does not get the permission.
  static std::unique_ptr<GpuCollector> start(Options options);
  ~GpuCollector();  // as stop()
  GpuCollector(const GpuCollector&) = delete;
  GpuCollector& operator=(const GpuCollector&) = delete;

  // What arrived since the last call and is old enough for what began before it to be there, in order of start: some
  // 300 ms. After flush() all that have ended are there. Both may be called from any thread, but not from
  // Options::context.
  std::vector<GpuOperation> take();
  void flush();
  // Ends the collection; what it still had is left for take(). The device should be idle: what runs now is not seen.
  // Waits until calls of Options::context have returned, so the caller must not hold what they wait for.
  GpuStats stop();
  GpuStats stats() const;

  class Session;

 private:
  explicit GpuCollector(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  std::shared_ptr<Session> session_;
};

}  // namespace heddle::profile
