#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// An operand of the CUDA kernels over views (tile/kernel/cuda/gemm/sm80.h says what one is): its type in the unit's
// text, its argument block, and what configurations ask of it.
struct CudaOperand {
  std::string type;                    // "tile::cuda::Matrix<tile::half, true, 8, false>", or a generated struct
  std::string text;                    // the definition of a generated struct
  std::vector<uint8_t> block;          // the bytes of one object; pointers are zero until they are patched
  std::vector<PointerPatch> pointers;  // `offset` in the block, `operand` of the kernel; `argument` is left at 0
  DType element = DType::kF16;         // in memory
  bool along_k = true;                 // memory is contiguous along k, else along rows
  int width = 1;                       // elements of a piece that is loaded at once: at most 16 bytes
  bool view = true;                    // false: computed element by element
  bool shifted = false;                // sm90v takes pieces of 16 bytes from any address (load_shifted.h)
  bool lines = false;     // a matrix of what is multiplied, contiguous along k: tile/kernel/cuda/gemm/unaligned.h
  bool prologue = false;  // values change on their way
  bool image = false;     // addresses are computed for every piece
  double bytes = 0;       // one read of all that it has
};

// A matrix of `rows` x k elements of D's rows or columns, `batch` of them. Strides in elements.
struct CudaMatrix {
  DType element = DType::kF16;
  int64_t rows = 0, k = 0, batch = 1;
  bool along_k = true;
  int64_t leading = 0;  // from row to row, or where rows are contiguous from k to k
  int64_t stride = 0;   // from batch to batch
  int alignment = 16;   // of the address, in bytes
};
// `operand`: which of the kernel's operands it is.
CudaOperand matrix_operand(const CudaMatrix& matrix, int operand);

// Images, channels last, of a convolution with `rank` spatial dimensions (1 to 3; the last `rank` entries count).
struct CudaImage {
  DType element = DType::kF16;
  int rank = 2;
  int64_t images = 1, channels = 1;  // channels of one group
  int64_t pixel = 0, group = 0;      // elements from pixel to pixel (0: channels), from group to group (0: channels)
  int64_t groups = 1;
  std::array<int64_t, 3> size{1, 1, 1}, window{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> before{}, after{};  // padding
  int alignment = 16;                        // of the address, in bytes

  int64_t out(int dim) const;  // outputs along a spatial dimension
  int64_t rows() const;        // of the GEMM
  int64_t k() const;
};
CudaOperand image_operand(const CudaImage& image, int operand);

// The storage type of an element in the tile library: "tile::half", "int8_t"; empty where there is none.
std::string_view cuda_storage(DType type);

}  // namespace heddle::schedule
