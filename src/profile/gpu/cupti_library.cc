#include "profile/gpu/cupti_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "target/cuda_driver.h"

namespace heddle::profile::cupti {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kOldestVersion = 18;  // 11.8
constexpr const char* kWhere = "GPU profiling";
constexpr const char* kRemedy =
    "Install NVIDIA's CUPTI (it is part of the CUDA toolkit; or `pip install nvidia-cuda-cupti`) and name the library "
    "in HEDDLE_CUPTI unless it is in a usual place";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Folders of Python packages that this process uses: those that something is loaded from, then those of the
// environment.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  };
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t begin = line.find('/');
    for (const char* name : {"/site-packages/", "/dist-packages/"}) {
      const size_t end = line.find(name);
      if (begin != std::string::npos && end != std::string::npos) add(line.substr(begin, end + 14 - begin));
    }
  }
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    std::error_code none;
    const std::string root = variable(prefix);
    if (root.empty()) continue;
    for (const auto& entry : fs::directory_iterator(root + "/lib", none)) {
      if (entry.path().filename().string().starts_with("python3")) add((entry.path() / "site-packages").string());
    }
  }
  return folders;
}

// Files that may be the library, for a driver of CUDA `major` (0: unknown), which refuses later ones.
std::vector<std::string> candidates(int major) {
  std::vector<std::string> folders;
  for (const std::string& packages : package_folders()) {
    folders.push_back(packages + "/nvidia/cu13/lib");
    folders.push_back(packages + "/nvidia/cuda_cupti/lib");
  }
  std::vector<std::string> toolkits;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = variable(name); !root.empty()) toolkits.push_back(root);
  }
  toolkits.push_back("/usr/local/cuda");
  std::error_code none;
  std::vector<std::string> numbered;
  for (const auto& entry : fs::directory_iterator("/usr/local", none)) {
    if (entry.path().filename().string().starts_with("cuda-")) numbered.push_back(entry.path().string());
  }
  std::sort(numbered.rbegin(), numbered.rend());
  toolkits.insert(toolkits.end(), numbered.begin(), numbered.end());
  for (const std::string& root : toolkits) {
    folders.push_back(root + "/lib64");
    folders.push_back(root + "/extras/CUPTI/lib64");
  }
  folders.emplace_back();  // what the system's loader finds
  std::vector<std::string> files;
  for (const int version : {13, 12}) {
    if (major != 0 && version > major) continue;
    for (const std::string& folder : folders) {
      const std::string name = fmt::format("libcupti.so.{}", version);
      const std::string file = folder.empty() ? name : folder + "/" + name;
      if (folder.empty() || fs::exists(file, none)) files.push_back(file);
    }
  }
  return files;
}

struct Opened {
  void* handle = nullptr;
  std::string path;
};

[[noreturn]] void refuse(std::string why, std::string remedy = kRemedy) {
  fail(ErrorCode::kDevice, kWhere, std::move(why), std::move(remedy));
}

// The version of CUDA that the driver is for. The driver may be in the middle of cuInit, in which it loads tools: it is
// not initialised here.
int driver_major() {
  const std::string named = variable("HEDDLE_CUDA_DRIVER");
  void* const driver = ::dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) refuse("there is no NVIDIA driver", "GPU profiling needs an NVIDIA GPU with its driver");
  if (::dlsym(driver, kCudaEmulatorSymbol) != nullptr) {
    refuse("the CUDA driver is Heddle's emulator, which CUPTI knows nothing of",
           "Name the stand-in libheddle_cupti_emulator.so in HEDDLE_CUPTI");
  }
  int version = 0;
  const auto driver_version = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDriverGetVersion"));
  if (driver_version != nullptr) driver_version(&version);
  return version / 1000;
}

