#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// What a number follows on a chip where nobody measured it: its clock, the bandwidth of its memory, what its L2 gives
// all SMs together, what one SM's tensor cores multiply in a cycle, or what those of the whole chip do in a second.
// Latencies and what one SM moves in a cycle stay as they are.
enum class ScalesWith : uint8_t { kFixed, kClock, kMemory, kL2, kTensor, kChip };

// The measured numbers that the cost models of the GPU's kernels read (cuda_model.def). Instruction counts are the
// kernels' own and stand beside the formulas that use them.
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

// What the makers say of a chip. Ratios of these scale the numbers of one chip to another.
struct ChipFacts {
  double sms = 0;
  double boost_ghz = 0;
  double memory_tbps = 0;
  double tensor_per_cycle = 0;  // multiply-adds of 16-bit operands of one SM by its fastest instruction
};

// What calibration measures of a chip, each by one small kernel (driver/tune/calibrate_cuda.h). The fitted numbers of a
// model follow the ratio of two calibrations; what a small kernel reaches on its own is no number of a cost model.
struct CudaRates {
  double clock_ghz = 0;      // SMs under arithmetic load
  double memory_tbps = 0;    // copied, read and written together
  double l2_tbps = 0;        // all SMs read what the L2 holds
  double tensor_tflops = 0;  // f16 products by the fastest instruction, as power and clock allow
  double boundary_us = 0;    // from kernel to kernel of a CUDA graph
};

// `measured`, of the chip `from`, for a chip `to`. Facts that are 0 are unknown: as `from` has them.
CudaModel scaled(const CudaModel& measured, const ChipFacts& from, const ChipFacts& to);

// Of the chips that have a file in target/models. `architecture` is the compute capability times ten.
struct KnownChip {
  std::string_view name;  // as the driver spells it, or the beginning of that
  int architecture = 0;
  ChipFacts facts;
  CudaModel model;
  CudaRates rates;
};
// A chip that nobody measured: the H200's numbers, scaled.
KnownChip scaled_from_h200(std::string_view name, int architecture, const ChipFacts& facts);

// Each file models/NAME.cc defines the chip NAME().
#define HEDDLE_CHIP(name) const KnownChip& name();
#include "target/models/chips.inc"  // made by CMake from the files
#undef HEDDLE_CHIP

// The chip with a file whose name begins `name`, else the one of the nearest architecture.
const KnownChip& nearest_chip(std::string_view name, int architecture);

// The model of a device by its driver's name: of the nearest chip, scaled by `facts` (0 where a fact is unknown).
CudaModel model_of(std::string_view name, int architecture, const ChipFacts& facts);

// The model of a device that was calibrated. Rates that are 0 are as the nearest chip has them.
CudaModel calibrated_model(std::string_view name, int architecture, double sms, const CudaRates& rates);

// Short text that differs where any number does.
std::string fingerprint(const CudaModel& model);

}  // namespace heddle
