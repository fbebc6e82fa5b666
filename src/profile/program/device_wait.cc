#include "profile/program/device_wait.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

namespace heddle::profile {
namespace {

// The driver, where the program has loaded it.
void* loaded_driver() {
  const char* named = std::getenv("HEDDLE_CUDA_DRIVER");
  return ::dlopen(named != nullptr && *named != '\0' ? named : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

template <typename Function>
Function* function_of(void* driver, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(driver, name));
}

}  // namespace

void wait_for_devices() {
  const std::unique_ptr<void, int (*)(void*)> driver(loaded_driver(), &::dlclose);
  if (driver == nullptr) return;
  const auto count_devices = function_of<int(int*)>(driver.get(), "cuDeviceGetCount");
  const auto get_state = function_of<int(int, unsigned*, int*)>(driver.get(), "cuDevicePrimaryCtxGetState");
  const auto retain = function_of<int(void**, int)>(driver.get(), "cuDevicePrimaryCtxRetain");
  const auto release = function_of<int(int)>(driver.get(), "cuDevicePrimaryCtxRelease_v2");
  const auto push = function_of<int(void*)>(driver.get(), "cuCtxPushCurrent_v2");
  const auto pop = function_of<int(void**)>(driver.get(), "cuCtxPopCurrent_v2");
  const auto wait = function_of<int()>(driver.get(), "cuCtxSynchronize");
  const bool known = count_devices != nullptr && get_state != nullptr && retain != nullptr && release != nullptr &&
                     push != nullptr && pop != nullptr && wait != nullptr;
  int count = 0;
  if (!known || count_devices(&count) != 0) return;  // also where the driver has gone already
  // CUDA numbers devices from 0; one whose context nobody made does nothing.
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int is_active = 0;
    void* context = nullptr;
    if (get_state(device, &flags, &is_active) != 0 || is_active == 0 || retain(&context, device) != 0) continue;
    if (push(context) == 0) {
      wait();
      pop(&context);
    }
    release(device);
  }
}

}  // namespace heddle::profile
