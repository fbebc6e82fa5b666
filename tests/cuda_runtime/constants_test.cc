#include "runtime/cuda/constants.h"

#include <gtest/gtest.h>

#include "cuda_plans.h"

namespace heddle::runtime {
namespace {

Tensor numbers(float first) {
  return Tensor::of<float>(DType::kF32, {3}, {first, first + 1, first + 2});
}

std::vector<float> read(const CudaConstants::Place& place) {
  std::vector<float> values(3);
  const size_t offset = place.address - place.chunk->memory.address();
  place.chunk->memory.read(values.data(), 12, offset);
  return values;
}

TEST(CudaConstants, TensorsThatPlansShareAreThereOnce) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const auto context = CudaContext::of_device(0);
  const auto constants = CudaConstants::of(context);
  EXPECT_EQ(CudaConstants::of(context), constants);
  const Tensor weights = numbers(1), others = numbers(5);
  const auto first = constants->place(weights), second = constants->place(weights), third = constants->place(others);
  EXPECT_EQ(first.address, second.address);
  EXPECT_NE(first.address, third.address);
  EXPECT_EQ(read(second), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read(third), (std::vector<float>{5, 6, 7}));
  EXPECT_EQ(constants->place(Tensor(DType::kF32, {0})).address, 0u);
}

// A tensor may lie where one that is gone lay.
TEST(CudaConstants, MemoryLivesAsLongAsItsUsers) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  const auto constants = CudaConstants::of(CudaContext::of_device(0));
  std::weak_ptr<const CudaConstants::Chunk> chunk;
  std::vector<float> values = {1, 2, 3};
  const auto borrowed = [&] { return Tensor::borrow(DType::kF32, {3}, values.data(), nullptr); };
  {
    const auto place = constants->place(borrowed());
    chunk = place.chunk;
    EXPECT_FALSE(chunk.expired());
  }
  EXPECT_TRUE(chunk.expired());
  values = {7, 8, 9};
  EXPECT_EQ(read(constants->place(borrowed())), (std::vector<float>{7, 8, 9}));
}

}  // namespace
}  // namespace heddle::runtime
