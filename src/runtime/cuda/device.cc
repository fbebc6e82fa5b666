#include "runtime/cuda/device.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "base/interface/option.h"

namespace heddle::runtime {
namespace {

// Numbers of the driver's interface.
constexpr int kMaxDynamicShared = 8, kNonPortableClusters = 14, kOutOfMemory = 2, kDeviceUnavailable = 46;
constexpr unsigned kNonBlocking = 1;
constexpr uint32_t kPortableCluster = 8;

template <typename Devices>
std::variant<CudaDevice, HipDevice> find_device(Devices devices, std::string_view kind, int ordinal) {
  for (auto& device : devices) {
    if (device.ordinal == ordinal) return std::move(device);
  }
  fail(ErrorCode::kDevice, fmt::format("{}:{}", kind, ordinal), "there is no such GPU", "`heddle devices` lists them");
}

const CudaDriver& driver_of(GpuApi api) {
  return api == GpuApi::kHip ? hip_driver() : CudaDriver::get();
}

// Errors after which a context answers every call with an error.
bool ends_context(CudaDriver::Result result) {
  switch (result) {
    case kDeviceUnavailable:
    case 214:  // uncorrectable ECC error
    case 220:  // uncorrectable NVLink error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return true;
    default:
      return false;
  }
}

constexpr const char* kStartAgain =
    "Start the process again: no driver call brings the GPU back in this one. If it comes again, the driver's log "
    "(dmesg) "
    "may tell why";

double gigabytes(size_t bytes) {
  return static_cast<double>(bytes) * 1e-9;
}

}  // namespace

CudaContext::CudaContext(int ordinal, GpuApi api)
    : driver_(driver_of(api)),
      device_(api == GpuApi::kHip ? find_device(hip_devices(), "hip", ordinal)
                                  : find_device(cuda_devices(), "cuda", ordinal)) {
  driver_.check(driver_.device_get(&handle_, ordinal), "cuDeviceGet");
  int result = driver_.primary_retain(&context_, handle_);
  if (ends_context(result) && result != kDeviceUnavailable) {
    fail(ErrorCode::kDevice, name(), fmt::format("the GPU was lost earlier in this process (error {})", result),
         kStartAgain);
  }
  driver_.check(result, "cuDevicePrimaryCtxRetain");
  result = driver_.context_set(context_);
  if (result == 0) result = driver_.stream_create(&stream_, kNonBlocking);
  if (result != 0) {
    driver_.primary_release(handle_);
    driver_.check(result, "cuStreamCreate");
  }
}

CudaContext::~CudaContext() {
  driver_.context_set(context_);
  driver_.stream_destroy(stream_);
  driver_.primary_release(handle_);
}

std::shared_ptr<const CudaContext> CudaContext::of_device(int ordinal, GpuApi api) {
  static std::mutex mutex;
  static std::map<std::pair<GpuApi, int>, std::weak_ptr<const CudaContext>> contexts;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const CudaContext>& known = contexts[{api, ordinal}];
  std::shared_ptr<const CudaContext> context = known.lock();
  if (context == nullptr) {
    context = std::make_shared<const CudaContext>(ordinal, api);
    known = context;
  }
  return context;
}

const GpuTarget& CudaContext::target() const {
  return std::visit([](const auto& device) -> const GpuTarget& { return device.target; }, device_);
}

const std::string& CudaContext::name() const {
  return std::visit([](const auto& device) -> const std::string& { return device.name; }, device_);
}

void CudaContext::make_current() const {
  check(driver_.context_set(context_), "cuCtxSetCurrent");
}

void CudaContext::synchronize() const {
  check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
}

void CudaContext::check(CudaDriver::Result result, const char* what) const {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) {
    fail(ErrorCode::kDevice, name(), fmt::format("the GPU was lost earlier: {}", lost_), kStartAgain);
  }
  if (!ends_context(result)) return driver_.check(result, what);
  try {
    driver_.check(result, what);
  } catch (const Error& error) {
    lost_ = fmt::format("{}: {}", what, error.why());
  }
  fail(ErrorCode::kDevice, name(), fmt::format("the GPU was lost in {}", lost_), kStartAgain);
}

