// D = fast_gelu(A B + bias + residual) of half precision on a GPU by one call, with CUDA's runtime for memory:
//   c++ -std=c++20 fused_gemm.cc $(pkg-config --cflags --libs heddle) -I $CUDA/include -L $CUDA/lib64 -lcudart
//     -o fused_gemm
#include <cuda_runtime_api.h>

#include <cstdio>

#include "heddle/ops.h"

int main() try {
  heddle::ops::GemmProblem problem{.m = 1280, .n = 3072, .k = 768};
  problem.epilogue = "gelu_tanh(x + bias + residual)";
  problem.operands = {{.name = "bias"}, {.name = "residual", .kind = heddle::ops::Operand::Kind::kMatrix}};
  const auto gemm = heddle::ops::Gemm::prepare(problem, {.tune_seconds = 1});
  std::printf("%s: %s\n", gemm.config().c_str(), gemm.reason().c_str());

  constexpr int kD = 1280 * 3072;
  void *a, *b, *d, *bias, *residual;
  for (auto [pointer, elements] :
       {std::pair{&a, 1280 * 768}, {&b, 768 * 3072}, {&d, kD}, {&bias, 3072}, {&residual, kD}}) {
    cudaMalloc(pointer, elements * 2);
    cudaMemset(*pointer, 0, elements * 2);
  }
  gemm(a, b, d, nullptr, {bias, residual});
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
} catch (const heddle::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return heddle::exit_code(error.code());
}
