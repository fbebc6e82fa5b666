// The kernels of examples/cuda on the emulator, compiled as one unit.
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "../emulator/fixture.h"
#include "heddle/dtype.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::testing_cuda {
namespace {

std::string compiled(const std::string& architecture) {
  std::string unit;
  for (const char* name : {"gemm_functor.cu", "tile_kernels.cu"}) {
    std::ifstream file(std::string(HEDDLE_CUDA_EXAMPLES "/") + name);
    unit.append(std::istreambuf_iterator<char>(file), {});
  }
  return jit::compile_cubin(unit, architecture, false).bytes;
}

class TileKernels : public emulator::EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    static const std::string machine_code = compiled(context->device().target.architecture());
    module = std::make_unique<runtime::CudaModule>(*context, machine_code);
  }
  std::vector<double> numbers(int count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = static_cast<double>(static_cast<int>(random_() % 65) - 32) / 32;
    return values;
  }
  using Memory = std::unique_ptr<runtime::CudaBuffer>;
  Memory halves(const std::vector<double>& values) {
    std::vector<uint16_t> bits;
    for (const double v : values) bits.push_back(static_cast<uint16_t>(encode_float(DType::kF16, v)));
    return on_device(bits);
  }
  Memory floats(const std::vector<double>& values) {
    return on_device(std::vector<float>(values.begin(), values.end()));
  }
  template <typename T>
  Memory on_device(const std::vector<T>& values) {
    auto memory = std::make_unique<runtime::CudaBuffer>(*context, values.size() * sizeof(T));
    memory->write(values.data(), memory->size());
    return memory;
  }

 private:
  std::mt19937 random_{5};
};

tile::GemmArgs args_of_functor(int m, int n, int k) {
  tile::GemmArgs args{};
  args.m = m, args.n = n, args.k = k, args.batch = args.splits = 1;
  args.tiles_m = (m + 63) / 64, args.tiles_n = (n + 63) / 64, args.k_tiles = (k + 31) / 32;
  args.raster_group = 8;
  tile::set_divisors(args);
  return args;
}

// By the template and by operators of tiles.
TEST_F(TileKernels, GemmAddAddGelu) {
  constexpr int kM = 70, kN = 72, kK = 40;
  const auto a = numbers(kM * kK), b = numbers(kK * kN), bias = numbers(kN), residual = numbers(kM * kN);
  const Memory on_a = halves(a), on_b = halves(b), on_bias = halves(bias), on_residual = halves(residual);
  auto d = buffer(kM * kN * 2), of_template = buffer(kM * kN * 2);
  CudaLaunchConfig config;
  config.grid[0] = config.grid[1] = 2;
  config.block[0] = 128;
  config.shared_bytes = 32 << 10;
  config.stream = context->stream();
  uint64_t to = d.address(), from[] = {on_a->address(), on_b->address(), on_bias->address(), on_residual->address()};
  int m = kM, n = kN, k = kK;
  void* pointers[] = {&to, &from[0], &from[1], &from[2], &from[3], &m, &n, &k, nullptr};
  const CudaDriver& driver = context->driver();
  driver.check(driver.launch(&config, module->function("gemm_add_add_gelu", 32 << 10), pointers, nullptr), "launch");
  const auto got = read<uint16_t>(d);
  launch("gemm_functor_kernel", 4, 128, tile::gemm_sm80_shared_bytes(64, 64, 64, 3, 2, 2), args_of_functor(m, n, k),
         of_template.address(), from[0], from[1], from[2], from[3]);
  const auto got_of_template = read<uint16_t>(of_template);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double x = bias[j] + residual[i * kN + j];
      for (int at = 0; at < kK; ++at) x += a[i * kK + at] * b[at * kN + j];
      const double want = 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
      ASSERT_NEAR(decode_float(DType::kF16, got[i * kN + j]), want, 2e-3 * std::max(1.0, std::abs(want)))
          << i << " " << j;
      ASSERT_NEAR(decode_float(DType::kF16, got_of_template[i * kN + j]), want, 2e-3 * std::max(1.0, std::abs(want)))
          << i << " " << j;
    }
  }
}

TEST_F(TileKernels, Attention) {
  constexpr int kN = 100, kHead = 64;
  constexpr double kScale = 0.125;
  const auto q = numbers(kN * kHead), k = numbers(kN * kHead), v = numbers(kN * kHead);
  const Memory on_q = halves(q), on_k = halves(k), on_v = halves(v);
  auto out = buffer(kN * kHead * 2);
  launch("attention", 2, 128, 32 << 10, out.address(), on_q->address(), on_k->address(), on_v->address(), int{kN},
         static_cast<float>(kScale / std::log(2)));
  const auto got = read<uint16_t>(out);
  for (int i = 0; i < kN; ++i) {
    std::vector<double> weights(kN);
    double total = 0;
    for (int j = 0; j < kN; ++j) {
      double score = 0;
      for (int d = 0; d < kHead; ++d) score += q[i * kHead + d] * k[j * kHead + d];
      total += weights[j] = std::exp(score * kScale);
    }
    for (int d = 0; d < kHead; ++d) {
      double want = 0;
      for (int j = 0; j < kN; ++j) want += weights[j] / total * v[j * kHead + d];
      ASSERT_NEAR(decode_float(DType::kF16, got[i * kHead + d]), want, 2e-3) << i << " " << d;
    }
  }
}

TEST_F(TileKernels, Rows) {
  constexpr int kRows = 3, kN = 700;
  const auto x = numbers(kRows * kN), scale = numbers(kN), shift = numbers(kN);
  const Memory on_x = floats(x), on_scale = floats(scale), on_shift = floats(shift);
  auto y = buffer(kRows * kN * 4);
  launch("softmax", kRows, 128, 1024, y.address(), on_x->address(), int{kN});
  auto got = read<float>(y);
  for (int i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int j = 0; j < kN; ++j) sum += std::exp(x[i * kN + j]);
    for (int j = 0; j < kN; ++j) ASSERT_NEAR(got[i * kN + j], std::exp(x[i * kN + j]) / sum, 1e-6);
  }
  launch("layer_norm", kRows, 128, 1024, y.address(), on_x->address(), on_scale->address(), on_shift->address(),
         int{kN}, 1e-5f);
  got = read<float>(y);
  for (int i = 0; i < kRows; ++i) {
    double mean = 0, variance = 0;
    for (int j = 0; j < kN; ++j) mean += x[i * kN + j] / kN;
    for (int j = 0; j < kN; ++j) variance += (x[i * kN + j] - mean) * (x[i * kN + j] - mean) / kN;
    for (int j = 0; j < kN; ++j) {
      ASSERT_NEAR(got[i * kN + j], (x[i * kN + j] - mean) / std::sqrt(variance + 1e-5) * scale[j] + shift[j], 1e-5);
    }
  }
}

}  // namespace
}  // namespace heddle::testing_cuda
