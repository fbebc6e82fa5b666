// What only a GPU's mapping has: teams of every size, rows that share a block with column sums, tiles, odd ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "base/file/file.h"
#include "heddle/error.h"
#include "ir/text/text.h"
#include "jit/cuda/nvrtc.h"
#include "machine.h"
#include "tests/instances.h"
#include "tests/machine_code.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

TEST(CudaStitch, RowsOfEveryLength) {
  Batch batch;
  for (int64_t n : {1, 2, 3, 31, 32, 36, 100, 128, 768, 1000, 1024, 4099, 5000, 33000, 70000}) {
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

// What the last step reads, of which not every thread has one, is asked for ahead, as it lies in memory.
TEST(CudaStitch, RowsWhoseLastStepIsCut) {
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    for (int64_t n : {36, 44, 250, 1000, 1096}) {
      const std::string name = std::string(to_string(dtype)) + " " + std::to_string(n);
      batch.add("normalised " + name, [&, n, dtype](Builder& b) {
        const auto x = input(b, "x", dtype, {67, n});
        const auto centred = b.sub(x, b.mean(x, {1}, true));
        b.graph().output("y", b.mul(centred, input(b, "g", dtype, {n})));
        b.graph().output("v", b.mean(b.mul(centred, centred), {1}, false));
      });
      // One operand has fewer dimensions than the other.
      batch.add("products " + name, [&, n, dtype](Builder& b) {
        const auto product = b.mul(input(b, "x", dtype, {3, 1, n}), input(b, "z", dtype, {3, 50, n}));
        const auto sums = b.reduce("sum", product, {2}, false);
        b.graph().output("y", b.sub(sums, b.reduce("max", sums, {1}, true)));
      });
    }
  }
  batch.run();
}

// Several iterations of a small team one after the other, each with results in shared memory that the last step reads.
TEST(CudaStitch, TurnsShareScratch) {
  Target target = test_target();
  target.cuda.sms = 1;
  Batch batch(target);
  batch.add("turns", [&](Builder& b) {
    const auto sums = b.reduce("sum", input(b, "x", DType::kU8, {17011, 8, 4}), {2}, false);
    b.graph().output("y", b.sub(sums, b.reduce("max", sums, {1}, true)));
  });
  batch.run();
}

// A thread that has all columns reduces them in turn, too.
TEST(CudaStitch, ColumnsThatAreReducedAgain) {
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    for (int64_t n : {2, 3, 4, 8, 33}) {
      batch.add(std::string(to_string(dtype)) + std::to_string(n), [&](Builder& b) {
        const auto columns = b.reduce("max", input(b, "x", dtype, {3, n}), {0}, false);
        b.graph().output("y", b.reduce("sum", b.unary(Op::kTanh, columns), {0}, false));
      });
      batch.add("with columns " + std::string(to_string(dtype)) + std::to_string(n), [&](Builder& b) {
        const auto columns = b.reduce("sum", input(b, "x", dtype, {5, n}), {0}, false);
        b.graph().output("c", columns);
        b.graph().output("y", b.sub(columns, b.reduce("max", columns, {0}, true)));
      });
    }
  }
  batch.run();
}

TEST(CudaStitch, OnePlusErf) {
  Batch batch;
  for (double scale : {1.0, 4.0, 1e4}) {
    batch.add(
        "of a variable times " + std::to_string(scale),
        [&](Builder& b) {
          const auto x = b.binary(Op::kMul, input(b, "x", DType::kF32, {5000}), scale);
          b.graph().output("y", b.binary(Op::kAdd, b.unary(Op::kErf, x), 1.0));
        },
        3e-7);
  }
  batch.run();
}