CudaStream::CudaStream(const CudaContext& context) : context_(context) {
  context.make_current();
  context.check(context.driver().stream_create(&handle_, kNonBlocking), "cuStreamCreate");
}

CudaStream::~CudaStream() {
  context_.enter();
  context_.driver().stream_destroy(handle_);
}

void CudaStream::synchronize() const {
  context_.check(context_.driver().stream_synchronize(handle_), "cuStreamSynchronize");
}

CudaBuffer::CudaBuffer(const CudaContext& context, size_t bytes, const char* what) : context_(context), bytes_(bytes) {
  if (bytes == 0) return;
  context.make_current();
  const int result = context.driver().malloc(&address_, bytes);
  if (result == kOutOfMemory) {
    size_t free_bytes = 0, total = 0;
    context.driver().memory_info(&free_bytes, &total);
    fail(ErrorCode::kOutOfMemory, context.name(),
         fmt::format("{} needs {} bytes ({:.2f} GB); {} bytes of {} ({:.2f} of {:.2f} GB) are free", what, bytes,
                     gigabytes(bytes), free_bytes, total, gigabytes(free_bytes), gigabytes(total)),
         fmt::format("Reduce the batch or the sequence length ({}), run fewer models at once, or use {}",
                     option::shape(), option::target("cpu")));
  }
  context.check(result, "cuMemAlloc");
}

CudaBuffer::~CudaBuffer() {
  if (address_ == 0) return;
  context_.enter();
  context_.driver().free(address_);
}

void CudaBuffer::write(const void* from, size_t bytes, size_t offset) {
  HEDDLE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset);
  if (bytes == 0) return;
  context_.make_current();
  // On the stream and waited for: a plain copy may return while the last bytes are still under way to the device.
  context_.check(context_.driver().copy_in_async(address_ + offset, from, bytes, context_.stream()),
                 "cuMemcpyHtoDAsync");
  context_.synchronize();
}

void CudaBuffer::read(void* to, size_t bytes, size_t offset) const {
  HEDDLE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset);
  context_.make_current();
  context_.synchronize();
  if (bytes > 0) context_.check(context_.driver().copy_out(to, address_ + offset, bytes), "cuMemcpyDtoH");
}

CudaHostBuffer::CudaHostBuffer(const CudaContext& context, size_t bytes) : context_(context) {
  if (bytes == 0) return;
  context.make_current();
  void* pointer = nullptr;
  const int result = context.driver().host_alloc(&pointer, bytes, 0);
  if (result == kOutOfMemory) {
    fail(ErrorCode::kOutOfMemory, "page-locked memory",
         fmt::format("{} bytes for the inputs and outputs of a run cannot be locked", bytes),
         "Raise the limit of locked memory (ulimit -l), or reduce the batch");
  }
  context.check(result, "cuMemHostAlloc");
  data_ = static_cast<std::byte*>(pointer);
}

CudaHostBuffer::~CudaHostBuffer() {
  if (data_ == nullptr) return;
  context_.enter();
  context_.driver().host_free(data_);
}

CudaModule::CudaModule(const CudaContext& context, std::string_view cubin) : context_(context) {
  const std::string image(cubin);
  context.make_current();
  context.check(context.driver().module_load(&handle_, image.data()), "cuModuleLoadData");
}

CudaModule::~CudaModule() {
  context_.enter();
  context_.driver().module_unload(handle_);
}

CudaDriver::Handle CudaModule::function(const std::string& symbol, uint32_t shared_bytes, uint32_t cluster) const {
  const CudaDriver& driver = context_.driver();
  CudaDriver::Handle function = nullptr;
  context_.make_current();
  context_.check(driver.module_function(&function, handle_, symbol.c_str()), "cuModuleGetFunction");
  if (shared_bytes > 0) {
    context_.check(driver.function_attribute(function, kMaxDynamicShared, static_cast<int>(shared_bytes)),
                   "cuFuncSetAttribute");
  }
  if (cluster > kPortableCluster) {
    context_.check(driver.function_attribute(function, kNonPortableClusters, 1), "cuFuncSetAttribute");
  }
  return function;
}

}  // namespace heddle::runtime
