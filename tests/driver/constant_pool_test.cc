#include "driver/plan/constant_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "schedule/product/packing.h"

namespace heddle::driver {
namespace {

// Filters in one storage that two constants view, as f16 and as bf16. Their values differ, and so does what a packing
// that computes makes of them.
TEST(ConstantPool, ViewsOfOneStorageArePackedByTheirTypes) {
  std::array<uint16_t, 9> bits{};
  bits.fill(0x3c00);  // f16: 1, bf16: 2^-7
  const schedule::Packing packing = schedule::winograd_packing(1, 1, 1);
  ConstantPool pool;
  pool.next_plan();
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Tensor filters = Tensor::borrow(dtype, {1, 1, 3, 3}, bits.data(), nullptr);
    const Tensor expected = schedule::pack_constant(filters, packing), packed = pool.packed(filters, packing);
    ASSERT_EQ(packed.bytes(), expected.bytes());
    EXPECT_EQ(std::memcmp(packed.data(), expected.data(), expected.bytes()), 0) << to_string(dtype);
  }
}

TEST(ConstantPool, EqualContentsLieInMemoryOnce) {
  ConstantPool pool;
  pool.next_plan();
  const auto a = Tensor::of<float>(DType::kF32, {4}, {1, 2, 3, 4}),
             b = Tensor::of<float>(DType::kF32, {2, 2}, {1, 2, 3, 4});
  ASSERT_NE(a.data(), b.data());
  const Tensor first = pool.shared(a), second = pool.shared(b);
  EXPECT_EQ(first.data(), second.data());
  EXPECT_EQ(second.shape(), b.shape());
}

TEST(ShareConstants, OfPlansThatLiveButNotOfTheCaller) {
  const auto make = [] { return Tensor::of<float>(DType::kF32, {4}, {1, 2, 3, 4}); };
  std::vector<Tensor> first = {make()}, second = {make()};
  const Tensor own = make();
  std::vector<Tensor> third = {own, make()};
  share_constants(first, {});
  share_constants(second, {});
  share_constants(third, {{"w", own}});
  EXPECT_EQ(first[0].data(), second[0].data());
  EXPECT_EQ(third[0].data(), own.data());
  EXPECT_EQ(third[1].data(), first[0].data());
}

}  // namespace
}  // namespace heddle::driver
