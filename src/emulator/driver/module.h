#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tile/arch/emulated/abi.h"

namespace heddle::emulator {

class Module;

struct Kernel {
  std::string name;
  const emulated::KernelInfo* info = nullptr;
  Module* module = nullptr;
  int most_shared = 48 << 10;  // limit of dynamic shared memory per launch, in bytes
};

// A shared object compiled from a unit of CUDA C++ (tile/arch/emulated/abi.h).
class Module {
 public:
  // Loads a module. Returns null, with the reason in `why`, if `image` is not such an object.
  static std::unique_ptr<Module> load(const void* image, std::string* why);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Finds a kernel by name; null if the module has none of that name. The result lives as long as the module.
  Kernel* find(const std::string& name);

  const emulated::ModuleInfo& info() const { return *info_; }
  // The variables in which the unit stores the address of its dynamic shared memory: one for each name under which the
  // unit declares that memory.
  const std::vector<uint8_t**>& shared_slots() const { return shared_slots_; }

 private:
  Module() = default;
  bool find_shared_slots(std::string* why);

  void* handle_ = nullptr;
  int descriptor_ = -1;
  const emulated::ModuleInfo* info_ = nullptr;
  std::vector<uint8_t**> shared_slots_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace heddle::emulator