// Rows in several waves whose threads keep so much that what all rows share is copied to shared memory.
void two_layer_norms(Builder& b, int64_t m, int64_t n, DType dtype) {
  const auto x = input(b, "x", dtype, {m, n}), r = input(b, "r", dtype, {m, n});
  const auto g = input(b, "g", dtype, {n}), c = input(b, "c", dtype, {n});
  const auto normalised = [&](ValueId v) {
    const auto centred = b.sub(v, b.mean(v, {1}, true));
    const auto variance = b.binary(Op::kAdd, b.mean(b.mul(centred, centred), {1}, true), 1e-5);
    return b.add(b.mul(b.mul(centred, b.unary(Op::kRsqrt, variance)), g), c);
  };
  const auto h = normalised(b.add(x, r));
  const auto erf = b.unary(Op::kErf, b.binary(Op::kMul, h, std::sqrt(0.5)));
  const auto gelu = b.mul(b.binary(Op::kMul, h, 0.5), b.binary(Op::kAdd, erf, 1.0));
  b.graph().output("y", normalised(b.add(gelu, x)));
}
TEST(CudaStitch, WhatRowsShareIsCopiedAhead) {
  Target target = test_target();
  target.cuda.sms = 1;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    ir::Graph graph;
    Builder b(graph);
    two_layer_norms(b, 24, dtype == DType::kF32 ? 768 : 1536, dtype);
    const auto group = schedule::schedule(graph, whole_graph(graph), target);
    ASSERT_EQ(group.kernels.size(), 1u);
    const auto& kernel = group.kernels[0];
    const std::string text = codegen::emit(schedule::plan_kernel(kernel, target), target).text;
    EXPECT_NE(text.find("copy_async_l1_resident"), std::string::npos) << text;
  }
  Batch batch(target);
  for (int64_t n : {768, 760, 762, 1150}) {  // a cut step; narrower accesses
    const std::string name = std::to_string(n);
    batch.add("two layer norms " + name, [&](Builder& b) { two_layer_norms(b, 24, n, DType::kF32); });
    batch.add("two layer norms in f16 " + name, [&](Builder& b) { two_layer_norms(b, 24, 2 * n, DType::kF16); });
  }
  batch.run();
}

// A compiler folded the signs into minima of three, and lost some (tile/arch/sm80/integer.h).
TEST(CudaStitch, ExtremesOfNegatedIntegers) {
  Batch batch;
  for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU32}) {
    for (const char* kind : {"min", "max"}) {
      const std::string name = kind + std::string(to_string(dtype));
      batch.add(
          "rows " + name,
          [&](Builder& b) {
            b.graph().output("y", b.reduce(kind, b.unary(Op::kNeg, input(b, "x", dtype, {16, 33, 48})), {0, 2}, false));
          },
          1e-4, 100);
      batch.add(
          "elements " + name,
          [&](Builder& b) {
            const Op op = kind == std::string("min") ? Op::kMin : Op::kMax;
            const auto negated = [&](const char* x) { return b.unary(Op::kNeg, input(b, x, dtype, {999})); };
            b.graph().output("y", b.binary(op, b.binary(op, negated("p"), negated("q")), negated("r")));
            b.graph().output("z", b.binary(op, b.binary(op, input(b, "s", dtype, {999}), negated("t")), negated("u")));
          },
          1e-4, 100);
    }
  }
  batch.run();
}

// A thread that does a whole iteration by itself keeps its columns' results where stores of another width find them.
TEST(CudaStitch, PositionsOfAThreadThatGoesOverAllColumns) {
  Batch batch;
  for (int64_t rows : {3, 5, 9}) {
    const std::string m = std::to_string(rows);
    batch.add_text("rows " + m, "graph(%x: f32[" + m + ",2]) { %0 = reduce(%x) {dims = [0], kind = \"min\"} " +
                                    "%1 = broadcast(%0) {dims = [1], shape = [" + m + ",2]} " +
                                    "%2 = arg_reduce(%1) {dim = 1, kind = \"max\", last = 0} " +
                                    "%3 = slice(%2) {limits = [" + m + "], starts = [1], strides = [1]} " +
                                    "return \"y\" = %3 }");
  }
  batch.run();
}

