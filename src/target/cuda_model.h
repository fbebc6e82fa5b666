#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// The rate with which a number scales on a chip where nobody measured it: its clock, its memory bandwidth, the L2
// bandwidth of all SMs together, the tensor throughput of one SM per cycle, or that of the whole chip per second.
// Latencies and the bytes that one SM moves in a cycle are not scaled.
enum class ScalesWith : uint8_t { kFixed, kClock, kMemory, kL2, kTensor, kChip };

// The measured numbers that the cost models of GPU kernels read (cuda_model.def). Instruction counts belong to the
// kernels and stand beside the formulas that use them.
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

// A chip's figures as its maker publishes them. Ratios of them scale the numbers of one chip to another.
struct ChipFacts {
  double sms = 0;
  double boost_ghz = 0;
  double memory_tbps = 0;
  double tensor_per_cycle = 0;  // multiply-adds of 16-bit operands of one SM by its fastest instruction
};

// Rates that calibration measures on a chip, each by one small kernel (driver/tune/calibrate_cuda.h). A model's fitted
// numbers are scaled by the ratio of two calibrations. The cost model does not use the rates themselves, since they are
// those of small kernels.
struct CudaRates {
  double clock_ghz = 0;      // SMs under arithmetic load
  double memory_tbps = 0;    // copied, read and written together
  double l2_tbps = 0;        // all SMs read data that is in the L2
  double tensor_tflops = 0;  // f16 products by the fastest instruction, as power and clock allow
  double boundary_us = 0;    // from one kernel of a CUDA graph to the next
};

// Scales `measured`, the model of the chip `from`, to the chip `to`. Facts that are 0 are unknown and taken from
// `from`.
CudaModel scaled(const CudaModel& measured, const ChipFacts& from, const ChipFacts& to);

// A chip with a file in target/models. `architecture` is the compute capability times ten.
struct KnownChip {
  std::string_view name;  // as the driver spells it, or a prefix of that
  int architecture = 0;
  ChipFacts facts;
  CudaModel model;
  CudaRates rates;
};
// A chip that nobody measured, with the H200's numbers, scaled.
KnownChip scaled_from_h200(std::string_view name, int architecture, const ChipFacts& facts);

// Each file models/NAME.cc defines the chip NAME().
#define HEDDLE_CHIP(name) const KnownChip& name();
#include "target/models/chips.inc"  // made by CMake from the files
#undef HEDDLE_CHIP

// Among the chips with a file, the one whose name is a prefix of `name`, else the one of the nearest architecture.
const KnownChip& nearest_chip(std::string_view name, int architecture);

// The model of a device by its driver's name: that of the nearest chip, scaled by `facts` (0 if unknown).
CudaModel model_of(std::string_view name, int architecture, const ChipFacts& facts);

// The model of a calibrated device. Rates that are 0 are taken from the nearest chip.
CudaModel calibrated_model(std::string_view name, int architecture, double sms, const CudaRates& rates);

// A short text that differs if any number differs.
std::string fingerprint(const CudaModel& model);

}  // namespace heddle
