// How kernels are found in the text of a unit.
#include <gtest/gtest.h>

#include "jit/cuda/emulated.h"

namespace heddle::jit {
namespace {

TEST(FindKernels, AttributesAndComments) {
  const std::string unit = R"(
// extern "C" __global__ void commented(int x) {}
/* __global__ void too(int x) */
const char* text = "__global__ void quoted(";
#define KERNEL __global__ void defined(
extern "C" __global__ void plain(const float* p, int n) { if (n) p[0]; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(Traits<A, (1 + 2)>::kThreads, 1)
    bounded(const __grid_constant__ Args args) {
}
extern "C" void __launch_bounds__(64) other();
extern "C" __global__ void plain(const float* p, int n);
)";
  const std::vector<DeclaredKernel> expected = {{"plain", "", ""},
                                                {"bounded", "Traits<A, (1 + 2)>::kThreads, 1", "2, 1, 1"}};
  EXPECT_EQ(find_kernels(unit), expected);
  EXPECT_TRUE(find_kernels("__global__").empty());
  EXPECT_TRUE(find_kernels("").empty());
}

TEST(FindKernels, EmulatedArchitectures) {
  EXPECT_TRUE(is_emulated("emulated_sm_80"));
  EXPECT_FALSE(is_emulated("sm_90a"));
}

}  // namespace
}  // namespace heddle::jit
