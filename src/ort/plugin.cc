#include "ort/plugin.h"

#include <memory>
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
    OrtEpFactory::release_ep = [](OrtEpFactory*, OrtEp* ep) { delete static_cast<Provider*>(ep); };
    OrtEpFactory::get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
    OrtEpFactory::get_version = [](const OrtEpFactory*) { return heddle::version(); };
    OrtEpFactory::validate_compatibility_info = validate_compatibility_info;
    // ONNX Runtime calls these for each provider. On a CPU its own allocators serve.
    OrtEpFactory::create_allocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                        OrtAllocator** allocator) {
      *allocator = nullptr;
      return static_cast<OrtStatus*>(nullptr);
    };
    OrtEpFactory::release_allocator = [](OrtEpFactory*, OrtAllocator*) {};
    OrtEpFactory::create_data_transfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) {
      *transfer = nullptr;
      return static_cast<OrtStatus*>(nullptr);
    };
    OrtEpFactory::is_stream_aware = [](const OrtEpFactory*) { return false; };
    set_log_sink([this, logger](LogLevel level, std::string_view message) {
      runtime_.log(logger, severity_of(level), std::string(message));
    });
  }
  ~Factory() { set_log_sink({}); }
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

 private:
  static OrtStatus* get_supported_devices(OrtEpFactory* self, const OrtHardwareDevice* const* hardware, size_t count,
                                          OrtEpDevice** devices, size_t most, size_t* found) {
    const Runtime& runtime = static_cast<Factory*>(self)->runtime_;
    *found = 0;
    return runtime.guarded([&] {
      for (size_t i = 0; i < count && *found < most; ++i) {
        if (runtime.api()(api::kHardwareDeviceType, hardware[i]) != HardwareType::kCpu) continue;
        runtime.check(runtime.ep_api()(ep_api::kCreateEpDevice, self, hardware[i], nullptr, nullptr, &devices[*found]));
        ++*found;
      }
    });
  }

  static OrtStatus* create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                              size_t, const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** ep) {
    const Runtime& runtime = static_cast<Factory*>(self)->runtime_;
    return runtime.guarded([&] { *ep = new Provider(runtime, read_options(runtime, session), logger); });
  }

  static OrtStatus* validate_compatibility_info(OrtEpFactory* self, const OrtHardwareDevice* const*, size_t,
                                                const char* info, Compatibility* result) {
    return static_cast<Factory*>(self)->runtime_.guarded(
        [&] { *result = is_compatible(info) ? Compatibility::kOptimal : Compatibility::kUnsupported; });
  }

  Runtime runtime_;
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
  delete static_cast<heddle::ort::Factory*>(factory);
  return nullptr;
}
