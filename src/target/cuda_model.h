#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// The property of a chip that a number of the cost model is proportional to. It scales the number to chips on which it
// was not measured: the clock, the memory bandwidth, the L2 bandwidth of all SMs together, the tensor throughput of one
// SM per cycle, or the tensor throughput of the whole chip per second. kFixed: latencies and the bytes that one SM
// moves per cycle are not scaled.
enum class ScalesWith : uint8_t { kFixed, kClock, kMemory, kL2, kTensor, kChip };

// The measured numbers that the cost models of GPU kernels use (cuda_model.def). Instruction counts are properties of
// the kernels, and are in the code next to the formulas that use them.
struct CudaModel {
#define HEDDLE_GROUP(name) struct {
#define HEDDLE_NUMBER(name, follows) double name = 0;
#define HEDDLE_END(name) \
  }                      \
  name;
#include "target/cuda_model.def"
#undef HEDDLE_GROUP
#undef HEDDLE_NUMBER
#undef HEDDLE_END
};

// Calls visit(group, name, value, ScalesWith) for every number, in the order of cuda_model.def.
template <typename Model, typename F>
void for_each_number(Model& model, F&& visit) {
  std::string_view group;
#define HEDDLE_GROUP(name) \
  {                        \
    auto& in = model.name; \
    group = #name;
#define HEDDLE_NUMBER(name, follows) visit(group, std::string_view(#name), in.name, ScalesWith::follows);
#define HEDDLE_END(name) }
#include "target/cuda_model.def"
#undef HEDDLE_GROUP
#undef HEDDLE_NUMBER
#undef HEDDLE_END
}

// A chip's specifications as its vendor publishes them. Their ratios scale the numbers of one chip to another.
struct ChipFacts {
  double sms = 0;
  double boost_ghz = 0;
  double memory_tbps = 0;
  double tensor_per_cycle = 0;  // multiply-adds of 16-bit operands per cycle of one SM, by its fastest instruction
};

// Rates that calibration measures on a chip, each with one small kernel (driver/tune/calibrate_cuda.h). The ratios of
// two chips' rates scale the fitted numbers of a model. The cost model does not use the rates themselves, since small
// kernels do not represent real ones.
struct CudaRates {
  double clock_ghz = 0;      // of the SMs under arithmetic load
  double memory_tbps = 0;    // by a copy, reads and writes counted together
  double l2_tbps = 0;        // all SMs read data that is in the L2
  double tensor_tflops = 0;  // f16 products by the fastest instruction, limited by power and clock
  double boundary_us = 0;    // from the end of one kernel of a CUDA graph to the start of the next
};

// Scales `measured`, the model of chip `from`, to chip `to`. A fact of `to` that is 0 is unknown and taken from `from`.
CudaModel scaled(const CudaModel& measured, const ChipFacts& from, const ChipFacts& to);

// A chip that has a file in target/models. `architecture` is the compute capability times ten.
struct KnownChip {
  std::string_view name;  // the chip's name in the driver, or a prefix of that name
  int architecture = 0;
  ChipFacts facts;
  CudaModel model;
  CudaRates rates;
};
// A chip that was not measured: its numbers are those of the H200, scaled.
KnownChip scaled_from_h200(std::string_view name, int architecture, const ChipFacts& facts);

// Each file models/NAME.cc defines the chip NAME() in this list.
#define HEDDLE_CHIP(name) const KnownChip& name();
#include "target/models/chips.inc"  // made by CMake from the files
#undef HEDDLE_CHIP

// Returns the known chip whose name is a prefix of `name`. If there is none, returns the known chip of the nearest
// architecture.
const KnownChip& nearest_chip(std::string_view name, int architecture);

// The model of a device, given its name in the driver: the model of the nearest chip, scaled by `facts` (0: unknown).
CudaModel model_of(std::string_view name, int architecture, const ChipFacts& facts);

// The model of a calibrated device. A rate that is 0 is taken from the nearest chip.
CudaModel calibrated_model(std::string_view name, int architecture, double sms, const CudaRates& rates);

// A short text that changes if any number of the model changes.
std::string fingerprint(const CudaModel& model);

}  // namespace heddle