// The emulator's compiler dropped terms of sums like these (jit/cuda/emulated.cc).
TEST(CudaStitch, SumsOfPairsOfIntegers) {
  Batch batch;
  for (DType dtype : {DType::kI32, DType::kI64}) {
    for (int64_t n : {26, 50, 104}) {
      batch.add(std::string(to_string(dtype)) + std::to_string(n),
                [&](Builder& b) { b.graph().output("y", b.reduce("sum", input(b, "x", dtype, {n}), {0})); });
    }
  }
  batch.run();
}

// A branch on a divisor tells the compiler what it is where it is -1. Beside each other these make other branches.
TEST(CudaStitch, DivisionByWhatMayBeMinusOne) {
  Batch batch;
  for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    for (Op op : {Op::kDiv, Op::kMod}) {
      const auto add = [&](const char* name, const auto& operands) {
        batch.add(fmt::format("{} {} {}", name, to_string(dtype), to_string(op)), [&](Builder& b) {
          const auto inverse = b.unary(Op::kNot, input(b, "x", dtype, {16}));
          const auto [dividend, divisor] = operands(b, inverse);
          b.graph().output("z", b.binary(op, dividend, divisor));
        });
      };
      add("itself", [](Builder&, auto x) { return std::pair(x, x); });
      add("negated", [](Builder& b, auto x) { return std::pair(b.unary(Op::kNeg, x), x); });
      add("other", [&](Builder& b, auto x) { return std::pair(input(b, "y", dtype, {16}), x); });
    }
  }
  batch.run();
}

// A grid that runs at once, with barriers: for a device so small that it does not take an emulator all day.
TEST(CudaStitch, StatisticsOfTheWholeGrid) {
  for (int sms : {5, 24}) {
    Target target = test_target();
    target.cuda.sms = sms;
    Batch batch(target);
    for (DType dtype : {DType::kF32, DType::kF16}) {
      const int64_t columns = sms == 24 ? 16 : dtype == DType::kF32 ? 4 : 8;
      for (int64_t rows : {20000, 19999}) {
        batch.add(
            "grid" + std::to_string(rows) + std::string(to_string(dtype)),
            [&, rows = rows, dtype = dtype](Builder& b) {
              const auto x = b.cast(input(b, "x", dtype, {rows, columns}), DType::kF32);
              const auto centred = b.sub(x, b.mean(x, {0}, true));
              const auto variance = b.mean(b.mul(centred, centred), {0}, true);
              b.graph().output("y", b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5))));
            },
            1e-3);
      }
    }
    batch.run();
  }
}

// Few long rows: each lies in several blocks of a cluster.
TEST(CudaStitch, RowsOfAGang) {
  Batch batch;
  for (int64_t n : {4096, 9000, 40960}) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      batch.add(
          "norm" + std::to_string(n) + std::string(to_string(dtype)),
          [&, n = n, dtype = dtype](Builder& b) {
            const auto x = b.cast(input(b, "x", dtype, {6, n}), DType::kF32);
            const auto centred = b.sub(x, b.mean(x, {1}, true));
            const auto variance = b.mean(b.mul(centred, centred), {1}, true);
            b.graph().output("y", b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5))));
            b.graph().output("most", b.reduce("max", x, {1}, false));
          },
          1e-3);
    }
    batch.add(
        "far" + std::to_string(n),
        [&, n = n](Builder& b) {
          const auto x = b.binary(Op::kAdd, input(b, "x", DType::kF32, {5, n}), 300.0);
          const auto centred = b.sub(x, b.mean(x, {1}, true));
          b.graph().output("variance", b.mean(b.mul(centred, centred), {1}, false));
        },
        1e-3);
    batch.add("best" + std::to_string(n), [&, n = n](Builder& b) {
      const auto x = input(b, "x", DType::kF32, {3, n});
      b.graph().output(
          "at", b.emit(Op::kArgReduce, {x}, {{"kind", std::string("max")}, {"dim", int64_t{1}}, {"last", true}}));
    });
  }
  // More than a cluster keeps on the chip.
  batch.add(
      "long",
      [](Builder& b) {
        const auto x = b.cast(input(b, "x", DType::kF16, {2, 420001}), DType::kF32);
        const auto centred = b.sub(x, b.mean(x, {1}, true));
        b.graph().output("variance", b.mean(b.mul(centred, centred), {1}, false));
      },
      1e-3);
  batch.run();
}

