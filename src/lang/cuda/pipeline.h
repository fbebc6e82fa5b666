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

// Software pipelining: loads that feed a loop's products are copied to shared memory some iterations ahead of their
// use.
namespace heddle::lang::cuda {

// Bytes from one operand in shared memory to the next. Swizzled operands start at multiples of 1024.
constexpr int64_t aligned_slot(int64_t bytes) {
  return round_up(bytes, 1024);
}

// A load that is staged in shared memory. It is stored once even if several products read it, some of them transposed:
// rows along k for one product are columns for the other.
struct StagedLoad {
  struct Read {
    ValueId value;        // the load's result or its transpose, an operand of products
    std::string operand;  // block::Operand<...>
  };
  const Op* load = nullptr;
  bool by_group = false;  // warpgroups read it
  int row_dim = 0;        // of the loaded tile: the rows of the first operand, the columns of the second
  int line_dim = 0;       // along which it is contiguous in memory
  int64_t vector = 1;     // elements per copy
  std::string operand;    // its type when written: that of the first read
  std::vector<Read> reads;
  std::string element;         // its element type
  int64_t bytes = 0;           // of one slot
  std::optional<BoxLoad> box;  // set if TMA can make the load
  bool shifted = false;        // it is loaded into registers and shifted into place there
};

struct Pipeline {
  std::vector<StagedLoad> loads;
  std::set<const Op*> ahead;    // ops that the addresses of later trips need
  std::vector<size_t> carried;  // carried values that they need, not counting the index
  int stages = 2;
  bool by_boxes = false;      // TMA makes all loads
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
  bool swizzled = false;  // as warpgroups read it
};
std::string operand_type(const OperandShape& shape, const std::string& element);
int64_t operand_bytes(const OperandShape& shape, int64_t element);
int64_t covered_rows(const DotPlan& plan, int64_t rows, bool is_b);

struct PipelineLimits {
  int stages = 2;      // slots, at most
  int64_t bytes = 0;   // of shared memory for all of them
  bool boxes = false;  // TMA may bring loads
};

// Whether elements of a load are zero where its mask is false.
bool pads_with_zero(const Uses& uses, const Op& load);

// The loads of a `for` that can be copied ahead; nothing if there are none or two slots do not fit. Loops that write
// memory are not pipelined, since a load must not pass a store.
std::optional<Pipeline> plan_pipeline(const Kernel& kernel, const Op& loop, const WindowAnalysis& windows,
                                      const std::vector<AxisFacts>& facts, const Assignment& layouts,
                                      const PipelineLimits& limits);
// The product of a loop that only adds it to a carried value, and the index of that value.
struct AccumulatingProduct {
  const Op* dot = nullptr;
  size_t carried = 0;
};
std::optional<AccumulatingProduct> accumulating_product(const Op& loop, const Pipeline& pipeline, const Uses& uses,
                                                        const Assignment& layouts);

}  // namespace heddle::lang::cuda
