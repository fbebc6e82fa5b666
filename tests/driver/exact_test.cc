// What models compute exactly, or as exactly as a pairwise sum.
#include "constant_values.h"

namespace heddle {
namespace {

TEST(Exact, NormalisationsOfEqualValuesAreZero) {
  for (const int threads : {1, 2}) {
    CompileOptions options;
    options.threads = threads;
    test::expect_equal_values_vanish({{{4, 768}, {1}},
                                      {{4, 1000}, {1}},
                                      {{3, 4099}, {1}},
                                      {{1000, 12}, {0}},
                                      {{2, 300, 5}, {1}},
                                      {{3, 7, 130}, {0, 2}},
                                      {{4, 1000}, {1}, "f16"},
                                      {{4, 1000}, {1}, "bf16"}},
                                     options);
  }
}

}  // namespace
}  // namespace heddle
