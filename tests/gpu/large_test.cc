// Tensors of more than 2^31 elements on a GPU; on the emulator the same code with few.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file/file.h"
#include "heddle/model.h"
#include "heddle/ops.h"
#include "runtime/cuda/device.h"
#include "tune/random_data.h"

namespace heddle {
namespace {

class Large : public testing::Test {
 protected:
  void SetUp() override {
    constexpr uint64_t kNeeded = uint64_t{20} << 30;
    const auto devices = cuda_devices();
    if (devices.empty()) GTEST_SKIP() << "no GPU";
    emulated_ = devices[0].target.emulated;
    if (!emulated_ && devices[0].memory_bytes < kNeeded) GTEST_SKIP() << "too little memory";
  }
  // Odd, and with the other side beyond 2^31 elements.
  int64_t many() const { return emulated_ ? 131 : 65539; }
  int64_t other() const { return emulated_ ? 72 : 32776; }

  bool emulated_ = false;
};

// A device matrix [rows, columns] of f16 whose elements repeat after kPeriod.
class Periodic {
 public:
  Periodic(const runtime::CudaContext& context, int64_t count, uint64_t seed) : bytes_(kPeriod * sizeof(uint16_t)) {
    tune::fill_random(bytes_.data(), DType::kF16, kPeriod, seed);
    values_ = tune::as_doubles(bytes_.data(), DType::kF16, kPeriod);
    const auto size = static_cast<size_t>(count) * sizeof(uint16_t);
    buffer_ = std::make_unique<runtime::CudaBuffer>(context, size);
    for (size_t at = 0; at < size; at += bytes_.size()) {
      buffer_->write(bytes_.data(), std::min(bytes_.size(), size - at), at);
    }
  }
  double at(int64_t i) const { return values_[static_cast<size_t>(i % kPeriod)]; }
  const void* address() const { return reinterpret_cast<const void*>(buffer_->address()); }

 private:
  static constexpr int64_t kPeriod = (int64_t{1} << 24) - 3;
  std::vector<uint8_t> bytes_;
  std::vector<double> values_;
  std::unique_ptr<runtime::CudaBuffer> buffer_;
};

// D = A B^T in f16; the first, the last and some rows between are compared with sums in double.
void check_product(int64_t m, int64_t n, int64_t k) {
  const auto context = runtime::CudaContext::of_device(0);
  ops::GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.transpose_b = true;
  const ops::Gemm gemm = ops::Gemm::prepare(p);
  SCOPED_TRACE(gemm.config());
  const Periodic a(*context, m * k, 1), b(*context, n * k, 2);
  runtime::CudaBuffer d(*context, static_cast<size_t>(m * n) * sizeof(uint16_t));
  gemm(a.address(), b.address(), reinterpret_cast<void*>(d.address()), context->stream());
  context->synchronize();
  std::vector<uint8_t> row(static_cast<size_t>(n) * sizeof(uint16_t));
  for (const int64_t i : {int64_t{0}, m / 3, m / 2 + 1, m - 2, m - 1}) {
    d.read(row.data(), row.size(), static_cast<size_t>(i) * row.size());
    const std::vector<double> got = tune::as_doubles(row.data(), DType::kF16, n);
    const int64_t step = std::max<int64_t>(1, n / 500);
    for (int64_t turn = 0; turn * step < n; ++turn) {
      const int64_t j = turn == 0 ? n - 1 : turn * step;
      double sum = 0;
      for (int64_t x = 0; x < k; ++x) sum += a.at(i * k + x) * b.at(j * k + x);
      ASSERT_NEAR(got[static_cast<size_t>(j)], sum, 2e-3 * std::abs(sum) + 1e-3 * std::sqrt(static_cast<double>(k)))
          << i << ", " << j;
    }
  }
}

TEST_F(Large, ProductWithMoreElementsThan32BitsCount) {
  check_product(many(), other(), 64);
}
TEST_F(Large, ProductOfAMatrixWithMoreElementsThan32BitsCount) {
  check_product(other() + 3, 64, many() - 3);
}
TEST_F(Large, ProductOfAMatrixWhoseRowsAreNotAligned) {
  check_product(64, other(), many());
}

// Every element, a sum of each row and of each column, exactly: a stitch kernel.
TEST_F(Large, StitchesOverMoreElementsThan32BitsCount) {
  const int64_t rows = many(), columns = other();
  TempDir folder;
  ::setenv("HEDDLE_CACHE_DIR", (folder.path() + "/cache").c_str(), 1);
  const std::string path = folder.path() + "/large.hir";
  write_file(path, fmt::format("graph large(%x: u8[{0},{1}]) {{\n"
                               "  %y = not(%x)\n"
                               "  %f = cast(%x) {{to = f32}}\n"
                               "  %rows = reduce(%f) {{kind = \"sum\", dims = [1]}}\n"
                               "  %columns = reduce(%f) {{kind = \"sum\", dims = [0]}}\n"
                               "  return \"y\" = %y, \"rows\" = %rows, \"columns\" = %columns\n}}\n",
                               rows, columns));
  CompileOptions options;
  options.target = "cuda";
  const Model model = Model::load(path, options);
  Tensor x(DType::kU8, {rows, columns});
  const auto values = x.mutable_values<uint8_t>();
  uint32_t state = 1;
  std::vector<uint32_t> row_sums(static_cast<size_t>(rows)), column_sums(static_cast<size_t>(columns));
  for (size_t i = 0; i < row_sums.size(); ++i) {
    for (size_t j = 0; j < column_sums.size(); ++j) {
      state = state * 1664525 + 1013904223;
      const auto value = static_cast<uint8_t>(state >> 24);
      values[i * column_sums.size() + j] = value;
      row_sums[i] += value, column_sums[j] += value;
    }
  }
  const std::vector<Tensor> outputs = model.run({{"x", x}});
  const auto y = outputs[0].values<uint8_t>();
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += y[i] != static_cast<uint8_t>(~values[i]) ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  for (size_t i = 0; i < row_sums.size(); ++i)
    ASSERT_EQ(outputs[1].values<float>()[i], static_cast<float>(row_sums[i])) << i;
  for (size_t j = 0; j < column_sums.size(); ++j) {
    ASSERT_EQ(outputs[2].values<float>()[j], static_cast<float>(column_sums[j])) << j;
  }
}

}  // namespace
}  // namespace heddle
