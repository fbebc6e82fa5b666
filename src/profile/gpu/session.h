#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "profile/gpu/activity.h"
#include "profile/gpu/call_log.h"
#include "profile/gpu/collector.h"
#include "profile/gpu/cupti_library.h"
#include "profile/gpu/graph_nodes.h"
#include "profile/gpu/operation_store.h"

namespace heddle::profile {

// The state of one collection. CUPTI calls it from the program's threads and from its own thread, possibly even after
// the collection has ended. Therefore a session is never destroyed, but its data is freed when the collection ends.
class GpuCollector::Session {
 public:
  Session(const cupti::Library& library, Options options);

  void begin();  // if it throws kDevice, the session has ended
  void end();
  void flush(bool forced);
  std::vector<GpuOperation> take();
  GpuStats stats() const;

  // Called by CUPTI.
  void on_call(const cupti::CallData& call);
  void on_resource(uint32_t id, const cupti::ResourceData& resource);
  void on_buffer(void* context, uint32_t stream, std::span<uint8_t> records);

 private:
  bool forked() const;  // true in a forked child of the process that called begin()
  CallLog& log_of_thread();
  uint64_t context_now() const;
  void subscribe();
  void enable();
  void close();
  void flush_now_and_then();
  void add(std::span<GpuOperation> operations, const ActivityCounts& counts);
  void find_calls(std::span<GpuOperation> operations);
  void take_over_calls();

  const cupti::Library& library_;
  Options options_;
  OperationStore operations_;
  std::atomic<bool> all_there_{false};  // a forced flush has occurred since the last take()
  size_t most_calls_ = 0;
  int forks_ = 0;  // the number of forks when the session began
  cupti::Subscriber subscriber_ = nullptr;
  std::atomic<bool> running_{false};
  std::atomic<int> inside_{0};  // the number of calls in progress that may use options_.context
  GraphNodes graph_nodes_;

  mutable std::mutex mutex_;  // guards the members below; never held during a call of CUPTI or options_.context
  std::vector<std::unique_ptr<CallLog>> logs_;
  GpuStats stats_;

  std::mutex flusher_mutex_;
  std::condition_variable stopping_;
  std::thread flusher_;
};

}  // namespace heddle::profile
