#include "ort/gpu.h"

#include "base/check.h"

namespace heddle::ort {
namespace {

using runtime::CudaContext;
using runtime::CudaStream;

constexpr size_t kDeviceAlignment = 256;

// Blocks of similar sizes replace each other.
size_t rounded(size_t bytes) {
  constexpr size_t kSmall = size_t{1} << 20;
  const size_t unit = bytes <= kSmall ? size_t{512} : kSmall;
  return (bytes + unit - 1) / unit * unit;
}

// The driver's stream. Null for a stream of another provider, or of none.
CudaDriver::Handle handle_of(const Runtime& runtime, const OrtSyncStream* stream) {
  const auto* const impl = stream == nullptr ? nullptr : runtime.ep_api()(ep_api::kSyncStreamGetImpl, stream);
  return impl == nullptr ? nullptr : impl->get_handle(const_cast<OrtSyncStreamImpl*>(impl));
}

bool is_gpu(const Runtime& runtime, const OrtMemoryDevice* device) {
  const Table& api = runtime.ep_api();
  return api(ep_api::kMemoryDeviceGetDeviceType, device) == MemoryType::kGpu &&
         api(ep_api::kMemoryDeviceGetVendorId, device) == kNvidia;
}

class Event : public OrtSyncNotificationImpl {
 public:
  Event(const Runtime& runtime, const CudaContext& context, CudaDriver::Handle stream)
      : runtime_(runtime), context_(context), stream_(stream) {
    constexpr unsigned kNoTiming = 2;
    OrtSyncNotificationImpl::release = [](OrtSyncNotificationImpl* self) { delete static_cast<Event*>(self); };
    OrtSyncNotificationImpl::activate = [](OrtSyncNotificationImpl* self) {
      return of(self).run(
          [&](Event& e) { e.context_.check(e.driver().event_record(e.event_, e.stream_), "cuEventRecord"); });
    };
    OrtSyncNotificationImpl::wait_on_device = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) {
      return of(self).run([&](Event& e) {
        CudaDriver::Handle const stream = handle_of(e.runtime_, consumer);
        if (stream == nullptr) {
          e.context_.check(e.driver().event_synchronize(e.event_), "cuEventSynchronize");
        } else {
          e.context_.check(e.driver().stream_wait(stream, e.event_, 0), "cuStreamWaitEvent");
        }
      });
    };
    OrtSyncNotificationImpl::wait_on_host = [](OrtSyncNotificationImpl* self) {
      return of(self).run(
          [](Event& e) { e.context_.check(e.driver().event_synchronize(e.event_), "cuEventSynchronize"); });
    };
    context_.make_current();
    context_.check(driver().event_create(&event_, kNoTiming), "cuEventCreate");
  }
  ~Event() {
    context_.enter();
    driver().event_destroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

 private:
  static Event& of(OrtSyncNotificationImpl* self) { return *static_cast<Event*>(self); }
  const CudaDriver& driver() const { return context_.driver(); }
  template <typename Action>
  OrtStatus* run(const Action& action) {
    return runtime_.guarded([&] {
      context_.make_current();
      action(*this);
    });
  }

  const Runtime& runtime_;
  const CudaContext& context_;
  CudaDriver::Handle stream_, event_ = nullptr;
};

class Stream : public OrtSyncStreamImpl {
 public:
  Stream(const Runtime& runtime, GpuMemory& memory) : runtime_(runtime), memory_(memory), stream_(memory.context()) {
    OrtSyncStreamImpl::release = [](OrtSyncStreamImpl* self) { delete static_cast<Stream*>(self); };
    OrtSyncStreamImpl::get_handle = [](OrtSyncStreamImpl* self) { return of(self).stream_.handle(); };
    OrtSyncStreamImpl::create_notification = [](OrtSyncStreamImpl* self, OrtSyncNotificationImpl** notification) {
      Stream& stream = of(self);
      return stream.runtime_.guarded(
          [&] { *notification = new Event(stream.runtime_, stream.memory_.context(), stream.stream_.handle()); });
    };
    OrtSyncStreamImpl::flush = [](OrtSyncStreamImpl* self) {
      return of(self).runtime_.guarded([&] { of(self).stream_.synchronize(); });
    };
    OrtSyncStreamImpl::on_session_run_end = [](OrtSyncStreamImpl*) { return static_cast<OrtStatus*>(nullptr); };
    memory_.begin(stream_.handle());
  }
  ~Stream() { memory_.end(stream_.handle()); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

 private:
  static Stream& of(OrtSyncStreamImpl* self) { return *static_cast<Stream*>(self); }

  const Runtime& runtime_;
  GpuMemory& memory_;
  CudaStream stream_;
};

class Transfer : public OrtDataTransferImpl {
 public:
  explicit Transfer(const Runtime& runtime) : runtime_(runtime) {
    OrtDataTransferImpl::release = [](OrtDataTransferImpl* self) { delete static_cast<Transfer*>(self); };
    OrtDataTransferImpl::can_copy = [](const OrtDataTransferImpl* self, const OrtMemoryDevice* from,
                                       const OrtMemoryDevice* to) {
      const auto& transfer = *static_cast<const Transfer*>(self);
      const bool from_gpu = transfer.is_gpu(from), to_gpu = transfer.is_gpu(to);
      if (from_gpu && to_gpu) return transfer.ordinal_of(from) == transfer.ordinal_of(to);
      return (from_gpu && transfer.is_cpu(to)) || (to_gpu && transfer.is_cpu(from));
    };
    OrtDataTransferImpl::copy_tensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to,
                                           OrtSyncStream** streams, size_t count) {
      const auto& transfer = *static_cast<const Transfer*>(self);
      return transfer.runtime_.guarded([&] {
        for (size_t i = 0; i < count; ++i) transfer.copy(from[i], to[i], streams == nullptr ? nullptr : streams[i]);
      });
    };
  }

