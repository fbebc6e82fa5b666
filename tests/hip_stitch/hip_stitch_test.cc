// What depends on the number of lanes of a wave: teams below and above 32 lanes, reductions, scans and columns of whole
// blocks, and exchanges in halves of a wave.
#include <gtest/gtest.h>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;

TEST(HipStitch, RowsOfEveryLength) {
  Batch batch;
  for (int64_t n : {1, 3, 31, 36, 63, 64, 65, 100, 768, 1000, 4099, 33000}) {
    batch.add("softmax" + std::to_string(n), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF32, {5, n}), {1}));
    });
    batch.add("half softmax" + std::to_string(n), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF16, {3, n}), {1}));
    });
  }
  for (int64_t m : {1, 7, 2000}) {
    batch.add("rows" + std::to_string(m), [&](Builder& b) {
      const auto x = input(b, "x", DType::kF32, {m, 24});
      b.graph().output("y", b.sub(x, b.mean(x, {1}, true)));
      b.graph().output("s", b.reduce("max", x, {1}, false));
    });
  }
  batch.run();
}

TEST(HipStitch, ColumnsAndScans) {
  Batch batch;
  for (int64_t columns : {1, 5, 16, 48, 64, 300}) {
    batch.add("columns" + std::to_string(columns), [&](Builder& b) {
      const auto x = input(b, "x", DType::kF32, {1000, columns});
      b.graph().output("s", b.reduce("sum", x, {0}, false));
      b.graph().output("m", b.mean(b.mul(x, x), {0}, false));
    });
  }
  for (int64_t n : {7, 64, 100, 5000}) {
    batch.add("scan" + std::to_string(n), [&](Builder& b) {
      b.graph().output(
          "y", b.emit(Op::kScan, {input(b, "x", DType::kF32, {9, n})},
                      {{"kind", "sum"}, {"dim", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}}));
    });
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
