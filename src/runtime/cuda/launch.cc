#include "runtime/cuda/launch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/check.h"

namespace heddle::runtime {
namespace {

// Numbers of the driver's interface.
constexpr int kCaptureThreadLocal = 1;
constexpr CudaDriver::Result kNoContext = 201;

}  // namespace

unsigned launch_attributes(const CudaLaunch& launch, CudaLaunchAttribute* attributes, bool may_overlap) {
  unsigned count = 0;
  if (launch.cluster > 1) {
    attributes[count++] = {CudaLaunchAttribute::kClusterDimension, 0, {launch.cluster, 1, 1}};
  }
  if (launch.cooperative) attributes[count++] = {CudaLaunchAttribute::kCooperative, 0, {1}};
  if (launch.early && may_overlap) attributes[count++] = {CudaLaunchAttribute::kProgrammaticSerialization, 0, {1}};
  return count;
}

void launch_kernel(const CudaContext& context, const CudaLaunchConfig& config, CudaDriver::Handle function,
                   void** arguments, const char* symbol) {
  const CudaDriver& driver = context.driver();
  CudaDriver::Result result = driver.launch(&config, function, arguments, nullptr);
  if (result == kNoContext) {
    context.make_current();
    result = driver.launch(&config, function, arguments, nullptr);
  }
  if (result != 0) context.check(result, symbol);
}

CudaBoundLaunch::CudaBoundLaunch(const CudaContext& context, CudaDriver::Handle function, const CudaLaunch& launch,
                                 std::span<const uint64_t> operands)
    : function_(function), launch_(launch), maps_(launch.maps.size()) {
  const auto address_of = [&](int operand) {
    HEDDLE_CHECK(operand >= 0 && static_cast<size_t>(operand) < operands.size(), "operand {}", operand);
    return operands[static_cast<size_t>(operand)];
  };
  for (size_t i = 0; i < maps_.size(); ++i) {
    const TensorMapDesc& desc = launch.maps[i];
    maps_[i] = encode_tensor_map(context, desc, address_of(desc.operand), launch.symbol.c_str());
  }
  for (const PointerPatch& patch : launch.pointers) {
    const uint64_t address = address_of(patch.operand) + static_cast<uint64_t>(patch.begin);
    std::vector<uint8_t>& block = launch_.arguments.at(static_cast<size_t>(patch.argument));
    HEDDLE_CHECK(static_cast<size_t>(patch.offset) + sizeof(address) <= block.size());
    std::memcpy(block.data() + patch.offset, &address, sizeof(address));
  }
}

void CudaBoundLaunch::enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel) const {
  std::vector<void*> arguments;
  for (const TensorMap& map : maps_) arguments.push_back(const_cast<TensorMap*>(&map));
  for (const auto& block : launch_.arguments) arguments.push_back(const_cast<uint8_t*>(block.data()));
  CudaLaunchAttribute attributes[3];
  const unsigned count = launch_attributes(launch_, attributes, behind_kernel);
  const CudaLaunchConfig config = {{launch_.grid[0], launch_.grid[1], launch_.grid[2]},
                                   {launch_.block, 1, 1},
                                   launch_.shared_bytes,
                                   stream,
                                   attributes,
                                   count};
  launch_kernel(context, config, function_, arguments.data(), launch_.symbol.c_str());
}

bool may_overlap(const CudaContext& context) {
  constexpr int kEdgesInGraphs = 12030;  // the first driver whose captures keep them
  const char* chosen = std::getenv("HEDDLE_CUDA_OVERLAP");
  return context.target().has_dependent_launch() && context.device().driver_version >= kEdgesInGraphs &&
         (chosen == nullptr || std::string_view(chosen) != "0");
}

CudaSequence::CudaSequence(const CudaContext& context, const CudaModule& module,
                           const std::vector<CudaLaunch>& launches, const std::vector<uint64_t>& operands)
    : context_(context) {
  for (const CudaLaunch& launch : launches) {
    bound_.emplace_back(context, module.function(launch.symbol, launch.shared_bytes, launch.cluster), launch, operands);
  }
}

void CudaSequence::enqueue() const {
  const bool overlap = may_overlap(context_);
  for (size_t i = 0; i < bound_.size(); ++i) bound_[i].enqueue(context_, context_.stream(), overlap && i > 0);
}

namespace {

// Data whose graph has been destroyed. The driver says so in a callback, which must not call the driver.
struct Unused {
  std::mutex mutex;
  std::vector<std::unique_ptr<std::shared_ptr<const void>>> data;
};

Unused& unused() {
  static auto* const all = new Unused;  // graphs may be destroyed while the process ends
  return *all;
}

void add_unused(void* data) {
  const std::lock_guard lock(unused().mutex);
  unused().data.emplace_back(static_cast<std::shared_ptr<const void>*>(data));
}

}  // namespace

void destroy_data_of_graphs() {
  decltype(Unused::data) data;
  const std::lock_guard lock(unused().mutex);
  data.swap(unused().data);
}

