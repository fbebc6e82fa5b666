// Activations on scalars for epilogues of CUDA kernels. NaN stays NaN.
#pragma once

namespace heddle::tile::cuda {

__device__ inline float relu(float x) {
  return x < 0 ? 0.f : x;
}
__device__ inline float sigmoid(float x) {
  return __fdividef(1.f, 1.f + __expf(-x));
}
__device__ inline float silu(float x) {
  return x * sigmoid(x);
}
__device__ inline float gelu(float x) {
  return 0.5f * x * (1.f + erff(x * 0.70710678f));
}
__device__ inline float hardswish(float x) {
  const float y = x + 3.f;
  return x * (y < 0 ? 0.f : y > 6 ? 6.f : y) * (1.f / 6.f);
}
// log(1 + exp(x)) without overflow.
__device__ inline float softplus(float x) {
  return (x < 0 ? 0.f : x) + log1pf(__expf(-fabsf(x)));
}
__device__ inline float tanh(float x) {
  return tanhf(x);
}

}  // namespace heddle::tile::cuda
