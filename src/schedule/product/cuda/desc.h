#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"
#include "tile/core/cuda_operand.h"

namespace heddle::schedule {

// An operand of a matrix product on a GPU: rows of A or columns of B, by k, for each batch.
struct OperandView {
  enum class Form : uint8_t {
    kMatrix,    // strides
    kMerged,    // rows or k with several strides, such as the windows of an image
    kImage,     // the images of a convolution, channels last (tile/kernel/cuda/operand/operand.h)
    kComputed,  // an expression for each element
  };
  Form form = Form::kMatrix;
  DType dtype = DType::kF32;  // in memory
  uint32_t operand = 0;       // of the kernel
  int64_t offset = 0;         // of the first element

  // kMatrix, kMerged: extents and strides of the batch dimensions, outermost first; strides of rows (columns) and of k,
  // the innermost if there are several; the number of elements along k that exist, at least that of the problem (one of
  // the operands is zero in any excess).
  std::vector<std::pair<int64_t, int64_t>> batch;
  int64_t row = 0, k = 0, depth = 0;
  // kMerged: the dimensions that merge to rows (columns) and to k, as extents and strides, outermost first.
  std::vector<std::pair<int64_t, int64_t>> row_dims, k_dims;

  // True if memory is contiguous along k; else along rows, or along neither.
  bool along_k() const { return k == 1 || depth <= 1; }
  // Elements per load, at most 16 bytes: a common divisor of the strides and the offset. `lines`: rows of A or columns
  // of B.
  int width(int64_t lines) const;

  // True if no piece of more than 4 bytes is aligned, but lines are contiguous and have the multiplied type: 16-byte
  // pieces are then assembled from the words around them.
  bool shifted(int64_t lines, DType multiply) const;

  // True if the elements of each k directly follow those of the previous k, starting at a multiple of 16 bytes.
  bool packed(int64_t lines) const;

  tile::GemmImageArgs image{};  // kImage

  ExprId element = 0;  // kComputed: over the variables of batch, row (or column) and k
  VarId vars[3] = {0, 0, 0};
};

// The properties of an operand that configurations depend on.
struct OperandTraits {
  DType element = DType::kF16;  // in memory
  bool along_k = true;          // memory is contiguous along k, else along rows
  int width = 1;                // elements per load: at most 16 bytes
  bool view = true;             // false: computed element by element
  bool shifted = false;         // 16-byte pieces are loaded from any address (OperandView::shifted())
  bool lines = false;           // a matrix of the multiplied type, contiguous along k, with lines not far apart
  bool packed = false;          // OperandView::packed()
  bool image = false;           // addresses are computed for every piece
  double bytes = 0;             // bytes of one read of the whole operand
};
// `lines`: rows of A or columns of B; `batch`: products.
OperandTraits traits_of(const OperandView& operand, int64_t lines, int64_t batch, DType multiply);

// D[batch] = epilogue(A[batch] B[batch]) on a GPU.
struct Product {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  // The multiplied types: f16, bf16, f32, f64, i8, u8, i32, i64. Sums are f32 for floats up to 32 bits, i32 for i8 and
  // u8, else of the multiplied type.
  DType multiply_a = DType::kF32, multiply_b = DType::kF32;
  bool tf32 = false;  // f32 operands are rounded to tf32
  OperandView a, b;
  ExprPool pool;  // of computed operands

  bool on_tensor_cores() const;                                           // whether some multiply these types
  bool splits_f32() const { return multiply_a == DType::kF32 && !tf32; }  // as two tf32 parts: three tf32 products
};

}  // namespace heddle::schedule
