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

// A sum of terms. Each term is a product of parameters, given by their indices in the kernel, and a constant factor.
using ParameterSum = std::vector<std::pair<std::vector<int>, int64_t>>;

// Describes a matrix that TMA reads. A launch makes the tensor map from this description. The dimensions of the matrix
// are inner, row and up to two batch dimensions.
struct TensorMapRecipe {
  int base = 0;                                     // the parameter that points to the matrix
  int64_t element = 2;                              // bytes
  std::array<std::optional<ParameterSum>, 2> size;  // of inner and row; none: unbounded
  std::vector<ParameterSum> strides;                // of row and batch dimensions, in elements
  std::array<int64_t, 2> box{1, 1};
};

// A kernel as CUDA C++ on tile/block, and the data that its launch needs. The parameters of the CUDA kernel are `maps`,
// then `parameters`.
struct CudaUnit {
  std::string text, symbol;
  std::vector<std::string> includes;  // that the text needs
  std::string definitions;            // the text without includes and without its namespace alias of the tile library
  int64_t threads = 0;                // per block
  int64_t shared_bytes = 0;           // dynamic
  std::vector<Type> parameters;
  std::vector<TensorMapRecipe> maps;
};

// Makes the tensor maps of a launch. `operand` of each map is the index of its pointer parameter. Returns nullopt if
// the arguments do not allow a map: a size or stride is too large or not positive, or a stride is not a multiple of 16
// bytes.
std::optional<std::vector<TensorMapDesc>> describe_maps(const CudaUnit& unit, std::span<const uint64_t> arguments);

// The allowed ways to load. kByComputing: only the computing threads may load. (With a separate loading warpgroup, the
// number of computing threads would be a constant in the text, so no other kernel could be in the same unit.)
// kWithoutTensorMaps: loads may not use TMA tensor maps.
enum class Loads : uint8_t { kAny, kByComputing, kWithoutTensorMaps };

// Thrown if the tiles of a kernel need more shared memory than a block has. The error code is kOutOfMemory. Sizes are
// in bytes.
class SharedMemoryError : public Error {
 public:
  SharedMemoryError(const std::string& kernel, int64_t required, int64_t limit);

  int64_t required() const { return required_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t required_, limit_;
};

// Returns the unit of a verified kernel. Throws SharedMemoryError. Throws kUnsupportedOperator, with the source
// location, for an op that no GPU supports.
CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target, Loads loads = Loads::kAny);

// Returns the plan kernel that runs a launch of a program. Its operands are those of memory_of(); `bytes` gives their
// sizes. If a tensor map would extend beyond its operand, the kernel uses no tensor maps. Throws what cuda_unit()
// throws, and kUnsupportedOperator if the grid is too large to launch.
codegen::KernelSource cuda_launch(Kernel kernel, const Launch& launch, std::span<const int64_t> bytes,
                                  const CudaTarget& target);

}  // namespace heddle::lang::cuda
