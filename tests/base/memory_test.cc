#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace heddle {
namespace {

int64_t resident_bytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Memory, BlocksAreAlignedAndWritable) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{300} << 10, (size_t{5} << 20) + 3}) {
    const auto block = allocate(bytes, "a block");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u);
    std::memset(block.get(), 1, bytes);
  }
}

// Also where small objects were made in between that stay, as in malloc's heap they would keep it.
TEST(Memory, LargeBlocksGoBackToTheSystem) {
  constexpr size_t kBlock = 1 << 20, kBlocks = 64;
  std::vector<std::unique_ptr<char[]>> small;
  { const auto larger = allocate(4 * kBlock, "a block"); }  // malloc takes up to this size from its heap now
  std::vector<std::shared_ptr<std::byte>> large;
  for (size_t i = 0; i < kBlocks; ++i) {
    large.push_back(allocate(kBlock, "a block"));
    std::memset(large.back().get(), 1, kBlock);
    small.push_back(std::make_unique<char[]>(64 << 10));
    small.back()[0] = 1;
  }
  const int64_t before = resident_bytes();
  large.clear();
  EXPECT_LT(resident_bytes(), before - static_cast<int64_t>(kBlock * kBlocks / 2));
}

}  // namespace
}  // namespace heddle
