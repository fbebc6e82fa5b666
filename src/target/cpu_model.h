#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// Vector instruction sets in ascending order; code for one runs on every later one.
enum class CpuIsa : uint8_t { kPortable, kAvx2, kAvx512 };

// The measured numbers that the cost models of CPU kernels use. The clock rate, the memory bandwidth and the time of a
// barrier, which calibration measures, are in CpuTarget.
struct CpuModel {
#define HEDDLE_NUMBER(name) double name = 0;
#include "target/cpu_model.def"
#undef HEDDLE_NUMBER
};

// Calls visit(name, value) for every number, in the order of cpu_model.def.
template <typename Model, typename F>
void for_each_cpu_number(Model& model, F&& visit) {
#define HEDDLE_NUMBER(name) visit(std::string_view(#name), model.name);
#include "target/cpu_model.def"
#undef HEDDLE_NUMBER
}

// A machine with a file in target/models/cpu. Its numbers are used for `isa` and wider instruction sets.
struct KnownCpu {
  std::string_view name;
  CpuIsa isa = CpuIsa::kPortable;
  CpuModel model;
};

// Each file models/cpu/NAME.cc defines the machine NAME_cpu().
#define HEDDLE_CPU(name) const KnownCpu& name##_cpu();
#include "target/models/cpus.inc"  // made by CMake from the files
#undef HEDDLE_CPU

// Returns the model in models/cpu for a machine with instruction set `isa`: the model with the widest instruction set
// that the machine supports, or, if it supports none of them, the model with the narrowest.
const CpuModel& model_of(CpuIsa isa);

// A short text that differs if any number differs.
std::string fingerprint(const CpuModel& model);

}  // namespace heddle
