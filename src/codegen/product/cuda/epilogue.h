#pragma once

#include <optional>
#include <vector>

#include "codegen/names.h"
#include "codegen/product/cuda/functor.h"

namespace heddle::codegen {

// The functor through which a CUDA template hands on its finished accumulators:
//
//   struct Epilogue {
//     template <typename T, int W>
//     __device__ void operator()(T (&v)[W], int batch, int row, int col, int n) const;
//   };
//
// v[0..n) are accumulators of the columns col .. col + n - 1 of one row, col a multiple of W, 1 <= n <= W <= 8; T is
// float, double, int32_t or int64_t. The functor computes any elementwise DAG over them, loads what it needs and stores
// every result of the epilogue, except that of the store `returned`, which comes back in v (as T, not yet rounded to
// the result's type): a template that stores D itself (by TMA) asks for it.
//
// `operands` are the kernel's. The epilogue's loads and stores and PointerPatch::operand are indices into them. The
// text needs the headers of cuda_functor_includes().
CudaFunctor cuda_epilogue(const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                          std::optional<size_t> returned = {}, const char* name = "Epilogue");

}  // namespace heddle::codegen
