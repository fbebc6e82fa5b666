#include "ort/plugin.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "heddle/version.h"
#include "ort/provider.h"

namespace heddle::ort {
namespace {

Severity severity_of(LogLevel level) {
  return level == LogLevel::kWarning ? Severity::kWarning
         : level == LogLevel::kInfo  ? Severity::kInfo
                                     : Severity::kVerbose;
}

// The provider, as registered in a process.
class Factory : public OrtEpFactory {
 public:
  Factory(const OrtApiBase& base, const OrtLogger* logger) : runtime_(base) {
    OrtEpFactory::get_name = [](const OrtEpFactory*) { return kName; };
    OrtEpFactory::get_vendor = [](const OrtEpFactory*) { return "Heddle"; };
    OrtEpFactory::get_supported_devices = get_supported_devices;
    OrtEpFactory::create_ep = create_ep;
    OrtEpFactory::release_ep = [](OrtEpFactory* self, OrtEp* ep) {
      delete static_cast<Provider*>(ep);
      of(self).release();
    };
    OrtEpFactory::get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
    OrtEpFactory::get_version = [](const OrtEpFactory*) { return heddle::version(); };
    OrtEpFactory::validate_compatibility_info = validate_compatibility_info;
    // ONNX Runtime calls these for each provider. On a CPU its own allocators serve.
    OrtEpFactory::create_allocator = create_allocator;
    OrtEpFactory::release_allocator = [](OrtEpFactory*, OrtAllocator*) {};  // those of GPUs live as long as the factory
    OrtEpFactory::create_data_transfer = [](OrtEpFactory* self, OrtDataTransferImpl** transfer) {
      return of(self).runtime_.guarded(
          [&] { *transfer = of(self).gpus_.empty() ? nullptr : create_transfer(of(self).runtime_); });
    };
    OrtEpFactory::is_stream_aware = [](const OrtEpFactory* self) {
      return !static_cast<const Factory*>(self)->gpus_.empty();
    };
    OrtEpFactory::create_stream = create_stream;
    for (const CudaDevice& device : cuda_devices()) gpus_.push_back(std::make_unique<Gpu>(runtime_, device.ordinal));
    set_log_sink([this, logger](LogLevel level, std::string_view message) {
      runtime_.log(logger, severity_of(level), std::string(message));
    });
  }
  // A program may unregister the library before it closes the sessions that use it.
  void release() {
    if (--users_ == 0) delete this;
  }

 private:
  ~Factory() {
    set_log_sink({});
    for (OrtHardwareDevice* const device : made_) runtime_.ep_api()(ep_api::kReleaseHardwareDevice, device);
  }
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

  static Factory& of(OrtEpFactory* self) { return *static_cast<Factory*>(self); }

  // Devices in the order in which ONNX Runtime asks for them.
  struct Devices {
    OrtEpDevice** list;
    size_t most;
    size_t* count;
  };

  static OrtStatus* get_supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* hardware, size_t count,
                                          OrtEpDevice** devices, size_t most, size_t* found) {
    *found = 0;
    return of(self).runtime_.guarded([&] { of(self).find_devices({hardware, count}, {devices, most, found}); });
  }

  // GPUs that ONNX Runtime does not see (in containers without /sys, or emulated ones) are added.
  void find_devices(std::span<const OrtHardwareDevice* const> hardware, const Devices& devices) {
    size_t gpus = 0;
    for (const OrtHardwareDevice* const device : hardware) {
      const HardwareType type = runtime_.api()(api::kHardwareDeviceType, device);
      if (type == HardwareType::kCpu) {
        add(device, nullptr, devices);
      } else if (type == HardwareType::kGpu && gpus < gpus_.size() &&
                 runtime_.api()(api::kHardwareDeviceVendorId, device) == kNvidia) {
        add(device, gpus_[gpus++].get(), devices);
      }
    }
    for (; gpus < gpus_.size(); ++gpus) {
      OrtHardwareDevice* device = nullptr;
      runtime_.check(runtime_.ep_api()(ep_api::kCreateHardwareDevice, HardwareType::kGpu, kNvidia,
                                       static_cast<uint32_t>(gpus), "NVIDIA", nullptr, &device));
      made_.push_back(device);
      add(device, gpus_[gpus].get(), devices);
    }
  }

