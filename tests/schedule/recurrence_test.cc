#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "schedule/recurrence/mapping.h"

namespace heddle::schedule {
namespace {

// Sums of a product whose matrices are views of one storage: the same bits as f16 and as bf16, and some of them as a
// wider matrix.
TEST(Recurrence, WeightsInOneStorageArePackedByTheirTypesAndShapes) {
  std::array<uint16_t, 8> bits{};
  bits.fill(0x3c00);  // f16: 1, bf16: 2^-7
  bits[7] = 0x4000;   // f16: 2
  const auto view = [&](DType dtype, const Shape& shape) { return Tensor::borrow(dtype, shape, bits.data(), nullptr); };
  RecurrentDesc desc;
  desc.vectors = {{.length = 4, .state = std::nullopt}};
  const RecurrentProduct product{.vector = 0,
                                 .sums = {{.matrix = view(DType::kF16, {4, 1})},
                                          {.matrix = view(DType::kBF16, {4, 1})},
                                          {.matrix = view(DType::kF16, {4, 2}), .offset = 1}}};
  const RecurrentPhase phase{.units = 1, .products = {product}, .results = {}};
  const Tensor packed = pack_shares(desc, phase, product);
  ASSERT_EQ(packed.shape(), (Shape{1, 4, 3, 32}));
  const auto of_first_thread = [&](int64_t k, int64_t sum) { return packed.values<float>()[(k * 3 + sum) * 32]; };
  for (int64_t k = 0; k < 4; ++k) {
    EXPECT_EQ(of_first_thread(k, 0), 1.0f);
    EXPECT_EQ(of_first_thread(k, 1), 0.0078125f);
    EXPECT_EQ(of_first_thread(k, 2), k == 3 ? 2.0f : 1.0f);
  }
}

}  // namespace
}  // namespace heddle::schedule
