#pragma once

#include <optional>
#include <vector>

#include "codegen/names.h"
#include "codegen/product/cuda/functor.h"

namespace heddle::codegen {

// Generates the functor that a CUDA kernel template calls with its finished accumulators:
//
//   struct Epilogue {
//     template <typename T, int W>
//     __device__ void operator()(T (&v)[W], int batch, int row, int col, int n) const;
//   };
//
// v[0..n) are the accumulators of columns [col, col + n) of one row. col is a multiple of W, and 1 <= n <= W <= 8. T is
// float, double, int32_t or int64_t. The functor evaluates an elementwise DAG over the accumulators, loads the other
// operands of the DAG and stores the results of the epilogue. If `returned` is the index of a store, the functor
// returns the value of this store in v, instead of storing the value. The returned value has type T and is not yet
// rounded to the result's type. Templates that store D themselves (by TMA) use this.
//
// `operands` are the operands of the kernel. The epilogue's loads and stores and PointerPatch::operand are indices into
// `operands`. The generated text needs the headers of cuda_functor_includes().
CudaFunctor cuda_epilogue(const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                          std::optional<size_t> returned = {}, const char* name = "Epilogue");

}  // namespace heddle::codegen
