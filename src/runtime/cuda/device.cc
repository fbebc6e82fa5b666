#include "runtime/cuda/device.h"

#include <cstring>

#include "base/check.h"

namespace heddle::runtime {
namespace {

// Numbers of the driver's interface.
constexpr int kMaxDynamicShared = 8, kCaptureThreadLocal = 1;
constexpr int kMapU8 = 0, kMapU16 = 1, kMapU32 = 2, kMapTf32 = 11;
constexpr int kPromoteL2To256 = 3;

int map_type(TensorMapDesc::Element element) {
  switch (element) {
    case TensorMapDesc::Element::kBits8:
      return kMapU8;
    case TensorMapDesc::Element::kBits16:
      return kMapU16;
    case TensorMapDesc::Element::kBits32:
      return kMapU32;
    case TensorMapDesc::Element::kTf32:
      return kMapTf32;
  }
  return kMapU8;
}

int map_swizzle(int bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

void launch_kernel(const CudaDriver& driver, CudaDriver::Handle function, const CudaLaunch& launch,
                   CudaDriver::Handle stream, void** arguments) {
  CudaLaunchAttribute attributes[3];
  unsigned count = 0;
  if (launch.cluster > 1) {
    attributes[count].id = CudaLaunchAttribute::kClusterDimension;
    attributes[count].value[0] = launch.cluster;
    attributes[count].value[1] = attributes[count].value[2] = 1;
    ++count;
  }
  if (launch.cooperative) attributes[count++] = {CudaLaunchAttribute::kCooperative, 0, {1}};
  if (launch.early) attributes[count++] = {CudaLaunchAttribute::kProgrammaticSerialization, 0, {1}};
  const CudaLaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]},
                                   {launch.block, 1, 1},
                                   launch.shared_bytes,
                                   stream,
                                   attributes,
                                   count};
  driver.check(driver.launch(&config, function, arguments, nullptr), launch.symbol.c_str());
}

CudaDevice find_device(int ordinal) {
  CudaDriver::get();
  for (CudaDevice& device : cuda_devices()) {
    if (device.ordinal == ordinal) return std::move(device);
  }
  fail(ErrorCode::kDevice, fmt::format("cuda:{}", ordinal), "there is no such GPU", "`heddle devices` lists them");
}

}  // namespace

CudaContext::CudaContext(int ordinal) : driver_(CudaDriver::get()), device_(find_device(ordinal)) {
  driver_.check(driver_.device_get(&handle_, ordinal), "cuDeviceGet");
  CudaDriver::Handle context = nullptr;
  driver_.check(driver_.primary_retain(&context, handle_), "cuDevicePrimaryCtxRetain");
  constexpr unsigned kNonBlocking = 1;
  int result = driver_.context_set(context);
  if (result == 0) result = driver_.stream_create(&stream_, kNonBlocking);
  if (result != 0) {
    driver_.primary_release(handle_);
    driver_.check(result, "cuStreamCreate");
  }
}

CudaContext::~CudaContext() {
  driver_.stream_destroy(stream_);
  driver_.primary_release(handle_);
}

void CudaContext::synchronize() const {
  driver_.check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
}

CudaBuffer::CudaBuffer(const CudaContext& context, size_t bytes) : context_(context), bytes_(bytes) {
  if (bytes == 0) return;
  context_.driver().check(context_.driver().malloc(&address_, bytes), "cuMemAlloc");
}

CudaBuffer::~CudaBuffer() {
  if (address_ != 0) context_.driver().free(address_);
}

void CudaBuffer::write(const void* from, size_t bytes, size_t offset) {
  HEDDLE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset);
  if (bytes > 0) context_.driver().check(context_.driver().copy_in(address_ + offset, from, bytes), "cuMemcpyHtoD");
}

void CudaBuffer::read(void* to, size_t bytes, size_t offset) const {
  HEDDLE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset);
  context_.synchronize();
  if (bytes > 0) context_.driver().check(context_.driver().copy_out(to, address_ + offset, bytes), "cuMemcpyDtoH");
}

CudaModule::CudaModule(const CudaContext& context, std::string_view cubin) : context_(context) {
  const std::string image(cubin);
  context_.driver().check(context_.driver().module_load(&handle_, image.data()), "cuModuleLoadData");
}

CudaModule::~CudaModule() {
  context_.driver().module_unload(handle_);
}

CudaDriver::Handle CudaModule::function(const std::string& symbol, uint32_t shared_bytes) const {
  const CudaDriver& driver = context_.driver();
  CudaDriver::Handle function = nullptr;
  driver.check(driver.module_function(&function, handle_, symbol.c_str()), "cuModuleGetFunction");
  if (shared_bytes > 0) {
    driver.check(driver.function_attribute(function, kMaxDynamicShared, static_cast<int>(shared_bytes)),
                 "cuFuncSetAttribute");
  }
  return function;
}

