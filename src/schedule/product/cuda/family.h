#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/kernel_plan.h"
#include "schedule/product/contraction.h"
#include "target/target.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

// The time of a kernel whose parts, `us` each, overlap: that of the longest where the others are short, more where they
// are about as long and take bandwidth from each other.
double overlapped_us(std::initializer_list<double> us);

// Whether neighbours of a row of D lie apart in memory, in the first result that is stored.
bool stores_apart(const Epilogue& epilogue);

// A product on a GPU with what surrounds it: all that families and code generation look at.
struct ProductTask {
  const Product& product;
  const Epilogue& epilogue;
  const std::vector<Operand>& operands;  // of the kernel

  // Pairs of B's columns make one of D (Epilogue::Gate).
  bool gated() const { return epilogue.gate.has_value(); }
  int64_t columns() const { return gated() ? product.n / 2 : product.n; }  // of D
  // Operands that the driver supplies: partial sums and copies; counters.
  int workspace() const { return static_cast<int>(operands.size()); }
  int counters() const { return workspace() + 1; }
};

// Bytes of the matrices that the epilogue reads, for each element of D.
int epilogue_read_bytes(const ProductTask& task);

// An operand in the text of a problem (Problem::text).
std::string view_text(const OperandView& operand);

// A way to run a product, or why it cannot run that way.
struct CudaCandidate {
  Config config;
  std::string rejected = {};  // empty: it can
  int64_t additions = 0;      // to one sum, one after the other
};
// The fastest first, those that cannot run last.
void sort_by_prediction(std::vector<CudaCandidate>& candidates);

// The text of a configuration's kernels, as data: `kernel`<Config>(parameters..., epilogue), Config with the members
// below, and the kernels beside it.
struct CudaInstance {
  // A type that Config names.
  struct Type {
    const char* name;  // "In"
    DType type;
    bool operand = true;  // it is multiplied, else stored
  };
  enum class Parameter : uint8_t { kMap, kMapOfClasses, kNoMap, kMapBehind, kBlock, kOperand };
  struct Argument {
    Parameter kind;
    std::string_view name;       // "a", "args"
    std::string_view type = {};  // of a block: "GemmArgs"
    int count = 1;               // maps of classes
  };
  struct Helper {
    std::string_view suffix, function, arguments, header;  // "_repack", "gemm_repack", "GemmRepackArgs", its header
    bool waits = false;                                    // by itself for the launch in front
  };

  std::vector<std::string_view> headers;       // in tile/kernel/cuda
  std::string_view kernel;                     // "cuda::gemm_simt"
  std::string_view defaults;                   // what Config inherits: "sm90::GemmDefaults"; empty: nothing
  std::string_view traits;                     // "sm90::GemmTraits", which knows the threads; empty: `threads`
  int threads = 0, resident = 1, cluster = 1;  // resident: blocks of an SM that the compiler allows; 0: `traits` says
  int tile_m = 0, tile_n = 0;                  // for its name
  bool swapped = false;                        // the kernel's A is B
  bool split_f32 = false;                      // f32 is multiplied in two parts of tf32
  DType sum = DType::kF32;
  std::vector<Type> types;
  std::vector<std::vector<std::pair<const char*, int64_t>>> sizes;  // {{"kTileM", 128}, ...}, a line each
  std::vector<std::pair<const char*, bool>> flags;                  // those that differ from the defaults
  std::optional<tile::GemmStore> store;                             // the same
  std::vector<Argument> arguments;                                  // without the epilogue
  bool multiplies = true;                                           // else there is only the sum over nothing
  bool partial = false;                                             // sums of parts of k leave for a second kernel
  bool returned = false;                                            // the first result comes back from the epilogue
  bool b_passes_once = false;                                       // B is not to stay in the cache
  std::optional<uint32_t> residual;  // the operand that the kernel itself loads for the epilogue
  std::vector<Helper> helpers;
};

// Which operands say where their lines lie in memory: those whose lines begin at any element, for kernels that shift
// them; or all.
enum class LinesOf : uint8_t { kNone, kShifted, kAll };

// A family of kernels for products: all that the schedule and code generation ask of it.
// docs/howto/add-a-gemm-family.md shows how to add one.
class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;  // as of its configurations
  virtual bool uses_wgmma() const { return false; }
  virtual LinesOf lines() const { return LinesOf::kNone; }
  // Why it has no kernel for a product on a device; empty: it may have.
  virtual std::string refuse(const ProductTask& task, const CudaTarget& target) const = 0;
  // The configurations worth trying.
  virtual std::vector<CudaCandidate> candidates(const ProductTask& task, const CudaTarget& target) const = 0;
  // The kernels of one product, "gemm" and what comes before ("gemm_repack", "gemm_copies") and behind it
  // ("gemm_reduce"). Code generation adds the blocks of generated operands to the launch of "gemm" and that of the
  // epilogue, which comes last, to the last launch. Nothing is launched where D is empty.
  virtual KernelLaunches launches(const ProductTask& task, const Config& config, const CudaTarget& target) const = 0;
  virtual CudaInstance instance(const ProductTask& task, const Config& config) const = 0;
};

// All of them, and the one that a configuration is of.
std::span<const Family* const> cuda_families();
const Family& cuda_family_of(const Config& config);

}  // namespace heddle::schedule
