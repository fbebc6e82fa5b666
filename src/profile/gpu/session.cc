#include "profile/gpu/session.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/thread/thread.h"
#include "profile/gpu/callback_ids.h"

namespace heddle::profile {
namespace {

using Session = GpuCollector::Session;

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr auto kFlushEvery = std::chrono::milliseconds(100);
constexpr cupti::Activity kKinds[] = {cupti::kKernel,          cupti::kCopy,   cupti::kPeerCopy, cupti::kMemset,
                                      cupti::kSynchronisation, cupti::kMemory, cupti::kOverhead};

std::atomic<Session*> active{nullptr};
std::atomic<int> forks{0};  // that this process is a child of

int count_forks() {
  static const bool counted = [] {
    ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
    return true;
  }();
  return counted ? forks.load() : 0;
}

void count_calls(const CallLog& log, GpuStats& stats) {
  const uint64_t calls = log.calls.load(std::memory_order_relaxed);
  const uint64_t sampled = log.sampled.load(std::memory_order_relaxed);
  const auto sampled_ns = static_cast<double>(log.sampled_ns.load(std::memory_order_relaxed));
  stats.calls += calls;
  if (sampled == 0) return;
  stats.call_ns += static_cast<uint64_t>(sampled_ns / static_cast<double>(sampled) * static_cast<double>(calls));
}

uint64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// Buffers that CUPTI fills: kept when they come back, up to a few. Never destroyed, as CUPTI may still have some.
class BufferPool {
 public:
  static BufferPool& get() {
    static auto* one = new BufferPool();
    return *one;
  }
  uint8_t* take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        uint8_t* const buffer = free_.back();
        free_.pop_back();
        return buffer;
      }
    }
    return static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  }
  void give_back(uint8_t* buffer) {
    constexpr size_t kMostFree = 4;
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() < kMostFree) {
        free_.push_back(buffer);
        return;
      }
    }
    std::free(buffer);
  }

 private:
  std::mutex mutex_;
  std::vector<uint8_t*> free_;
};

// Versions before 12.9 crash where they get no buffer.
void buffer_requested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = BufferPool::get().take();
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void buffer_completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid) {
  if (buffer == nullptr) return;
  Session* const session = active.load(std::memory_order_acquire);
  if (session != nullptr) session->on_buffer(context, stream, {buffer, std::min({valid, bytes, kBufferBytes})});
  BufferPool::get().give_back(buffer);
}

void called_back(void* user, cupti::Domain domain, uint32_t id, const void* data) {
  auto& session = *static_cast<Session*>(user);
  if (data == nullptr) return;
  if (domain == cupti::kDriver || domain == cupti::kRuntime) {
    session.on_call(*static_cast<const cupti::CallData*>(data));
  } else if (domain == cupti::kResource) {
    session.on_resource(id, *static_cast<const cupti::ResourceData*>(data));
  }
}

// Of a thread: its calls in progress. Without a destructor, since CUDA may be called while the thread ends.
struct ThreadCalls {
  Session* session;
  CallLog* log;
  int depth;
  GpuCall outer;
  bool gone;
};
thread_local ThreadCalls thread_calls{};

struct ThreadEnd {
  ~ThreadEnd() {
    if (thread_calls.log != nullptr) thread_calls.log->end();
    thread_calls.log = nullptr;
    thread_calls.gone = true;
  }
};

// Counts a callback that may use the session's options.
class Inside {
 public:
  Inside(std::atomic<int>& count, const std::atomic<bool>& running) : count_(count) {
    count_.fetch_add(1);
    entered_ = running.load();
  }
  ~Inside() { count_.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  std::atomic<int>& count_;
  bool entered_ = false;
};

}  // namespace

Session::Session(const cupti::Library& library, Options options)
    : library_(library),
      options_(std::move(options)),
      operations_(std::max<size_t>(options_.most_bytes / 4 * 3 / sizeof(GpuOperation), 1)),
      most_calls_(std::max<size_t>(options_.most_bytes / 4 / sizeof(GpuCall), 1)),
      forks_(count_forks()) {
  stats_.version = library.number;
  stats_.library = library.path;
}

