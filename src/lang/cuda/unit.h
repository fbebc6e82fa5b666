#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen.h"
#include "lang/ir/kernel.h"
#include "lang/program/program.h"
#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle::lang::cuda {

// A sum of products of parameters, each with its factor. Parameters are indices in the kernel's order.
using ParameterSum = std::vector<std::pair<std::vector<int>, int64_t>>;

// A matrix that TMA reads, as a launch describes it: (inner, row) and up to two dimensions of batches.
struct TensorMapRecipe {
  int base = 0;                                     // the parameter that points to it
  int64_t element = 2;                              // bytes
  std::array<std::optional<ParameterSum>, 2> size;  // of inner and row; none: not bounded
  std::vector<ParameterSum> strides;                // of row and of batches, in elements
  std::array<int64_t, 2> box{1, 1};
};

// A kernel as CUDA C++ on tile/block, and what its launch needs. Its parameters are `maps`, then those of the
// kernel.
struct CudaUnit {
  std::string text, symbol;
  std::vector<std::string> includes;  // of the text
  std::string definitions;            // the text without includes and without its alias of the library
  int64_t threads = 0;                // of a block
  int64_t shared_bytes = 0;           // dynamic
  std::vector<Type> parameters;
  std::vector<TensorMapRecipe> maps;
};

// Describes the maps of a launch, each in the buffer of its `operand`, a parameter. Nothing if no map can describe the
// arguments: sizes or strides that are too large or not positive, strides that are no multiples of 16 bytes.
std::optional<std::vector<TensorMapDesc>> describe_maps(const CudaUnit& unit, std::span<const uint64_t> arguments);

// How loads may be made. kByComputing: only by the computing threads. A warpgroup that only loads would fix the number
// of computing threads in the text, and other kernels could not share a unit with it.
enum class Loads : uint8_t { kAny, kByComputing, kWithoutTensorMaps };

// Thrown for a kernel whose tiles need more shared memory than a block has (kOutOfMemory). Sizes are in bytes.
class SharedMemoryError : public Error {
 public:
  SharedMemoryError(const std::string& kernel, int64_t required, int64_t limit);

  int64_t required() const { return required_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t required_, limit_;
};

// The unit of a verified kernel. Throws SharedMemoryError, and kUnsupportedOperator with the place of an op that no GPU
// runs.
CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target, Loads loads = Loads::kAny);

// A launch of a program as a kernel of a plan. Its operands are those of memory_of(), with sizes `bytes`. Tensor maps
// end at the ends of their operands; if one cannot, the kernel uses no maps. Throws what cuda_unit() throws, and
// kUnsupportedOperator for a grid that is too large to launch.
codegen::KernelSource cuda_launch(Kernel kernel, const Launch& launch, std::span<const int64_t> bytes,
                                  const CudaTarget& target);

}  // namespace heddle::lang::cuda