void keep_for_captured_graph(const CudaContext& context, CudaDriver::Handle stream, std::shared_ptr<const void> data) {
  constexpr unsigned kDestroyedAtAnyTime = 1, kGiveReference = 1;
  const CudaDriver& driver = context.driver();
  int captures = 0;
  uint64_t id = 0;
  CudaDriver::Handle graph = nullptr, object = nullptr;
  const CudaDriver::Handle* dependencies = nullptr;
  size_t count = 0;
  context.check(driver.capture_info(stream, &captures, &id, &graph, &dependencies, &count), "cuStreamGetCaptureInfo");
  if (captures == 0) return;
  auto kept = std::make_unique<std::shared_ptr<const void>>(std::move(data));
  context.check(driver.user_object_create(&object, kept.get(), &add_unused, 1, kDestroyedAtAnyTime),
                "cuUserObjectCreate");
  kept.release();  // belongs to the object now
  const int result = driver.graph_retain_object(graph, object, 1, kGiveReference);
  if (result != 0) driver.user_object_release(object, 1);
  context.check(result, "cuGraphRetainUserObject");
}

CudaGraph::CudaGraph(const CudaContext& context, const std::function<void()>& enqueue, CudaDriver::Handle stream)
    : context_(context) {
  const CudaDriver& driver = context.driver();
  if (stream == nullptr) stream = context.stream();
  context.make_current();
  context.check(driver.capture_begin(stream, kCaptureThreadLocal), "cuStreamBeginCapture");
  CudaDriver::Handle graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    driver.capture_end(stream, &graph);
    if (graph != nullptr) driver.graph_destroy(graph);
    throw;
  }
  context.check(driver.capture_end(stream, &graph), "cuStreamEndCapture");
  const int result = driver.graph_instantiate(&executable_, graph, 0);
  driver.graph_destroy(graph);
  context.check(result, "cuGraphInstantiate");
}

CudaGraph::~CudaGraph() {
  context_.enter();
  context_.driver().graph_exec_destroy(executable_);
}

void CudaGraph::launch(CudaDriver::Handle stream) const {
  context_.check(context_.driver().graph_launch(executable_, stream == nullptr ? context_.stream() : stream),
                 "cuGraphLaunch");
}

CudaStopwatch::CudaStopwatch(const CudaContext& context) : context_(context) {
  context.make_current();
  context.check(context.driver().event_create(&start_, 0), "cuEventCreate");
  const int result = context.driver().event_create(&end_, 0);
  if (result != 0) context.driver().event_destroy(start_);
  context.check(result, "cuEventCreate");
}

CudaStopwatch::~CudaStopwatch() {
  context_.enter();
  context_.driver().event_destroy(start_);
  context_.driver().event_destroy(end_);
}

void CudaStopwatch::start(CudaDriver::Handle stream) {
  context_.check(context_.driver().event_record(start_, stream), "cuEventRecord");
}

void CudaStopwatch::stop(CudaDriver::Handle stream) {
  context_.check(context_.driver().event_record(end_, stream), "cuEventRecord");
}

double CudaStopwatch::seconds() const {
  context_.check(context_.driver().event_synchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  context_.check(context_.driver().event_elapsed(&milliseconds, start_, end_), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

double CudaStopwatch::seconds_after(const CudaStopwatch& other) const {
  float milliseconds = 0;
  context_.check(context_.driver().event_elapsed(&milliseconds, other.start_, start_), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

CudaMarks::~CudaMarks() {
  context_.enter();
  for (const CudaDriver::Handle event : events_) context_.driver().event_destroy(event);
}

void CudaMarks::mark(CudaDriver::Handle stream) {
  constexpr unsigned kExternal = 1;  // a node of the graph, not an edge of the capture
  CudaDriver::Handle event = nullptr;
  context_.check(context_.driver().event_create(&event, 0), "cuEventCreate");
  events_.push_back(event);
  context_.check(context_.driver().event_record_flags(event, stream, kExternal), "cuEventRecordWithFlags");
}

double CudaMarks::seconds(size_t from, size_t to) const {
  float milliseconds = 0;
  context_.check(context_.driver().event_elapsed(&milliseconds, events_[from], events_[to]), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

CudaFlush::CudaFlush(const CudaContext& context)
    : context_(context),
      memory_(context,
              context.target().emulated
                  ? 4096
                  : std::max(size_t{256} << 20, static_cast<size_t>(4 * context.target().l2_bytes)),
              "the memory that makes the L2 cold") {}

void CudaFlush::enqueue(CudaDriver::Handle stream) {
  const CudaDriver& driver = context_.driver();
  constexpr CudaDriver::Result kNotSupported = 801;  // by a part of a device: no line of its L2 is kept then
  const CudaDriver::Result reset = driver.reset_persisting_l2();
  if (reset != kNotSupported) context_.check(reset, "cuCtxResetPersistingL2Cache");
  context_.check(driver.set_d32_async(memory_.address(), ++turn_, memory_.size() / 4, stream), "cuMemsetD32Async");
}

double CudaTimer::time_us(const CudaGraph& graph) {
  const CudaDriver::Handle stream = context_.stream();
  flush_.enqueue(stream);
  watch_.start(stream);
  graph.launch();
  watch_.stop(stream);
  return watch_.seconds() * 1e6;
}

}  // namespace heddle::runtime
