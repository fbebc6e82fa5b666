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

// The time of a kernel whose parts, `us` each, overlap: that of the longest part if the others are short, more if they
// take about as long, since they then compete for bandwidth.
double overlapped_us(std::initializer_list<double> us);

// True if neighbours in a row of D are not adjacent in memory, in the first stored result.
bool stores_apart(const Epilogue& epilogue);

// A product on a GPU with its epilogue and operands: everything that families and code generation look at.
struct ProductTask {
  const Product& product;
  const Epilogue& epilogue;
  const std::vector<Operand>& operands;  // of the kernel

  // A pair of B's columns makes one column of D (Epilogue::Gate).
  bool gated() const { return epilogue.gate.has_value(); }
  int64_t columns() const { return gated() ? product.n / 2 : product.n; }  // of D
  // Operands that the driver supplies: partial sums and copies; counters.
  int workspace() const { return static_cast<int>(operands.size()); }
  int counters() const { return workspace() + 1; }
};

// Bytes that the epilogue reads from matrices, per element of D.
int epilogue_read_bytes(const ProductTask& task);

// An operand in the text of a problem (Problem::text).
std::string view_text(const OperandView& operand);

// A configuration for a product, or the reason why it cannot run.
struct CudaCandidate {
  Config config;
  std::string rejected = {};  // empty: it can
  int64_t additions = 0;      // sequential additions to one sum
};
// Sorts the fastest first and those that cannot run last.
void sort_by_prediction(std::vector<CudaCandidate>& candidates);

// The kernel text of a configuration, as data: `kernel`<Config>(parameters..., epilogue), the members of Config, and
// the helper kernels.
struct CudaInstance {
  // A type that Config names.
  struct Type {
    const char* name;  // "In"
    DType type;
    bool operand = true;  // a multiplied type; else a stored one
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
    bool waits = false;                                    // waits for the previous launch by itself
  };

  std::vector<std::string_view> headers;       // in tile/kernel/cuda
  std::string_view kernel;                     // "cuda::gemm_simt"
  std::string_view defaults;                   // Config's base: "sm90::GemmDefaults"; empty: nothing
  std::string_view traits;                     // "sm90::GemmTraits", which defines the threads; empty: `threads`
  int threads = 0, resident = 1, cluster = 1;  // resident: blocks per SM to compile for; 0: from `traits`
  int tile_m = 0, tile_n = 0;                  // for the name
  bool swapped = false;                        // the kernel's A is the problem's B
  bool split_f32 = false;                      // f32 is multiplied as two tf32 parts
  DType sum = DType::kF32;
  std::vector<Type> types;
  std::vector<std::vector<std::pair<const char*, int64_t>>> sizes;  // {{"kTileM", 128}, ...}, one line each
  std::vector<std::pair<const char*, bool>> flags;                  // those that differ from the defaults
  std::optional<tile::GemmStore> store;                             // the same
  std::vector<Argument> arguments;                                  // without the epilogue
  bool multiplies = true;                                           // false: k is 0, so that all sums are 0
  bool partial = false;                                             // stores sums of parts of k for a second kernel
  bool returned = false;                                            // the epilogue returns the first result
  bool b_passes_once = false;                                       // B should not stay in the cache
  std::optional<uint32_t> residual;  // the operand that the kernel itself loads for the epilogue
  std::vector<Helper> helpers;
};

// The operands whose text describes the lines in memory: none; those with lines at any element, for kernels that shift
// them; all.
enum class LinesOf : uint8_t { kNone, kShifted, kAll };

// A family of kernels for products: the interface for the schedule and code generation. docs/howto/add-a-gemm-family.md
// shows how to add one.
class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;  // as in its configurations
  virtual bool uses_wgmma() const { return false; }
  virtual LinesOf lines() const { return LinesOf::kNone; }
  // The reason why it has no kernel for a product on a device; empty: it may have one.
  virtual std::string refuse(const ProductTask& task, const CudaTarget& target) const = 0;
  // The configurations worth trying.
  virtual std::vector<CudaCandidate> candidates(const ProductTask& task, const CudaTarget& target) const = 0;
  // The launches of one product: "gemm", those before it ("gemm_repack", "gemm_copies") and after it ("gemm_reduce").
  // Code generation adds the arguments of generated operands to "gemm", and those of the epilogue, as the last, to the
  // last launch. Nothing is launched if D is empty.
  virtual KernelLaunches launches(const ProductTask& task, const Config& config, const CudaTarget& target) const = 0;
  virtual CudaInstance instance(const ProductTask& task, const Config& config) const = 0;
};

// All families, and the family of a configuration.
std::span<const Family* const> cuda_families();
const Family& cuda_family_of(const Config& config);

}  // namespace heddle::schedule