 private:
  bool is_gpu(const OrtMemoryDevice* device) const { return ort::is_gpu(runtime_, device); }
  bool is_cpu(const OrtMemoryDevice* device) const {
    return runtime_.ep_api()(ep_api::kMemoryDeviceGetDeviceType, device) == MemoryType::kCpu;
  }
  int ordinal_of(const OrtMemoryDevice* device) const {
    return static_cast<int>(runtime_.ep_api()(ep_api::kMemoryDeviceGetDeviceId, device));
  }

  // Returns when the copy is complete, unless it stays within a GPU: the session may use memory of the host again at
  // once.
  void copy(const OrtValue* from, OrtValue* to, OrtSyncStream* stream) const {
    const auto bytes = runtime_.get<size_t>(api::kGetTensorSizeInBytes, from);
    if (bytes == 0) return;
    const OrtMemoryDevice* const source = runtime_.ep_api()(ep_api::kValueGetMemoryDevice, from);
    const OrtMemoryDevice* const target = runtime_.ep_api()(ep_api::kValueGetMemoryDevice, to);
    const auto context = CudaContext::of_device(ordinal_of(is_gpu(source) ? source : target));
    const CudaDriver& driver = context->driver();
    context->make_current();
    CudaDriver::Handle const given = handle_of(runtime_, stream);
    CudaDriver::Handle const handle = given == nullptr ? context->stream() : given;
    const auto* const data = runtime_.get<const void*>(api::kGetTensorData, from);
    auto* const memory = runtime_.get<void*>(api::kGetTensorMutableData, to);
    const auto address = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
    if (!is_gpu(source)) {
      context->check(driver.copy_in_async(address(memory), data, bytes, handle), "cuMemcpyHtoDAsync");
    } else if (!is_gpu(target)) {
      context->check(driver.copy_out_async(memory, address(data), bytes, handle), "cuMemcpyDtoHAsync");
    } else {
      context->check(driver.copy_async(address(memory), address(data), bytes, handle), "cuMemcpyDtoDAsync");
    }
    const bool in_order = given != nullptr && is_gpu(source) && is_gpu(target);
    if (!in_order) context->check(driver.stream_synchronize(handle), "cuStreamSynchronize");
  }

  const Runtime& runtime_;
};

}  // namespace

GpuMemory::~GpuMemory() {
  for (auto& [stream, blocks] : free_) free(blocks);
}

void GpuMemory::begin(Stream stream) {
  const std::lock_guard lock(mutex_);
  free_.try_emplace(stream);
}

void GpuMemory::end(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = free_.find(stream);
  if (found == free_.end()) return;
  free(found->second);
  free_.erase(found);
}

void GpuMemory::synchronize() {
  std::vector<Stream> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [stream, blocks] : free_) streams.push_back(stream);
  }
  context_->make_current();
  for (Stream const stream : streams)
    context_->check(context_->driver().stream_synchronize(stream), "cuStreamSynchronize");
}

// The driver waits for all work on the memory before it frees it.
void GpuMemory::free(FreeBlocks& blocks) {
  context_->enter();
  for (const auto& [bytes, address] : blocks) context_->driver().free(address);
  blocks.clear();
}

uint64_t GpuMemory::allocate(size_t bytes) {
  context_->make_current();
  uint64_t address = 0;
  if (context_->driver().malloc(&address, bytes) == 0) return address;
  for (auto& [stream, blocks] : free_) free(blocks);
  context_->check(context_->driver().malloc(&address, bytes), "cuMemAlloc");
  return address;
}

