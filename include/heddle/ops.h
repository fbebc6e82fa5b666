#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/error.h"
#include "heddle/export.h"

// Single operators on device memory. An operator is prepared once for a problem: the best known configuration is
// chosen (by the tuner's database, else by the cost model), its kernels are compiled or taken from the cache, loaded
// and laid out. A call then fills in addresses and enqueues them on a CUDA stream.
namespace heddle::ops {

// An operand of an epilogue besides the accumulator.
struct Operand {
  enum class Kind : uint8_t {
    kColumn,  // one element for each column of D: a bias
    kRow,     // one for each row
    kMatrix,  // one for each element: a residual
    kScalar,  // one element
  };
  std::string name;
  Kind kind = Kind::kColumn;
  DType dtype = DType::kF16;           // f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, u8, i32
  int64_t leading = 0;                 // of a matrix: elements from row to row; 0: dense
  std::optional<int64_t> stride = {};  // elements from batch to batch; unset: dense matrices, vectors shared by all
};

// A second result: neighbouring elements of D, reduced to f32 while they are in registers. The remaining reduction is
// small: a sum over all columns adds n / 32 numbers per row.
struct Reduction {
  enum class Over : uint8_t {
    kColumns,  // of 32 columns of each row: [batch][m][n / 32]; n is a multiple of 32
    kRows,     // of 16 rows of each column: [batch][m / 16][n]; m is a multiple of 16
  };
  enum class Kind : uint8_t { kSum, kProduct, kMax, kMin };  // NaN wins over numbers
  Over over = Over::kColumns;
  Kind kind = Kind::kSum;
  std::string expression = {};  // as GemmProblem::epilogue; "": D before it is rounded

  bool operator==(const Reduction&) const = default;
};

// D[b] = epilogue(A[b] B[b]) for b in [0, batch). All matrices are row-major: D is m x n, A is m x k (k x m where it is
// transposed), B is k x n (n x k). Dimensions and strides count elements; 0 stands for dense.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  // Of A and B, and of D: f16, bf16, f32, f8e4m3, f8e5m2 -> f32, f16, bf16; i8, u8 -> i32, f32, f16, bf16; f64 -> f64.
  DType in = DType::kF16, out = DType::kF16;
  bool tf32 = false;  // f32 operands are rounded to tf32, for tensor cores
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldd = 0;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
  // An expression of x, the accumulator, and the operands' names: "gelu(x + bias) * 0.5 + residual"; "": x itself.
  // Computed in f32 (f64 for f64). docs/howto/call-a-gemm.md lists the functions.
  std::string epilogue = {};
  std::vector<Operand> operands = {};
  std::vector<Reduction> reductions = {};  // only if the sums are f32 and k is not 0

  HEDDLE_API bool operator==(const GemmProblem&) const;
};

struct PrepareOptions {
  int device = 0;           // ordinal of the GPU
  double tune_seconds = 0;  // > 0: measure candidates for about this long if the database has no winner
  bool use_cache = true;    // of compiled kernels, on disk
};

// A configuration for a problem, or the reason why the problem cannot run in it.
struct GemmInstance {
  std::string name;
  double predicted_us = 0;  // by the cost model
  std::string rejected;     // the reason; "" where it can run
};

// Returns every configuration for a problem on a device, best prediction first. Those that cannot run come last.
// Compiles nothing. Throws the errors of prepare().
HEDDLE_API std::vector<GemmInstance> gemm_instances(const GemmProblem& problem, int device = 0);

// A prepared product. Copies share it; calls from several threads are safe. The product and its device's primary
// context live until the last copy is destroyed. Keep a copy until the enqueued work has ended.
class HEDDLE_API Gemm {
 public:
  // Throws kInvalidArgument (negative or too large sizes, a leading dimension smaller than the row, a wrong epilogue),
  // kUnsupportedType (it lists the pairs that exist), kDevice, kNoCompiler, kCompilerFailed, kOutOfMemory.
  static Gemm prepare(const GemmProblem& problem, const PrepareOptions& options = {});

  // Enqueues the product on a CUDA stream (a CUstream or cudaStream_t; null: the default stream of the current
  // context). `operands` are device addresses in the order of GemmProblem::operands, `reductions` those of the results
  // of GemmProblem::reductions. All addresses must be multiples of 16. D may be a matrix operand of the same type and
  // strides; all other overlaps with written memory are refused. If m, n or batch is 0, nothing happens; if k is 0, the
  // sums are zero. Throws kInvalidArgument, kDevice.
  //
  // A product that needs a workspace (workspace_bytes()) has one per stream (for CU_STREAM_PER_THREAD, one per calling
  // thread), kept as long as the product. The first call on a stream allocates it, so make that call before the stream
  // is captured. A graph keeps the workspace of the stream on which it was captured, and must not run concurrently with
  // other calls on that stream.
  void operator()(const void* a, const void* b, void* d, void* stream, std::span<const void* const> operands = {},
                  std::span<void* const> reductions = {}) const;
  void operator()(const void* a, const void* b, void* d, void* stream, std::initializer_list<const void*> operands,
                  std::initializer_list<void*> reductions = {}) const {
    (*this)(a, b, d, stream, std::span<const void* const>(operands.begin(), operands.size()),
            std::span<void* const>(reductions.begin(), reductions.size()));
  }