  void add(const OrtHardwareDevice* hardware, const Gpu* gpu, const Devices& devices) {
    if (*devices.count == devices.most) return;
    OrtKeyValuePairs* metadata = nullptr;
    runtime_.api()(api::kCreateKeyValuePairs, &metadata);
    const std::shared_ptr<OrtKeyValuePairs> owner(
        metadata, [&](OrtKeyValuePairs* pairs) { runtime_.api()(api::kReleaseKeyValuePairs, pairs); });
    runtime_.api()(api::kAddKeyValuePair, metadata, kTargetKey, gpu == nullptr ? "cpu" : gpu->target().c_str());
    OrtEpDevice*& device = devices.list[*devices.count];
    runtime_.check(runtime_.ep_api()(ep_api::kCreateEpDevice, this, hardware, metadata, nullptr, &device));
    ++*devices.count;
    if (gpu != nullptr) runtime_.check(runtime_.ep_api()(ep_api::kAddAllocatorInfo, device, gpu->memory_info()));
  }

  static OrtStatus* create_allocator(OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                                     OrtAllocator** allocator) {
    return of(self).runtime_.guarded([&] {
      const OrtMemoryDevice* const device =
          info == nullptr ? nullptr : of(self).runtime_.ep_api()(ep_api::kMemoryInfoGetMemoryDevice, info);
      *allocator = device == nullptr ? nullptr : of(self).find_gpu(device);
    });
  }

  static OrtStatus* create_stream(OrtEpFactory* self, const OrtMemoryDevice* device, const OrtKeyValuePairs*,
                                  OrtSyncStreamImpl** stream) {
    return of(self).runtime_.guarded([&] {
      Gpu* const gpu = of(self).find_gpu(device);
      *stream = gpu == nullptr ? nullptr : gpu->create_stream();
    });
  }

  // Null for memory of the host.
  Gpu* find_gpu(const OrtMemoryDevice* device) const {
    const Table& api = runtime_.ep_api();
    if (api(ep_api::kMemoryDeviceGetDeviceType, device) != MemoryType::kGpu) return nullptr;
    return find_gpu(fmt::format("cuda:{}", api(ep_api::kMemoryDeviceGetDeviceId, device)));
  }

  Gpu* find_gpu(const std::string& target) const {
    const auto found =
        std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& gpu) { return gpu->target() == target; });
    return found == gpus_.end() ? nullptr : found->get();
  }

  // A session that is given several devices runs on the first GPU.
  static OrtStatus* create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*,
                              const OrtKeyValuePairs* const* metadata, size_t count, const OrtSessionOptions* session,
                              const OrtLogger* logger, OrtEp** ep) {
    const Runtime& runtime = of(self).runtime_;
    return runtime.guarded([&] {
      Gpu* gpu = nullptr;
      for (size_t i = 0; i < count && gpu == nullptr; ++i) {
        const char* const target = runtime.api()(api::kGetKeyValue, metadata[i], kTargetKey);
        gpu = target == nullptr ? nullptr : of(self).find_gpu(std::string(target));
      }
      Options options = read_options(runtime, session, gpu == nullptr ? "cpu" : gpu->target());
      if (options.captures_graphs) runtime.require(kGraphsAbi, fmt::format("the option graph_capture of {}", kName));
      *ep = new Provider(runtime, std::move(options), logger, gpu);
      ++of(self).users_;
    });
  }

  static OrtStatus* validate_compatibility_info(OrtEpFactory* self, const OrtHardwareDevice* const*, size_t,
                                                const char* info, Compatibility* result) {
    return static_cast<Factory*>(self)->runtime_.guarded(
        [&] { *result = is_compatible(info) ? Compatibility::kOptimal : Compatibility::kUnsupported; });
  }

  static constexpr const char* kTargetKey = "target";  // in the metadata of a device

  Runtime runtime_;
  std::atomic<int> users_{1};  // sessions, and the registration
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<OrtHardwareDevice*> made_;
};

// Before there is a Runtime.
OrtStatus* status_of(const OrtApiBase& base, const char* message) {
  return Table(base.get_api(1))(api::kCreateStatus, StatusCode::kEpFail, message);
}

}  // namespace
}  // namespace heddle::ort

heddle::ort::OrtStatus* CreateEpFactories(const char*, const heddle::ort::OrtApiBase* base,
                                          const heddle::ort::OrtLogger* logger, heddle::ort::OrtEpFactory** factories,
                                          size_t most, size_t* count) {
  *count = 0;
  if (most == 0) return heddle::ort::status_of(*base, "there is no room for a factory");
  try {
    factories[0] = new heddle::ort::Factory(*base, logger);
    *count = 1;
    return nullptr;
  } catch (const std::exception& error) {
    return heddle::ort::status_of(*base, error.what());
  }
}

heddle::ort::OrtStatus* ReleaseEpFactory(heddle::ort::OrtEpFactory* factory) {
  static_cast<heddle::ort::Factory*>(factory)->release();
  return nullptr;
}