CudaSequence::CudaSequence(const CudaContext& context, const CudaModule& module,
                           const std::vector<CudaLaunch>& launches, const std::vector<uint64_t>& operands)
    : context_(context) {
  const auto address_of = [&](int operand) {
    HEDDLE_CHECK(operand >= 0 && static_cast<size_t>(operand) < operands.size(), "operand {}", operand);
    return operands[static_cast<size_t>(operand)];
  };
  const CudaDriver& driver = context.driver();
  for (const CudaLaunch& launch : launches) {
    Bound bound{module.function(launch.symbol, launch.shared_bytes), launch, {}, launch.arguments};
    for (const TensorMapDesc& desc : launch.maps) {
      const uint64_t base = address_of(desc.operand) + desc.offset;
      if (base % 16 != 0) {
        fail(ErrorCode::kInvalidArgument, launch.symbol,
             fmt::format("operand {} lies at {:#x}, which is not aligned to 16 bytes", desc.operand, base));
      }
      const uint32_t box[3] = {desc.box[0], desc.box[1], 1}, ones[3] = {1, 1, 1};
      Map& map = bound.maps.emplace_back();
      driver.check(
          driver.tensor_map(&map, map_type(desc.element), 3, reinterpret_cast<void*>(base), desc.extents.data(),
                            desc.strides.data(), box, ones, 0, map_swizzle(desc.swizzle_bytes), kPromoteL2To256, 0),
          "cuTensorMapEncodeTiled");
    }
    for (const PointerPatch& patch : launch.pointers) {
      const uint64_t address = address_of(patch.operand);
      std::vector<uint8_t>& block = bound.arguments.at(static_cast<size_t>(patch.argument));
      HEDDLE_CHECK(static_cast<size_t>(patch.offset) + sizeof(address) <= block.size());
      std::memcpy(block.data() + patch.offset, &address, sizeof(address));
    }
    bound_.push_back(std::move(bound));
  }
}

void CudaSequence::enqueue() const {
  const CudaDriver& driver = context_.driver();
  std::vector<void*> arguments;
  for (const Bound& bound : bound_) {
    arguments.clear();
    for (const Map& map : bound.maps) arguments.push_back(const_cast<Map*>(&map));
    for (const auto& block : bound.arguments) arguments.push_back(const_cast<uint8_t*>(block.data()));
    launch_kernel(driver, bound.function, bound.launch, context_.stream(), arguments.data());
  }
}

CudaGraph::CudaGraph(const CudaContext& context, const std::function<void()>& enqueue) : context_(context) {
  const CudaDriver& driver = context.driver();
  driver.check(driver.capture_begin(context.stream(), kCaptureThreadLocal), "cuStreamBeginCapture");
  CudaDriver::Handle graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    driver.capture_end(context.stream(), &graph);
    if (graph != nullptr) driver.graph_destroy(graph);
    throw;
  }
  driver.check(driver.capture_end(context.stream(), &graph), "cuStreamEndCapture");
  const int result = driver.graph_instantiate(&executable_, graph, 0);
  driver.graph_destroy(graph);
  driver.check(result, "cuGraphInstantiate");
}

CudaGraph::~CudaGraph() {
  context_.driver().graph_exec_destroy(executable_);
}

void CudaGraph::launch() const {
  context_.driver().check(context_.driver().graph_launch(executable_, context_.stream()), "cuGraphLaunch");
}

CudaTimer::CudaTimer(const CudaContext& context, CudaBuffer& flush) : context_(context), flush_(flush) {
  context.driver().check(context.driver().event_create(&start_, 0), "cuEventCreate");
  context.driver().check(context.driver().event_create(&end_, 0), "cuEventCreate");
}

CudaTimer::~CudaTimer() {
  context_.driver().event_destroy(start_);
  context_.driver().event_destroy(end_);
}

double CudaTimer::time_us(const CudaGraph& graph) {
  const CudaDriver& driver = context_.driver();
  const CudaDriver::Handle stream = context_.stream();
  driver.check(driver.set_d32_async(flush_.address(), ++turn_, flush_.size() / 4, stream), "cuMemsetD32Async");
  driver.check(driver.event_record(start_, stream), "cuEventRecord");
  graph.launch();
  driver.check(driver.event_record(end_, stream), "cuEventRecord");
  driver.check(driver.event_synchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  driver.check(driver.event_elapsed(&milliseconds, start_, end_), "cuEventElapsedTime");
  return milliseconds * 1e3;
}

}  // namespace heddle::runtime
