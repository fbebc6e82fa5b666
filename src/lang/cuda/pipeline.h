#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/divide.h"
#include "lang/analysis/uses.h"
#include "lang/cuda/assign.h"
#include "lang/cuda/boxes.h"
#include "lang/ir/kernel.h"

// Software pipelining: loads that feed the matrix products of a loop are copied to shared memory some iterations before
// their use.
namespace heddle::lang::cuda {

// Returns the distance in bytes between operands in shared memory. Swizzled operands start at multiples of 1024.
constexpr int64_t aligned_slot(int64_t bytes) {
  return round_up(bytes, 1024);
}

// A load that is staged in shared memory. It is stored once, even if several products read it and some of them read it
// transposed. (Rows along k for one product are then columns for another product.)
struct StagedLoad {
  struct Read {
    ValueId value;        // the load's result or its transpose, an operand of products
    std::string operand;  // block::Operand<...>
  };
  const Op* load = nullptr;
  bool by_group = false;  // warpgroup instructions (wgmma) read it
  int row_dim = 0;        // dimension of the loaded tile: the rows of a first operand, or the columns of a second
  int line_dim = 0;       // dimension along which the load is contiguous in memory
  int64_t vector = 1;     // elements per copy
  std::string operand;    // type of the stored operand: that of the first read
  std::vector<Read> reads;
  std::string element;         // type of its elements
  int64_t bytes = 0;           // of one slot
  std::optional<BoxLoad> box;  // set if TMA can perform the load
  bool shifted = false;        // the load goes to registers and is shifted into place there
};

struct Pipeline {
  std::vector<StagedLoad> loads;
  std::set<const Op*> ahead;    // ops that compute the addresses of later iterations
  std::vector<size_t> carried;  // loop-carried values that these ops need, not counting the index
  int stages = 2;
  bool by_boxes = false;      // TMA performs all loads
  bool by_registers = false;  // loads go to registers one iteration ahead
  int64_t slot_bytes() const {
    int64_t sum = 0;
    for (const StagedLoad& l : loads) sum += aligned_slot(l.bytes);
    return sum;
  }
};

// The shape of a product's operand and its layout in shared memory.
struct OperandShape {
  int64_t rows, depth;
  bool along_k;
  int64_t covered;
  bool swizzled = false;  // in the layout that warpgroup instructions (wgmma) read
};
std::string operand_type(const OperandShape& shape, const std::string& element);
int64_t operand_bytes(const OperandShape& shape, int64_t element);
int64_t covered_rows(const DotPlan& plan, int64_t rows, bool is_b);

struct PipelineLimits {
  int stages = 2;      // maximum number of slots
  int64_t bytes = 0;   // shared memory for all slots
  bool boxes = false;  // TMA may perform loads
};

// True if the elements of a load are zero where its mask is false.
bool pads_with_zero(const Uses& uses, const Op& load);

// Returns the loads of a `for` that can be copied ahead of the iterations that use them. Returns nullopt if there are
// no such loads, or if shared memory has no room for two slots. Loops that write memory are not pipelined, since a load
// must not be moved across a store.
std::optional<Pipeline> plan_pipeline(const Kernel& kernel, const Op& loop, const WindowAnalysis& windows,
                                      const std::vector<AxisFacts>& facts, const Assignment& layouts,
                                      const PipelineLimits& limits);
// Returns how to copy a load that precedes a loop. Returns nullopt unless only products in the loop's body read it.
std::optional<StagedLoad> plan_kept_load(const Kernel& kernel, const Op& loop, const Op& load,
                                         const WindowAnalysis& windows, const std::vector<AxisFacts>& facts,
                                         const Assignment& layouts);

// A matrix product in a loop whose result is only added to a loop-carried value, and the index of that value.
struct AccumulatingProduct {
  const Op* dot = nullptr;
  size_t carried = 0;
};
std::optional<AccumulatingProduct> accumulating_product(const Op& loop, const Pipeline& pipeline, const Uses& uses,
                                                        const Assignment& layouts);

}  // namespace heddle::lang::cuda
