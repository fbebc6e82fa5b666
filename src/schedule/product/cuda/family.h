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

// The time of a kernel that overlaps several activities, such as arithmetic and memory traffic. `us` are their times.
// If one activity is much longer than the others, the result is its time. If they take about equally long, the result
// is higher, since they compete for bandwidth.
double overlapped_us(std::initializer_list<double> us);

// True if adjacent elements of a row of D are not adjacent in the memory of the first stored result.
bool stores_apart(const Epilogue& epilogue);

// A GPU product with its epilogue and operands: the data that kernel families and code generation use.
struct ProductTask {
  const Product& product;
  const Epilogue& epilogue;
  const std::vector<Operand>& operands;  // of the whole kernel

  // True if two columns of B give one column of D (Epilogue::Gate).
  bool gated() const { return epilogue.gate.has_value(); }
  int64_t columns() const { return gated() ? product.n / 2 : product.n; }  // of D
  // Indices of the operands that the driver adds: a workspace for partial sums and copies, and counters.
  int workspace() const { return static_cast<int>(operands.size()); }
  int counters() const { return workspace() + 1; }
};

// The number of bytes that the epilogue loads from matrices, per element of D.
int epilogue_read_bytes(const ProductTask& task);

// The description of an operand in the text of a problem (Problem::text).
std::string view_text(const OperandView& operand);

// A configuration for a product, or the reason why it cannot run.
struct CudaCandidate {
  Config config;
  std::string rejected = {};  // the reason why it cannot run; empty if it can
  int64_t additions = 0;      // the number of sequential additions to one sum
};
// Sorts the candidates by predicted time. Candidates that cannot run are last.
void sort_by_prediction(std::vector<CudaCandidate>& candidates);

// The kernel text of a configuration, as data: `kernel`<Config>(parameters..., epilogue), the members of Config, and
// the helper kernels.
struct CudaInstance {
  // An element type that is a member of Config.
  struct Type {
    const char* name;  // "In"
    DType type;
    bool operand = true;  // true: the type of a multiplied operand; false: of a stored result
  };
  enum class Parameter : uint8_t { kMap, kMapOfClasses, kNoMap, kMapBehind, kBlock, kOperand };
  struct Argument {
    Parameter kind;
    std::string_view name;       // such as "a" or "args"
    std::string_view type = {};  // for a block: "GemmArgs"
    int count = 1;               // number of maps, for kMapOfClasses
  };
  struct Helper {
    std::string_view suffix, function, arguments, header;  // "_repack", "gemm_repack", "GemmRepackArgs", its header
    bool waits = false;                                    // the helper itself waits for the previous launch
  };

  std::vector<std::string_view> headers;       // in tile/kernel
  std::string_view kernel;                     // "cuda::gemm_simt"
  std::string_view defaults;                   // Config's base class: "sm90::GemmDefaults"; empty: none
  std::string_view traits;                     // "sm90::GemmTraits", which has the thread count; empty: `threads`
  int threads = 0, resident = 1, cluster = 1;  // resident: blocks per SM to compile for; 0: from `traits`
  int tile_m = 0, tile_n = 0;                  // for the kernel's name
  bool swapped = false;                        // the kernel's A is the problem's B
  bool split_f32 = false;                      // f32 is split into two tf32 values
  DType sum = DType::kF32;
  std::vector<Type> types;
  std::vector<std::vector<std::pair<const char*, int64_t>>> sizes;  // {{"kTileM", 128}, ...}, one line each
  std::vector<std::pair<const char*, bool>> flags;                  // only flags that differ from the defaults
  std::optional<tile::GemmStore> store;                             // set only if it differs from the default
  std::optional<tile::GemmSchedule> schedule;                       // likewise
  std::optional<tile::GemmForm> form;                               // likewise
  std::vector<Argument> arguments;                                  // all except the epilogue
  bool multiplies = true;                                           // false: k is 0, so all sums are 0
  bool partial = false;                                             // stores partial sums over k for a second kernel
  bool waits = false;                                               // the kernel itself waits for the previous launch
  bool returned = false;                                            // the epilogue returns result 0 to the kernel
  bool b_passes_once = false;                                       // B is read once and should not stay in the cache
  std::optional<uint32_t> residual;  // the operand that the kernel loads on behalf of the epilogue
  std::vector<Helper> helpers;
};

// The operands that a kernel's text describes by their lines (rows or columns that are contiguous in memory). kNone: no
// operand. kShifted: operands whose lines may start at any element (OperandView::shifted()), for kernels that shift
// them. kAll: every operand.
enum class LinesOf : uint8_t { kNone, kShifted, kAll };

// A family of kernels for products: its interface to the scheduler and to code generation.
// docs/howto/add-a-gemm-family.md shows how to add a family.
class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;  // as in its configurations
  virtual bool uses_wgmma() const { return false; }
  virtual LinesOf lines() const { return LinesOf::kNone; }
  // The form of A, if it has windows that are summed (OperandView::sums_windows()), that the family reads instead of
  // all others.
  virtual std::optional<OperandView::Form> summed_windows() const { return std::nullopt; }
  // True if B may be packed weights of few bits (OperandView::Form::kPacked).
  virtual bool reads_packed_weights() const { return false; }
  // Returns why the family has no kernel for a product on a device. An empty string means that it may have one.
  virtual std::string refuse(const ProductTask& task, const GpuTarget& target) const = 0;
  // Returns the configurations to try for a product.
  virtual std::vector<CudaCandidate> candidates(const ProductTask& task, const GpuTarget& target) const = 0;
  // Returns the launches of one product: "gemm", launches before it ("gemm_repack", "gemm_copies") and launches after
  // it ("gemm_reduce"). Code generation then adds the arguments of generated operands to "gemm", and the arguments of
  // the epilogue to the last launch. There are no launches if D is empty.
  virtual KernelLaunches launches(const ProductTask& task, const Config& config, const GpuTarget& target) const = 0;
  virtual CudaInstance instance(const ProductTask& task, const Config& config) const = 0;
};

// cuda_families() returns all families. cuda_family_of() returns the family of a configuration.
std::span<const Family* const> cuda_families();
const Family& cuda_family_of(const Config& config);

}  // namespace heddle::schedule