// Operands in the orders NCHW and NHWC, of which the second is spread over windows, and a result in a third order.
TEST(CudaStitch, ThreeOrders) {
  Batch batch;
  batch.add(
      "chwn",
      [](Builder& b) {
        const auto x = input(b, "x", DType::kF32, {33, 40, 4, 32}),
                   windows = input(b, "w", DType::kF16, {33, 2, 16, 40});
        const auto apart = b.reshape(b.transpose(windows, {0, 3, 1, 2}), {33, 40, 2, 1, 16, 1});
        const auto spread = b.reshape(b.broadcast_to(apart, {33, 40, 2, 2, 16, 2}), {33, 40, 4, 32});
        const auto y = b.cast(b.mul(x, b.cast(spread, DType::kF32)), DType::kF16);
        b.graph().output("y", b.transpose(y, {1, 2, 3, 0}));
      },
      1e-3);
  batch.add(
      "rows that are normalised and then transposed",
      [](Builder& b) {
        const auto x = b.cast(input(b, "x", DType::kF16, {4, 49, 136}), DType::kF32);
        const auto centred = b.sub(x, b.mean(x, {2}, true));
        const auto variance = b.mean(b.mul(centred, centred), {2}, true);
        const auto y = b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5)));
        b.graph().output("y", b.transpose(b.cast(y, DType::kF16), {0, 2, 1}));
      },
      1e-2);
  batch.run();
}

// Rows that are normalised, changed and normalised again, far from zero too.
TEST(CudaStitch, RowsNormalisedTwice) {
  Batch batch;
  for (int64_t n : {33, 250, 768, 1030, 4099}) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      batch.add(
          "norms" + std::to_string(n) + std::string(to_string(dtype)),
          [&, n = n, dtype = dtype](Builder& b) {
            const auto x = b.cast(input(b, "x", dtype, {37, n}), DType::kF32);
            const auto normal = [&](ValueId v) {
              const auto centred = b.sub(v, b.mean(v, {1}, true));
              const auto variance = b.mean(b.mul(centred, centred), {1}, true);
              return b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5)));
            };
            const auto y = normal(b.binary(Op::kAdd, x, 20.0));
            const auto gate = b.binary(Op::kAdd, b.unary(Op::kErf, b.binary(Op::kMul, y, 0.70710678)), 1.0);
            b.graph().output("y", b.cast(normal(b.add(x, b.mul(y, gate))), dtype));
          },
          dtype == DType::kF32 ? 1e-3 : 1e-2);
    }
  }
  batch.run();
}

// Attention of one query: what is put together of its parts is one kernel with them, whose weights are few.
TEST(CudaStitch, PartsOfAConcatenation) {
  Batch batch;
  for (const auto& [keys, n] : {std::pair<int64_t, int64_t>{100, 36}, {17, 5}, {300, 64}}) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      batch.add(
          "attention" + std::to_string(keys) + std::string(to_string(dtype)),
          [&, keys = keys, n = n, dtype = dtype](Builder& b) {
            const auto q = b.cast(input(b, "q", dtype, {6, n}), DType::kF32);
            const auto k = b.cast(input(b, "k", dtype, {6, keys, n}), DType::kF32);
            const auto scores = b.reduce("sum", b.mul(b.broadcast(q, {6, keys, n}, {0, 2}), k), {2}, false);
            const auto weights = b.softmax(b.unary(Op::kTanh, scores), {1});
            const auto z = b.reduce("sum", b.mul(b.broadcast(weights, {6, keys, n}, {0, 1}), k), {1}, false);
            b.graph().output("z", b.cast(z, dtype));
            const std::vector<ValueId> parts = {q, z, b.mul(q, z)};
            b.graph().output("c", b.cast(b.concat(parts, 1), dtype));
          },
          dtype == DType::kF32 ? 1e-3 : 1e-2);
    }
  }
  batch.run();
}