void* GpuMemory::take(size_t bytes, Stream stream) {
  constexpr size_t kMostLarger = 2;  // times
  if (bytes == 0) return nullptr;
  bytes = rounded(bytes);
  const std::lock_guard lock(mutex_);
  const auto cache = free_.find(stream);
  uint64_t address = 0;
  if (cache != free_.end()) {
    const auto found = cache->second.lower_bound(bytes);
    if (found != cache->second.end() && found->first <= bytes * kMostLarger) {
      bytes = found->first;
      address = found->second;
      cache->second.erase(found);
    }
  }
  if (address == 0) address = allocate(bytes);
  used_[address] = {bytes, stream};
  return reinterpret_cast<void*>(address);
}

void GpuMemory::give(void* data) {
  if (data == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(reinterpret_cast<uint64_t>(data));
  if (found == used_.end()) return;
  if (found->second.holders > 0) {
    found->second.given = true;
  } else {
    reuse(found);
  }
}

void GpuMemory::copy_in(void* data, const void* from, size_t bytes, Stream stream) const {
  context_->make_current();
  context_->check(context_->driver().copy_in_async(reinterpret_cast<uint64_t>(data), from, bytes, stream),
                  "cuMemcpyHtoDAsync");
  context_->check(context_->driver().stream_synchronize(stream), "cuStreamSynchronize");
}

void GpuMemory::reuse(UsedBlocks::iterator used) {
  const auto [address, block] = *used;
  used_.erase(used);
  if (const auto cache = free_.find(block.stream); cache != free_.end()) {
    cache->second.emplace(block.bytes, address);
  } else {
    context_->enter();
    context_->driver().free(address);
  }
}

GpuMemory::UsedBlocks::iterator GpuMemory::find_used(void* data) {
  const auto address = reinterpret_cast<uint64_t>(data);
  auto found = used_.upper_bound(address);
  if (found == used_.begin()) return used_.end();
  --found;
  return address < found->first + found->second.bytes ? found : used_.end();
}

bool GpuMemory::hold(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = find_used(data);
  if (found == used_.end()) return false;
  ++found->second.holders;
  return true;
}

void GpuMemory::release(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = find_used(data);
  if (found == used_.end() || --found->second.holders > 0) return;
  if (found->second.given) reuse(found);
}

Gpu::Gpu(const Runtime& runtime, int ordinal) : runtime_(runtime), ordinal_(ordinal), memory_(ordinal) {
  const auto take = [](OrtAllocator* self, size_t bytes, GpuMemory::Stream stream) -> void* {
    void* data = nullptr;
    auto& gpu = *static_cast<Gpu*>(self);
    OrtStatus* const status = gpu.runtime_.guarded([&] { data = gpu.memory_.take(bytes, stream); });
    if (status != nullptr) gpu.runtime_.api()(api::kReleaseStatus, status);  // ONNX Runtime reports a null pointer
    return data;
  };
  static constexpr auto kTake = take;
  OrtAllocator::alloc = [](OrtAllocator* self, size_t bytes) { return kTake(self, bytes, nullptr); };
  OrtAllocator::reserve = OrtAllocator::alloc;
  OrtAllocator::free = [](OrtAllocator* self, void* data) { static_cast<Gpu*>(self)->memory_.give(data); };
  OrtAllocator::info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
    return static_cast<const Gpu*>(self)->info_;
  };
  OrtAllocator::alloc_on_stream = [](OrtAllocator* self, size_t bytes, OrtSyncStream* stream) -> void* {
    return kTake(self, bytes, handle_of(static_cast<Gpu*>(self)->runtime_, stream));
  };
  constexpr int kDefaultMemory = 0, kDeviceAllocator = 0;
  info_ = runtime.get<OrtMemoryInfo*>(api::kCreateMemoryInfo, "HeddleCuda", MemoryType::kGpu, kNvidia, ordinal,
                                      kDefaultMemory, kDeviceAlignment, kDeviceAllocator);
}

Gpu::~Gpu() {
  runtime_.api()(api::kReleaseMemoryInfo, info_);
}

std::string Gpu::target() const {
  return fmt::format("cuda:{}", ordinal_);
}

bool Gpu::has(const OrtValue* tensor) const {
  return is_gpu(runtime_, runtime_.ep_api()(ep_api::kValueGetMemoryDevice, tensor));
}

OrtSyncStreamImpl* Gpu::create_stream() {
  return new Stream(runtime_, memory_);
}

OrtDataTransferImpl* create_transfer(const Runtime& runtime) {
  return new Transfer(runtime);
}

}  // namespace heddle::ort