// A second copy in one process would share the driver's hooks with the first, which neither survives. Without a driver
// CUPTI crashes at its first call (13.2), also where PyTorch has loaded it.
Opened open() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      driver_major();
      return {handle, name};
    }
  }
  if (const std::string named = variable("HEDDLE_CUPTI"); !named.empty()) {
    if (void* handle = ::dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, named};
    refuse(fmt::format("HEDDLE_CUPTI names {}, which cannot be loaded: {}", named, ::dlerror()),
           "Correct the path, or unset HEDDLE_CUPTI to look in the usual places");
  }
  const int major = driver_major();
  std::string broken;
  for (const std::string& file : candidates(major)) {
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, file};
    if (file.find('/') != std::string::npos) broken = ::dlerror();
  }
  refuse(broken.empty() ? "CUPTI was not found: neither libcupti.so.13 nor libcupti.so.12 is in a Python package "
                          "(nvidia/cu13/lib, nvidia/cuda_cupti/lib), a CUDA toolkit or the loader's path"
                        : "CUPTI cannot be loaded: " + broken);
}

std::unique_ptr<const Library> load() {
  const Opened opened = open();
  auto loaded = std::make_unique<Library>();
  Library& l = *loaded;
  l.path = opened.path;
  std::string missing;
  const auto need = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(opened.handle, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  need("cuptiGetVersion", l.version);
  need("cuptiGetResultString", l.error_text);
  need("cuptiSubscribe", l.subscribe);
  need("cuptiUnsubscribe", l.unsubscribe);
  need("cuptiEnableCallback", l.enable_callback);
  need("cuptiActivityRegisterCallbacks", l.register_buffers);
  need("cuptiActivityEnable", l.enable);
  need("cuptiActivityDisable", l.disable);
  need("cuptiActivityGetNextRecord", l.next_record);
  need("cuptiActivityFlushAll", l.flush);
  need("cuptiActivityGetNumDroppedRecords", l.dropped);
  need("cuptiGetGraphNodeId", l.graph_node_id);
  need("cuptiGetGraphId", l.graph_id);
  if (!missing.empty()) refuse(fmt::format("{} has no {}: it is too old, or no CUPTI", l.path, missing));
  // Later additions, which do without.
  const auto may = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(opened.handle, name));
  };
  may("cuptiSubscribe_v2", l.subscribe_named);
  may("cuptiGetGraphExecId", l.executable_id);
  may("cuptiPCSamplingEnable", l.sampling_enable);
  may("cuptiPCSamplingDisable", l.sampling_disable);
  may("cuptiPCSamplingStart", l.sampling_start);
  may("cuptiPCSamplingStop", l.sampling_stop);
  may("cuptiPCSamplingSetConfigurationAttribute", l.sampling_configure);
  may("cuptiPCSamplingGetData", l.sampling_read);
  may("cuptiPCSamplingGetNumStallReasons", l.count_stalls);
  may("cuptiPCSamplingGetStallReasons", l.name_stalls);
  if (const Result result = l.version(&l.number); result != kSuccess || l.number < kOldestVersion) {
    refuse(fmt::format("{} is CUPTI {}: 11.8 or later is needed", l.path, l.number));
  }
  return loaded;
}

}  // namespace

const Library& library() {
  static std::mutex mutex;
  static std::unique_ptr<const Library> loaded;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) loaded = load();
  return *loaded;
}

void refuse(const Library& library, Result result, const char* call) {
  const char* text = nullptr;
  if (library.error_text(result, &text) != kSuccess || text == nullptr) text = "unknown";
  std::string why = fmt::format("{} of {} failed with {} ({})", call, library.path, result, text);
  std::string remedy = "Look the error up in CUPTI's documentation";
  if (result == kUnknownError || result == kNotInitialised) {
    why += ": there is no NVIDIA driver or no GPU, or the driver is older than this CUPTI";
    remedy = "Check that `nvidia-smi` lists the GPU, and name a CUPTI of its CUDA version in HEDDLE_CUPTI";
  } else if (result == kInsufficientPrivileges || result == kVirtualNoPrivileges) {
    why += ": this user may not profile the GPU";
    remedy =
        "Ask the administrator for the option NVreg_RestrictProfilingToAdminUsers=0 of the module nvidia, run as "
        "root, or give the container the capability SYS_ADMIN";
  }
  fail(ErrorCode::kDevice, kWhere, std::move(why), std::move(remedy));
}

}  // namespace heddle::profile::cupti