// Few columns of many rows: each block of a cluster walks down some of them.
TEST(CudaStitch, ColumnsOfAGang) {
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    for (int64_t n : {7, 40, 64}) {
      for (int64_t m : {1000, 1999}) {
        batch.add(
            "columns" + std::to_string(m) + "x" + std::to_string(n) + std::string(to_string(dtype)),
            [&, m = m, n = n, dtype = dtype](Builder& b) {
              const auto x = b.cast(input(b, "x", dtype, {m, n}), DType::kF32);
              b.graph().output("s", b.reduce("sum", x, {0}, false));
              b.graph().output("scale", b.unary(Op::kSqrt, b.mean(b.mul(x, x), {0}, false)));
            },
            1e-3);
      }
    }
  }
  batch.add("least of the middle", [&](Builder& b) {
    b.graph().output("y", b.reduce("min", input(b, "x", DType::kF32, {2, 900, 32}), {1}, false));
  });
  batch.add("where", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {1500, 32});
    b.graph().output("at",
                     b.emit(Op::kArgReduce, {x}, {{"kind", std::string("min")}, {"dim", int64_t{0}}, {"last", false}}));
  });
  batch.run();
}

TEST(CudaStitch, RowsOnOneMultiprocessor) {
  Target target = test_target();
  target.cuda.sms = 1;
  Batch batch(target);
  for (int64_t n : {1000, 33000}) {
    batch.add("softmax" + std::to_string(n), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF32, {2, n}), {1}));
    });
  }
  batch.run();
}

// Updates that share nothing but a launch.
TEST(CudaStitch, SmallKernelsSideBySide) {
  Batch batch;
  batch.add("updates", [&](Builder& b) {
    for (int i = 0; i < 12; ++i) {
      const Shape shape = i % 3 == 0 ? Shape{40, 24} : i % 3 == 1 ? Shape{17} : Shape{768};
      const auto p = input(b, "p" + std::to_string(i), DType::kF32, shape);
      const auto g = input(b, "g" + std::to_string(i), i % 2 == 0 ? DType::kF32 : DType::kF16, shape);
      b.graph().output("y" + std::to_string(i), b.sub(p, b.binary(Op::kMul, b.cast(g, DType::kF32), 0.1)));
    }
  });
  batch.run();
}