void Session::subscribe() {
  char holder[128] = {};
  cupti::SubscriberParams params;
  params.name = "heddle";
  params.holder = holder;
  params.holder_bytes = sizeof(holder) - 1;
  const cupti::Result result = library_.subscribe_named != nullptr
                                   ? library_.subscribe_named(&subscriber_, called_back, this, &params)
                                   : library_.subscribe(&subscriber_, called_back, this);
  if (result == cupti::kManySubscribers) {
    // Kineto gives no name, and holds its place until the process ends.
    const bool named = *holder != '\0' && std::string_view(holder).find("<not provided>") == std::string_view::npos;
    const std::string who = named ? fmt::format("\"{}\"", holder) : "another tool";
    fail(
        ErrorCode::kDevice, "GPU profiling",
        fmt::format("{} uses CUPTI in this process already, and CUPTI serves one at a time", who),
        "Run without torch.profiler (Kineto), Nsight Systems, Nsight Compute, cuda-gdb and compute-sanitizer, or start "
        "Heddle's profile before them");
  }
  if (result != cupti::kSuccess) cupti::refuse(library_, result, "cuptiSubscribe");
}

// A CUPTI that does not have a call does not have its callback either.
void Session::enable() {
  for (const uint32_t id : cupti::kDriverCalls) library_.enable_callback(1, subscriber_, cupti::kDriver, id);
  for (const uint32_t id : cupti::kRuntimeCalls) library_.enable_callback(1, subscriber_, cupti::kRuntime, id);
  for (const uint32_t id : {cupti::kNodeCreated, cupti::kExecutableCreated, cupti::kNodeCloned}) {
    library_.enable_callback(1, subscriber_, cupti::kResource, id);
  }
  if (const auto r = library_.register_buffers(buffer_requested, buffer_completed); r != cupti::kSuccess) {
    cupti::refuse(library_, r, "cuptiActivityRegisterCallbacks");
  }
  for (const cupti::Activity kind : kKinds) {
    const cupti::Result result = library_.enable(kind);
    if (result != cupti::kSuccess && (kind == cupti::kKernel || kind == cupti::kCopy)) {
      cupti::refuse(library_, result, "cuptiActivityEnable");
    }
  }
}

void Session::begin() {
  subscribe();
  running_ = true;
  active.store(this, std::memory_order_release);
  try {
    enable();
    flusher_ = start_thread("GPU profiling", [this] { flush_now_and_then(); });
  } catch (...) {
    close();
    throw;
  }
}

void Session::close() {
  running_ = false;
  for (const cupti::Activity kind : kKinds) library_.disable(kind);
  library_.unsubscribe(subscriber_);
  while (inside_.load() != 0) ::usleep(50);  // what they do is short
  active.store(nullptr, std::memory_order_release);
}

void Session::end() {
  if (forked()) {
    if (flusher_.joinable()) flusher_.detach();
    running_ = false;
    return;
  }
  {
    const std::lock_guard lock(flusher_mutex_);
    if (!running_) return;
    running_ = false;
  }
  stopping_.notify_all();
  if (flusher_.joinable()) flusher_.join();
  flush(true);
  close();
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<CallLog>& log : logs_) log->forget_all();
  options_.context = {};
}

// Its locks may be held by threads that only the parent has.
bool Session::forked() const {
  return forks_ != forks.load(std::memory_order_relaxed);
}

void Session::flush(bool forced) {
  if (forked()) return;
  library_.flush(forced ? 1 : 0);
  if (forced) all_there_ = true;
}

void Session::flush_now_and_then() {
  std::unique_lock lock(flusher_mutex_);
  while (!stopping_.wait_for(lock, kFlushEvery, [&] { return !running_.load(); })) {
    lock.unlock();
    flush(false);
    {
      const std::lock_guard calls(mutex_);
      take_over_calls();
    }
    lock.lock();
  }
}