  const std::string& config() const;  // the configuration's name
  const std::string& reason() const;  // why it was chosen
  int64_t workspace_bytes() const;

  class HEDDLE_LOCAL Impl;

 private:
  explicit Gemm(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Prepares the problem when it is first seen on a device (device 0 unless `options` say otherwise). Later calls find it
// by a hash, which costs some 100 ns more than calling a Gemm.
HEDDLE_API void gemm(const GemmProblem& problem, const void* a, const void* b, void* d, void* stream,
                     std::span<const void* const> operands = {}, const PrepareOptions& options = {},
                     std::span<void* const> reductions = {});

// Strides of a tensor (batch, head, row, element), in elements. If `row` is 0, the tensor is dense:
// [batch][head][row][element].
struct AttentionStrides {
  int64_t batch = 0, head = 0, row = 0, element = 1;

  bool operator==(const AttentionStrides&) const = default;
};

// A bias that is added to the scores (batch, head, query, key), or as bool the mask of keys that a query sees. A stride
// of 0 shares the values along that dimension.
struct AttentionBias {
  DType dtype = DType::kF16;  // f32, f16, bf16, bool
  int64_t batch = 0, head = 0, query = 0, key = 1;

  bool operator==(const AttentionBias&) const = default;
};

// Keys and values in pages of a pool. K is [pages][kv_heads][page][depth] and V [pages][kv_heads][page][width], with
// any strides; `batch` is the stride between pages. For example, vLLM's caches, [pages][page][kv_heads][depth], have
// {page * kv_heads * depth, depth, kv_heads * depth}. A table, i32 [batch][ceil(keys / page)], lists the pages of each
// sequence's keys. Entries that name no page (-1, say) are not followed; their keys are zeros. The memory after a
// sequence's last key, in its last page and in pages that further entries name, has no effect but must be finite.
struct AttentionPages {
  int64_t page = 0;      // keys of a page, a multiple of 16
  int64_t pages = 0;     // of the pool
  int64_t sequence = 0;  // entries between the table rows of two sequences; 0: dense

  bool operator==(const AttentionPages&) const = default;
};

// O = softmax(scores(Q K^T)) V for each batch and head. The scores are products times `scale`, then
// soft_cap * tanh(scores / soft_cap), then the bias is added, then keys are hidden. A query that sees no key gives 0.
struct AttentionProblem {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0, depth = 0;
  int64_t kv_heads = 0;      // heads of K and V, each for heads / kv_heads neighbouring heads of Q; 0: `heads`
  int64_t width = 0;         // elements of a head of V and O; 0: `depth`
  DType type = DType::kF16;  // of Q, K, V and O: f16, bf16
  AttentionStrides q, k, v, o;
  std::optional<double> scale = {};  // unset: 1 / sqrt(depth)
  double soft_cap = 0;               // 0: none
  // Queries are aligned to the end of the sequence: the last query's own key is the last key, and so on backwards.
  bool causal = false;   // queries see keys up to their own
  int64_t window = 0;    // > 0: queries see keys less than this far from their own
  bool lengths = false;  // i32 [batch]: the number of keys of each sequence
  std::optional<AttentionBias> bias = {};
  std::optional<DType> sinks = {};  // f32, f16, bf16 [heads]: an extra score in each row that belongs to no key
  std::optional<AttentionPages> pages = {};

  bool operator==(const AttentionProblem&) const = default;
};

// Device addresses; the last four only as far as the problem has them.
struct AttentionOperands {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  const void* bias = nullptr;
  const void* sinks = nullptr;
  const void* lengths = nullptr;
  const void* page_table = nullptr;
};

// A prepared attention. Everything said of a Gemm holds, except that PrepareOptions::tune_seconds has no effect.
class HEDDLE_API Attention {
 public:
  // Throws kInvalidArgument (sizes, strides that overlap O), kUnsupportedType, kUnsupportedOperator (heads of more than
  // 576 elements), kDevice, kNoCompiler, kCompilerFailed, kOutOfMemory.
  static Attention prepare(const AttentionProblem& problem, const PrepareOptions& options = {});

  // Enqueues it as Gemm does. O may overlap nothing else.
  void operator()(const AttentionOperands& operands, void* stream) const;

  const std::string& config() const;
  const std::string& reason() const;
  int64_t workspace_bytes() const;

  class HEDDLE_LOCAL Impl;

 private:
  explicit Attention(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// As gemm(): prepared when it is first seen on a device.
HEDDLE_API void attention(const AttentionProblem& problem, const AttentionOperands& operands, void* stream,
                          const PrepareOptions& options = {});

}  // namespace heddle::ops