// Columns longer than a cluster holds: blocks of the grid that hand each other sums, moments and places through memory.
TEST(CudaStitch, ColumnsOfTheWholeGrid) {
  Target target = test_target();
  target.cuda.model.chip.copy_tbps *= 24.0 / target.cuda.sms;
  target.cuda.sms = 24;  // more than the clusters of these columns keep busy
  Batch batch(target);
  const auto add = [&](const std::string& name, const std::function<void(Builder&)>& build, double tolerance) {
    ir::Graph graph;
    Builder builder(graph);
    build(builder);
    int across = 0;
    for (const auto& k : schedule::schedule(graph, whole_graph(graph), target).kernels) {
      across += static_cast<int>(codegen::emit(schedule::plan_kernel(k, target), target).launches[0].cooperative);
    }
    EXPECT_EQ(across, 1) << name;
    batch.add(name, build, tolerance);
  };
  const auto add_statistics = [&](const std::string& name, DType dtype, Shape shape, int64_t dim) {
    add(
        name,
        [&](Builder& b) {
          const auto x = b.cast(input(b, "x", dtype, shape), DType::kF32);
          const auto centred = b.sub(x, b.mean(x, {dim}, true));
          const auto variance = b.mean(b.mul(centred, centred), {dim}, true);
          b.graph().output("y", b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5))));
          b.graph().output("v", variance);
        },
        1e-3);
  };
  add_statistics("one cta_group", DType::kF32, {40001, 16}, 0);
  add_statistics("three cta_groups", DType::kF16, {23101, 96}, 0);
  add_statistics("narrow", DType::kF32, {50001, 8}, 0);
  add_statistics("others", DType::kF32, {2, 24001, 8}, 1);
  for (DType dtype : {DType::kF32, DType::kI32, DType::kBF16}) {
    add(
        "most and where" + std::string(to_string(dtype)),
        [&](Builder& b) {
          const auto x = input(b, "x", dtype, {20003, 16});
          b.graph().output("y", b.sub(x, b.reduce("max", x, {0}, true)));
          b.graph().output("arg", b.emit(Op::kArgReduce, {x},
                                         {{"kind", std::string("max")}, {"dim", int64_t{0}}, {"last", int64_t{0}}}));
        },
        0);
  }
  batch.run();
}

TEST(CudaStitch, TilesAndEnds) {
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kI64, DType::kBool}) {
    const std::string name(to_string(dtype));
    batch.add("transpose" + name, [&](Builder& b) {
      b.graph().output("y", b.transpose(input(b, "x", dtype, {3, 70, 45}), {0, 2, 1}));
    });
    batch.add("whole" + name, [&](Builder& b) {
      b.graph().output("y", b.transpose(input(b, "x", dtype, {128, 64}), {1, 0}));
    });
    for (int64_t n : {1, 7, 1001, 4096}) {
      batch.add("copy" + name + std::to_string(n), [&](Builder& b) {
        const auto x = input(b, "x", dtype, {n});
        b.graph().output("y", b.concat(std::vector<ValueId>{x, x}, 0));
      });
    }
  }
  batch.add("pad and concat in vectors", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {6, 32}), y = input(b, "y", DType::kF32, {6, 16});
    const auto both = b.concat(std::vector<ValueId>{x, y, x}, 1);
    b.graph().output("z",
                     b.emit(Op::kPad, {both, b.scalar(DType::kF32, 0.5)},
                            {{"low", ir::Ints{0, 4}}, {"high", ir::Ints{1, 3}}, {"mode", std::string("constant")}}));
  });
  batch.run();
}

// Through a parameter of its own a kernel would load by ld.global.nc, which an early one must not.
TEST(CudaStitch, EarlyKernelsTakePointersBehindTheWait) {
  ir::Graph graph;
  Builder b(graph);
  const ValueId x = graph.parameter("x", {DType::kF32, {64, 300}}), y = graph.parameter("y", {DType::kF32, {300}});
  graph.output("sum", b.add(b.softmax(x, {1}), y));
  const Target target = Target::cuda_h200(1);
  const auto group = schedule::schedule(graph, whole_graph(graph), target);
  ASSERT_EQ(group.kernels.size(), 1u);
  const codegen::KernelSource source = codegen::emit(schedule::plan_kernel(group.kernels[0], target), target);
  ASSERT_TRUE(source.launches.at(0).early);
  const size_t wait = source.text.rfind("grid_dependency_wait()");
  ASSERT_NE(wait, std::string::npos);
  size_t pointers = 0;
  for (size_t at = wait; (at = source.text.find("launder_after_wait(", at + 1)) != std::string::npos;) ++pointers;
  EXPECT_EQ(pointers, group.kernels[0].desc.operands.size()) << source.text;
}

