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
  int most_shared = 48 << 10;  // dynamic shared memory that a launch may ask for
};

// A shared object made of a unit of CUDA C++ (tile/arch/emulated/abi.h).
class Module {
 public:
  // Null, with the reason in `why`, where the bytes are none.
  static std::unique_ptr<Module> load(const void* image, std::string* why);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Null where there is no such kernel. Lives as long as the module.
  Kernel* find(const std::string& name);

  const emulated::ModuleInfo& info() const { return *info_; }
  // Where the unit keeps the address of its dynamic shared memory, one place per name that it has for it.
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