// --- what CUPTI calls -------------------------------------------------------------------------------------------

CallLog& Session::log_of_thread() {
  thread_local ThreadEnd end_of_thread;
  (void)end_of_thread;
  if (thread_calls.session != this || thread_calls.log == nullptr) {
    auto log = std::make_unique<CallLog>();
    thread_calls = {this, log.get(), 0, {}, false};
    const std::lock_guard lock(mutex_);
    logs_.push_back(std::move(log));
  }
  return *thread_calls.log;
}

uint64_t Session::context_now() const {
  return options_.context ? options_.context() : 0;
}

// A call of the runtime has calls of the driver within it, whose operations carry the number of the one or the other:
// both stand for the outer one.
void Session::on_call(const cupti::CallData& call) {
  if (thread_calls.gone) return;
  if (call.site == cupti::kExit) {
    if (thread_calls.session == this && thread_calls.depth > 0) --thread_calls.depth;
    return;
  }
  const Inside inside(inside_, running_);
  if (!inside || forked()) return;
  CallLog& log = log_of_thread();
  constexpr uint64_t kSampled = 61;  // not in step with the log's chunks, which take longer to add
  const uint64_t number = log.calls.load(std::memory_order_relaxed);
  log.calls.store(number + 1, std::memory_order_relaxed);
  const bool sampled = number % kSampled == kSampled / 2;  // not the first, which makes the log
  const uint64_t begin = sampled ? nanoseconds_of(CLOCK_MONOTONIC) : 0;
  if (thread_calls.depth++ == 0) {
    thread_calls.outer = {call.correlation, context_now(), nanoseconds_of(CLOCK_REALTIME)};
  }
  thread_calls.outer.correlation = call.correlation;
  log.add(thread_calls.outer);
  if (!sampled) return;
  log.sampled.store(log.sampled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const uint64_t taken = nanoseconds_of(CLOCK_MONOTONIC) - begin;
  log.sampled_ns.store(log.sampled_ns.load(std::memory_order_relaxed) + taken, std::memory_order_relaxed);
}

void Session::on_resource(uint32_t id, const cupti::ResourceData& resource) {
  const Inside inside(inside_, running_);
  if (!inside || resource.graph == nullptr) return;
  const cupti::GraphData& graph = *resource.graph;
  uint64_t node = 0, original = 0;
  uint32_t executable = 0, of_graph = 0;
  bool kept = true;
  if (id == cupti::kNodeCreated) {
    if (library_.graph_node_id(graph.node, &node) != cupti::kSuccess) return;
    // While a stream captures, the call that adds the node has asked already.
    const bool within = thread_calls.session == this && !thread_calls.gone && thread_calls.depth > 0;
    const uint64_t context = within ? thread_calls.outer.context : context_now();
    if (context != 0) kept = graph_nodes_.add(node, context);
  } else if (id == cupti::kNodeCloned) {
    if (library_.graph_node_id(graph.node, &node) != cupti::kSuccess) return;
    if (library_.graph_node_id(graph.original_node, &original) != cupti::kSuccess) return;
    kept = graph_nodes_.copy(original, node);
  } else if (id == cupti::kExecutableCreated && library_.executable_id != nullptr) {
    if (library_.graph_id(graph.graph, &of_graph) != cupti::kSuccess) return;
    if (library_.executable_id(graph.executable, &executable) != cupti::kSuccess) return;
    graph_nodes_.add_executable(executable, of_graph);
  }
  if (kept) return;
  const std::lock_guard lock(mutex_);
  ++stats_.lost_contexts;
}

void Session::on_buffer(void* context, uint32_t stream, std::span<uint8_t> records) {
  std::vector<GpuOperation> operations;
  ActivityCounts counts;
  uint8_t* const buffer = records.data();
  const size_t valid = records.size();
  parse_activity(
      records,
      [&](std::span<const uint8_t>, const uint8_t* previous) {
        const uint8_t* record = previous;
        return library_.next_record(buffer, valid, &record) == cupti::kSuccess ? record : nullptr;
      },
      operations, counts);
  size_t dropped = 0;
  const bool knows = library_.dropped(context, stream, &dropped) == cupti::kSuccess;
  for (GpuOperation& operation : operations) {
    if (operation.graph_node != 0) operation.captured_context = graph_nodes_.context_of(operation.graph_node);
  }
  add(operations, counts);
  if (!knows || dropped == 0) return;
  const std::lock_guard lock(mutex_);
  stats_.dropped += dropped;
}

// --- operations -------------------------------------------------------------------------------------------------

void Session::add(std::span<GpuOperation> operations, const ActivityCounts& counts) {
  const std::lock_guard lock(mutex_);
  stats_.unknown_times += counts.unknown_times;
  stats_.unknown_kinds += counts.unknown_kinds;
  stats_.malformed += counts.malformed;
  stats_.overhead_ns += counts.overhead_ns;
  take_over_calls();
  const size_t fit = operations_.room_for(operations.size());
  stats_.lost += operations.size() - fit;
  stats_.operations += fit;
  if (fit == 0) return;
  find_calls(operations.first(fit));
  operations_.add(operations.first(fit));
}

void Session::find_calls(std::span<GpuOperation> operations) {
  size_t last = 0;  // most operations are of the thread of the one before
  for (GpuOperation& operation : operations) {
    if (operation.correlation == 0) continue;
    for (size_t i = 0; i < logs_.size(); ++i) {
      const size_t at = (last + i) % logs_.size();
      const GpuCall* const call = logs_[at]->find(operation.correlation);
      if (call == nullptr) continue;
      operation.context = call->context;
      operation.launched = call->launched;
      last = at;
      break;
    }
  }
}

// Calls are kept for operations that come late: up to a number, then those of threads that have ended are given up, and
// the oldest of others.
void Session::take_over_calls() {
  constexpr size_t kFewest = 128;  // what a log takes at least
  const auto held = [&](const std::unique_ptr<CallLog>& log) { return std::max(log->size(), kFewest); };
  size_t calls = 0;
  for (const std::unique_ptr<CallLog>& log : logs_) {
    log->take_over();
    calls += held(log);
  }
  while (calls > most_calls_ && !logs_.empty()) {
    const auto ended = std::find_if(logs_.begin(), logs_.end(), [](const auto& log) { return log->ended(); });
    if (ended != logs_.end()) {
      calls -= held(*ended);
      (*ended)->take_over();
      stats_.lost_contexts += (*ended)->size();
      count_calls(**ended, stats_);
      logs_.erase(ended);
      continue;
    }
    const auto longest = std::max_element(logs_.begin(), logs_.end(),
                                          [](const auto& a, const auto& b) { return a->size() < b->size(); });
    if ((*longest)->size() <= kFewest) break;
    const size_t given_up = ((*longest)->size() - kFewest) / 4 + 1;
    (*longest)->forget_oldest(given_up);
    stats_.lost_contexts += given_up;
    calls -= given_up;
  }
}

// Buffers do not come in order of time. What is young waits, so that its elders of other buffers go first.
std::vector<GpuOperation> Session::take() {
  constexpr uint64_t kSettled = 300000000;  // some flushes
  if (forked()) return {};
  const bool all = all_there_.exchange(false) || !running_;
  return operations_.take(all ? UINT64_MAX : nanoseconds_of(CLOCK_REALTIME) - kSettled);
}

GpuStats Session::stats() const {
  if (forked()) return {};
  const std::lock_guard lock(mutex_);
  GpuStats stats = stats_;
  for (const std::unique_ptr<CallLog>& log : logs_) count_calls(*log, stats);
  return stats;
}

}  // namespace heddle::profile