// The suite of memory-bound graphs as machine code, without spills: on an ordinary run each for one architecture.
TEST(CudaStitch, TheSuiteCompilesForEveryArchitecture) {
  try {
    jit::find_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  for (size_t turn = 0;
       const char* name :
       {"fig7_8192x1024", "fig7_64x30000", "fig7_750000x32", "lnx2_4096x768", "lnbwd_16384x768", "bnstat_8192x256",
        "bnstat_100352x64", "softmax_mask_384x128x128", "groupnorm_silu_2x320x64x64", "dien_attn_256x100x36",
        "f16/fig7_64x30000", "f16/lnx2_4096x768", "f16/lnbwd_16384x768", "f16/dien_attn_256x100x36"}) {
    const ir::Graph graph = ir::parse(MappedFile::open(std::string(HEDDLE_SUITE) + "/" + name + ".hir")->text());
    for (const bool old : {false, true}) {
      Target target = Target::cuda_h200(2);
      if (old) target.cuda.sm = 80, target.cuda.sms = 108, target.cuda.shared_bytes_per_block = 163 << 10;
      const auto group = schedule::schedule(graph, whole_graph(graph), target);
      // A reduction that has to end before its readers begin costs a kernel more.
      const auto is = [&](const char* part) { return std::string(name).find(part) != std::string::npos; };
      EXPECT_LE(group.kernels.size(), is("fig7") || is("dien") ? 1u : 3u) << name;
      if (turn++ % 4 % 3 != 0 && !test::takes_all_instances()) continue;
      std::vector<codegen::KernelSource> sources;
      for (const auto& k : group.kernels) sources.push_back(codegen::emit(schedule::plan_kernel(k, target), target));
      std::vector<const codegen::KernelSource*> all;
      for (const auto& source : sources) all.push_back(&source);
      const std::string unit = codegen::translation_unit(all), isa = target.cuda.architecture();
      EXPECT_NO_THROW(EXPECT_EQ(test::find_wrong_loads(jit::compile_cubin(unit, isa, false).bytes), "")) << name;
    }
  }
}

// Rows that fill the registers of a warp, and of a block.
TEST(CudaStitch, GradientsOfNormsDoNotSpill) {
  try {
    jit::find_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Target target = Target::cuda_h200(2);
  const auto suite = std::string(MappedFile::open(HEDDLE_SUITE "/f16/lnbwd_16384x768.hir")->text());
  for (const char* width : {"1024", "8192"}) {
    const ir::Graph graph = ir::parse(std::regex_replace(suite, std::regex("\\b768\\b"), width));
    const auto group = schedule::schedule(graph, whole_graph(graph), target);
    const codegen::KernelSource rows = codegen::emit(schedule::plan_kernel(group.kernels.at(0), target), target);
    EXPECT_NO_THROW(jit::compile_cubin(codegen::translation_unit({&rows}), target.cuda.architecture(), false)) << width;
  }
}

// Blocks of a whole GPU's grid hand each other packets of 16 bytes, of which a column's sum takes four: they are read
// at once all the same.
TEST(CudaStitch, PacketsOfAGridAreReadWhole) {
  try {
    jit::find_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Target target = Target::cuda_h200(2);
  for (const int64_t columns : {8, 16, 32}) {
    ir::Graph graph;
    Builder b(graph);
    const ValueId x = graph.parameter("x", {DType::kF32, {200000, columns}});
    graph.output("y", b.sub(x, b.mean(x, {0}, true)));
    const auto group = schedule::schedule(graph, whole_graph(graph), target);
    ASSERT_EQ(group.kernels.size(), 1u);
    const codegen::KernelSource source = codegen::emit(schedule::plan_kernel(group.kernels[0], target), target);
    EXPECT_TRUE(source.launches.at(0).cooperative) << columns;
    const std::string unit = codegen::translation_unit({&source});
    EXPECT_EQ(test::find_wrong_loads(jit::compile_cubin(unit, target.cuda.architecture(), false).bytes), "") << unit;
  }
}

}  // namespace
}  // namespace heddle::testing
