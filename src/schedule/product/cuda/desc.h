#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"
#include "tile/core/cuda_operand.h"

namespace heddle::schedule {

// Weights of few bits as operand B (tile/kernel/cpu/gemm_packed.h, tile/kernel/cuda/gemm/packed.h). The words are the
// operand itself.
struct PackedWeights {
  int64_t bits = 0, block = 0, zero = 0;
  uint32_t scales = 0;            // operand number
  std::optional<uint32_t> third;  // operand number of zero points or of a table
  bool is_table = false;
  // On a CPU. `digits`: the bytes of the integers to which the product rounds A. 1 if the model asks for it; 3 if that
  // is faster than f32 and as accurate; 0: A stays in f32. `in_registers`: the micro-kernels widen the weights; if
  // false, they are widened a panel at a time before.
  int digits = 0;
  bool in_registers = false;
  // On a GPU. The scales are stored times 2^exponent. `blocks` is the number of scales of a row, including the padding.
  int exponent = 0;
  int64_t blocks = 0;
};

// An operand of a matrix product on a GPU: for each batch, a matrix of rows (of A) or columns (of B) by k.
struct OperandView {
  enum class Form : uint8_t {
    kMatrix,    // a matrix with strides
    kMerged,    // rows or k consist of several dimensions with different strides, such as windows of an image
    kImage,     // the images of a convolution, channels last (tile/kernel/cuda/operand/operand.h)
    kComputed,  // an expression for each element
    kPacked,    // constant weights of few bits (tile/core/pack.h)
    // A of a filter gradient, in images as above: the windows are k, rows are (tap, channel padded to whole boxes). For
    // depthwise convolutions, rows are taps, and column n of D multiplies channel n.
    kSummedWindows,
    kChannelWindows,
  };
  Form form = Form::kMatrix;
  DType dtype = DType::kF32;  // in memory
  uint32_t operand = 0;       // index of the operand among the kernel's operands
  int64_t offset = 0;         // of the first element, in elements

  // For kMatrix and kMerged. `batch`: extents and strides of the batch dimensions, outermost first. `row` and `k`: the
  // strides of rows (or columns) and of k; for merged dimensions, the innermost stride. `depth`: the number of elements
  // along k in memory. It may exceed the problem's k; one of the two operands is zero in the excess.
  std::vector<std::pair<int64_t, int64_t>> batch;
  int64_t row = 0, k = 0, depth = 0;
  // For kMerged: the dimensions that merge to rows (or columns) and to k, as extents and strides, outermost first.
  std::vector<std::pair<int64_t, int64_t>> row_dims, k_dims;

  // True if memory is contiguous along k. If false, it is contiguous along rows, or along neither dimension.
  bool along_k() const { return k == 1 || depth <= 1; }
  // Returns the number of elements per load: at most 16 bytes, and a common divisor of the strides and the offset.
  // `lines` is the number of rows of A or columns of B.
  int width(int64_t lines) const;

  // True if loads must be assembled: aligned loads would have at most 4 bytes, but lines are contiguous and already
  // have the multiplied type. Each 16-byte piece is then assembled from the aligned words around it.
  bool shifted(int64_t lines, DType multiply) const;

  // True if the elements of each k directly follow the elements of the preceding k in memory, and batches begin at
  // multiples of 16 bytes.
  bool packed(int64_t lines) const;

  tile::GemmImageArgs image{};           // for the forms with windows
  std::optional<PackedWeights> weights;  // for kPacked

  bool sums_windows() const { return form == Form::kSummedWindows || form == Form::kChannelWindows; }

  ExprId element = 0;  // for kComputed: an expression over the variables of batch, row (or column) and k
  VarId vars[3] = {0, 0, 0};
};

// The properties of an operand that the choice of a configuration depends on.
struct OperandTraits {
  DType element = DType::kF16;  // in memory
  bool along_k = true;          // memory is contiguous along k; false: along rows
  int width = 1;                // elements per load, at most 16 bytes
  bool view = true;             // a view of memory; false: computed element by element
  bool shifted = false;         // 16-byte pieces are loaded from any address (OperandView::shifted())
  bool lines = false;           // a matrix of the multiplied type, contiguous along k, with 32-bit offsets in a tile
  bool packed = false;          // OperandView::packed()
  bool image = false;           // the address of every 16-byte piece is computed separately
  int bits = 0;                 // of packed weights, which have no elements in memory; else 0
  double bytes = 0;             // bytes to read the whole operand once
};
// `lines`: number of rows of A or columns of B. `batch`: number of products.
OperandTraits traits_of(const OperandView& operand, int64_t lines, int64_t batch, DType multiply);

// The problem D[batch] = epilogue(A[batch] B[batch]) on a GPU.
struct Product {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  // The types that are multiplied: f16, bf16, f32, f64, i8, u8, i32 or i64. Sums are f32 for floats of up to 32 bits,
  // i32 for i8 and u8, and of the multiplied type otherwise.
  DType multiply_a = DType::kF32, multiply_b = DType::kF32;
  bool tf32 = false;  // f32 operands are rounded to tf32
  OperandView a, b;
  ExprPool pool;  // expressions of computed operands

  bool on_tensor_cores() const;                                           // true if tensor cores support these types
  bool splits_f32() const { return multiply_a == DType::kF32 && !tf32; }  // into two tf32 parts: three tf32 products
};

}  // namespace heddle::schedule
