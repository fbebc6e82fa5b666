#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

ValueId layer_norm(Builder& b, ValueId x, ValueId scale, ValueId shift) {
  const int64_t last = b.rank(x) - 1;
  const ValueId centred = b.sub(x, b.mean(x, {last}, true));
  const ValueId variance = b.mean(b.mul(centred, centred), {last}, true);
  const ValueId r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5));
  return b.add(b.mul(b.mul(centred, r), scale), shift);
}

ValueId gelu(Builder& b, ValueId x) {
  const ValueId e = b.unary(Op::kErf, b.binary(Op::kMul, x, 0.70710678));
  return b.mul(b.binary(Op::kMul, x, 0.5), b.binary(Op::kAdd, e, 1.0));
}

TEST(Stitch, Elementwise) {
  Batch batch;
  for (int64_t n : {1, 5, 16, 37, 1000}) {
    batch.add("gelu" + std::to_string(n), [&](Builder& b) {
      b.graph().output("y", gelu(b, input(b, "x", DType::kF32, {3, n})));
    });
  }
  for (Shape w : {Shape{5, 1}, Shape{19}, Shape{4, 1, 1}, Shape{1, 1, 19}, Shape{}}) {
    batch.add("bias" + to_string(w), [&](Builder& b) {
      b.graph().output("y", b.add(input(b, "x", DType::kF32, {4, 5, 19}), input(b, "w", DType::kF32, w)));
    });
  }
  batch.add("several outputs", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {7, 33}), y = input(b, "z", DType::kF32, {7, 33});
    const auto s = b.add(x, y);
    b.graph().output("sum", s);
    b.graph().output("relu", b.binary(Op::kMax, s, 0.0));
    b.graph().output("less", b.binary(Op::kLt, x, y));
    b.graph().output("other", b.unary(Op::kAbs, input(b, "w", DType::kF32, {5})));
  });
  batch.add("big", [&](Builder& b) { b.graph().output("y", gelu(b, input(b, "x", DType::kF32, {301, 1009}))); });
  batch.run();
}

// Rows, columns and both of the same data, with parts of the optimiser left out.
TEST(Stitch, SwitchesGiveTheSame) {
  for (const schedule::StitchOptions& options :
       {schedule::StitchOptions{.adaptive_mapping = false}, schedule::StitchOptions{.data_reuse = false},
        schedule::StitchOptions{.dominant_merging = false},
        schedule::StitchOptions{.adaptive_mapping = false, .data_reuse = false, .dominant_merging = false}}) {
    Batch batch(test_target(), options);
    for (const Shape& shape : {Shape{37, 5}, Shape{3, 1009}, Shape{2048, 96}}) {
      batch.add("norm " + to_string(shape), [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, shape), g = input(b, "g", DType::kF32, {shape[1]});
        b.graph().output("y", gelu(b, layer_norm(b, x, g, g)));
      });
      batch.add("rows and columns " + to_string(shape), [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, shape), centred = b.sub(x, b.mean(x, {1}, true));
        b.graph().output("y", centred);
        b.graph().output("of columns", b.reduce("sum", b.mul(centred, x), {0}));
        b.graph().output("most", b.reduce("max", x, {1}));
      });
      batch.add("statistics of columns " + to_string(shape), [&](Builder& b) {
        const ValueId x = input(b, "x", DType::kF32, shape), centred = b.sub(x, b.mean(x, {0}, true));
        const ValueId variance = b.mean(b.mul(centred, centred), {0}, true);
        b.graph().output("y", b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5))));
      });
    }
    batch.run();
  }
}

TEST(Stitch, EveryUnary) {
  Batch batch;
  for (Op op : {Op::kNeg,  Op::kAbs,  Op::kSign,  Op::kFloor, Op::kCeil, Op::kRound, Op::kTrunc,
                Op::kExp,  Op::kExp2, Op::kExpm1, Op::kSin,   Op::kCos,  Op::kTan,   Op::kAtan,
                Op::kSinh, Op::kCosh, Op::kTanh,  Op::kAsinh, Op::kErf,  Op::kErfc}) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
      batch.add(
          std::string(ir::to_string(op)) + std::string(to_string(dtype)),
          [&](Builder& b) { b.graph().output("y", b.unary(op, input(b, "x", dtype, {45}))); },
          dtype == DType::kF32 ? 1e-4 : 0);
    }
  }
  for (Op op : {Op::kSqrt, Op::kRsqrt, Op::kLog, Op::kLog1p, Op::kLog2, Op::kAsin, Op::kAcos, Op::kAtanh, Op::kAcosh}) {
    batch.add(
        std::string(ir::to_string(op)),
        [&](Builder& b) {
          const auto x = b.unary(Op::kAbs, input(b, "x", DType::kF32, {45}));
          const auto inside = b.binary(Op::kMul, x, 0.49);
          b.graph().output("y", b.unary(op, op == Op::kAcosh ? b.binary(Op::kAdd, x, 1.0) : inside));
        },
        1e-4);
  }
  for (DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kI4}) {
    batch.add("int" + std::string(to_string(dtype)), [&](Builder& b) {
      const auto x = input(b, "x", dtype, {45});
      b.graph().output("not", b.unary(Op::kNot, x));
      if (is_signed_int(dtype)) {
        b.graph().output("neg", b.unary(Op::kNeg, x));
        b.graph().output("abs", b.unary(Op::kAbs, x));
        b.graph().output("sign", b.unary(Op::kSign, x));
      }
    });
  }
  batch.run();
}

// Infinities give the sign, NaN stays. Subnormal results are scaled, since comparisons are relative to 1 at least.
TEST(Stitch, SoftsignOfEdges) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {kInf,   -kInf,    NAN,  0.0F,  -0.0F,   1e-38F,   -1e-38F, 1e-45F, 3e38F,
                                    -3e38F, 1.2e-38F, 1.0F, -1.0F, 65504.F, -65504.F, 0.3F,    1e9F,   -7.5F};
  const auto count = static_cast<int64_t>(edges.size());
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    batch.add(
        "softsign of edges " + std::string(to_string(dtype)),
        [&](Builder& b) {
          const auto x = b.cast(b.constant(Tensor::of<float>(DType::kF32, {count}, edges)), dtype);
          const auto y = b.unary(Op::kSoftsign, x);
          b.graph().output("y", y);
          if (size_of(dtype) >= 4) b.graph().output("scaled", b.binary(Op::kMul, b.cast(y, DType::kF32), 0x1p126));
        },
        dtype == DType::kF32 ? 1e-6 : 0);
    batch.add("softsign " + std::string(to_string(dtype)), [&](Builder& b) {
      b.graph().output("y", b.unary(Op::kSoftsign, input(b, "x", dtype, {5, 67})));
    });
  }
  batch.run();
}

TEST(Stitch, EveryBinary) {
  Batch batch;
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64, DType::kI32, DType::kI8, DType::kU8,
                      DType::kU32, DType::kU4, DType::kI2}) {
    batch.add(
        "binary" + std::string(to_string(dtype)),
        [&](Builder& b) {
          const auto x = input(b, "x", dtype, {3, 21}), y = input(b, "z", dtype, {3, 21});
          for (Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMax, Op::kMin, Op::kEq, Op::kNe, Op::kLt, Op::kLe,
                        Op::kGt, Op::kGe}) {
            if (op == Op::kDiv && dtype == DType::kBF16) continue;  // a quotient near a tie, doubly rounded
            b.graph().output(std::string(ir::to_string(op)), b.binary(op, x, y));
          }
          b.graph().output("rem", b.binary(Op::kRem, x, y));
          b.graph().output("mod", b.binary(Op::kMod, x, y));
          if (!is_float(dtype)) {
            for (Op op : {Op::kAnd, Op::kOr, Op::kXor, Op::kPow}) {
              b.graph().output(std::string(ir::to_string(op)), b.binary(op, x, y));
            }
          } else {
            b.graph().output("pow", b.binary(Op::kPow, b.unary(Op::kAbs, x), y));
            b.graph().output("atan2", b.binary(Op::kAtan2, x, y));
          }
          b.graph().output("select", b.select(b.binary(Op::kLt, x, y), y, x));
        },
        dtype == DType::kF32 ? 1e-4 : 0);
  }
  batch.add("bool", [&](Builder& b) {
    const auto x = input(b, "x", DType::kBool, {3, 21}), y = input(b, "z", DType::kBool, {3, 21});
    for (Op op : {Op::kAnd, Op::kOr, Op::kXor, Op::kEq}) {
      b.graph().output(std::string(ir::to_string(op)), b.binary(op, x, y));
    }
    b.graph().output("not", b.unary(Op::kNot, x));
    b.graph().output("select", b.select(x, y, x));
    b.graph().output("cast", b.cast(x, DType::kF32));
    b.graph().output("masked", b.select(x, input(b, "f", DType::kF64, {3, 21}), b.full(DType::kF64, {3, 21}, -1)));
  });
  batch.run();
}

TEST(Stitch, Casts) {
  Batch batch;
  const std::vector<DType> types = {DType::kF64,        DType::kF32,    DType::kF16,    DType::kBF16, DType::kF8E4M3,
                                    DType::kF8E5M2Fnuz, DType::kF8E8M0, DType::kF4E2M1, DType::kI64,  DType::kI32,
                                    DType::kI16,        DType::kI8,     DType::kI4,     DType::kU64,  DType::kU8,
                                    DType::kU2,         DType::kBool};
  for (DType from : types) {
    batch.add(
        "cast " + std::string(to_string(from)),
        [&](Builder& b) {
          const auto x = input(b, "x", from, {2, 19});
          for (DType to : types) {
            if (to != from) b.graph().output(std::string(to_string(to)), b.cast(x, to));
          }
        },
        1e-6);
  }
  batch.run();
}

TEST(Stitch, RowReductions) {
  Batch batch;
  for (int64_t n : {1, 3, 16, 64, 100, 513}) {
    batch.add("softmax" + std::to_string(n), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF32, {5, 3, n}), {2}));
    });
    batch.add(
        "layer_norm" + std::to_string(n),
        [&](Builder& b) {
          b.graph().output("y", layer_norm(b, input(b, "x", DType::kF32, {7, n}), input(b, "g", DType::kF32, {n}),
                                           input(b, "h", DType::kF32, {n})));
        },
        2e-4);
  }
  batch.add(
      "residual layer_norm",
      [&](Builder& b) {
        const auto x = b.add(input(b, "x", DType::kF32, {6, 50}), input(b, "r", DType::kF32, {6, 50}));
        b.graph().output("sum", x);
        b.graph().output("y", layer_norm(b, x, input(b, "g", DType::kF32, {50}), input(b, "h", DType::kF32, {50})));
      },
      2e-4);
  batch.add(
      "two layer_norms and gelu",
      [&](Builder& b) {
        const auto g = input(b, "g", DType::kF32, {40}), h = input(b, "h", DType::kF32, {40});
        const auto x = input(b, "x", DType::kF32, {2, 9, 40});
        const auto y = b.add(x, gelu(b, layer_norm(b, x, g, h)));
        b.graph().output("y", layer_norm(b, y, g, h));
      },
      1e-3);
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI64, DType::kI32, DType::kU8}) {
      batch.add(
          std::string(kind) + std::string(to_string(dtype)),
          [&](Builder& b) {
            const auto x = input(b, "x", dtype, {4, 3, 35});
            b.graph().output("last", b.reduce(kind, x, {2}));
            b.graph().output("first", b.reduce(kind, x, {0}));
            b.graph().output("middle", b.reduce(kind, x, {1}));
            b.graph().output("both", b.reduce(kind, x, {0, 2}));
            b.graph().output("all", b.reduce(kind, x, {0, 1, 2}));
          },
          is_float(dtype) ? 1e-3 : 0);
    }
  }
  for (const char* kind : {"any", "all"}) {
    batch.add(kind, [&](Builder& b) {
      const auto x = input(b, "x", DType::kBool, {5, 4, 3});
      b.graph().output("last", b.reduce(kind, x, {2}));
      b.graph().output("first", b.reduce(kind, x, {0}));
      b.graph().output("used",
                       b.select(b.broadcast_to(b.reduce(kind, x, {2}, true), {5, 4, 3}), x, b.unary(Op::kNot, x)));
    });
  }
  batch.run();
}

TEST(Stitch, ArgReductions) {
  Batch batch;
  for (const char* kind : {"max", "min"}) {
    for (int64_t last : {0, 1}) {
      for (DType dtype : {DType::kF32, DType::kI8, DType::kF64, DType::kI64}) {
        batch.add(std::string(kind) + std::to_string(last) + std::string(to_string(dtype)), [&](Builder& b) {
          const auto x = input(b, "x", dtype, {3, 37, 5});
          for (int64_t d : {0, 1, 2}) {
            b.graph().output("d" + std::to_string(d),
                             b.emit(Op::kArgReduce, {x}, {{"kind", std::string(kind)}, {"dim", d}, {"last", last}}));
          }
        });
      }
    }
  }
  batch.run();
}

TEST(Stitch, Scans) {
  Batch batch;
  for (const char* kind : {"sum", "prod", "max", "min"}) {
    for (DType dtype : {DType::kF32, DType::kI64, DType::kF16}) {
      batch.add(
          std::string("scan ") + kind + std::string(to_string(dtype)),
          [&](Builder& b) {
            const auto x = b.binary(Op::kMul, input(b, "x", dtype, {3, 17, 21}), 1.0);
            for (int64_t k = 0; k < 6; ++k) {
              const auto y =
                  b.emit(Op::kScan, {x},
                         {{"kind", std::string(kind)}, {"dim", k % 3}, {"exclusive", k % 2}, {"reverse", k / 3}});
              b.graph().output("y" + std::to_string(k), b.binary(Op::kAdd, y, 1.0));
              if (k == 1) b.graph().output("scan", y);
            }
          },
          dtype == DType::kF16   ? 8e-3
          : dtype == DType::kF32 ? 1e-3
                                 : 0);
    }
  }
  batch.run();
}

TEST(Stitch, ColumnsAndGroups) {
  Batch batch;
  for (int64_t axis : {0, 1, 2}) {
    batch.add("softmax axis " + std::to_string(axis), [&](Builder& b) {
      b.graph().output("y", b.softmax(input(b, "x", DType::kF32, {6, 5, 70}), {axis}));
    });
  }
  batch.add(
      "group_norm",
      [&](Builder& b) {
        const auto x = input(b, "x", DType::kF32, {2, 12, 5, 7});
        const auto grouped = b.reshape(x, {2, 4, 105});
        const auto centred = b.sub(grouped, b.mean(grouped, {2}, true));
        const auto variance = b.mean(b.mul(centred, centred), {2}, true);
        const auto normal = b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5)));
        const auto back = b.reshape(normal, {2, 12, 5, 7});
        const auto y =
            b.add(b.mul(back, input(b, "g", DType::kF32, {12, 1, 1})), input(b, "h", DType::kF32, {12, 1, 1}));
        b.graph().output("y", b.mul(y, b.sigmoid(y)));
      },
      2e-4);
  for (Shape shape : {Shape{40, 3}, Shape{300, 64}, Shape{2000, 96}, Shape{64, 300}}) {
    batch.add(
        "batch_norm " + to_string(shape),
        [&](Builder& b) {
          const auto x = input(b, "x", DType::kF32, shape);
          const auto mean = b.mean(x, {0}, true);
          const auto centred = b.sub(x, mean);
          const auto variance = b.mean(b.mul(centred, centred), {0}, true);
          b.graph().output("y", b.mul(centred, b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5))));
          b.graph().output("mean", mean);
        },
        2e-4);
  }
  batch.add(
      "layer_norm backward",
      [&](Builder& b) {
        const Shape shape = {300, 64};
        const auto x = input(b, "x", DType::kF32, shape), dy = input(b, "dy", DType::kF32, shape);
        const auto g = input(b, "g", DType::kF32, {64});
        const auto centred = b.sub(x, b.mean(x, {1}, true));
        const auto r = b.unary(Op::kRsqrt, b.binary(Op::kAdd, b.mean(b.mul(centred, centred), {1}, true), 1e-5));
        const auto hat = b.mul(centred, r), scaled = b.mul(dy, g);
        const auto a = b.mean(scaled, {1}, true), c = b.mean(b.mul(scaled, hat), {1}, true);
        b.graph().output("dx", b.mul(b.sub(b.sub(scaled, a), b.mul(hat, c)), r));
        b.graph().output("dgamma", b.reduce("sum", b.mul(dy, hat), {0}));
        b.graph().output("dbeta", b.reduce("sum", dy, {0}));
      },
      5e-4);
  for (int64_t n : {1000, 100003, 1 << 20}) {
    batch.add(
        "full " + std::to_string(n),
        [&](Builder& b) {
          const auto x = input(b, "x", DType::kF32, {n});
          const auto mean = b.mean(x, {0}, true);
          b.graph().output("mean", mean);
          b.graph().output("max", b.reduce("max", x, {0}));
          b.graph().output("centred", b.sub(x, mean));
        },
        1e-4);
  }
  batch.add("mean over space", [&](Builder& b) {
    b.graph().output("y", b.mean(input(b, "x", DType::kF32, {2, 3, 7, 9}), {2, 3}));
    b.graph().output("z", b.mean(input(b, "w", DType::kF32, {2, 7, 9, 35}), {1, 2}));
  });
  batch.run();
}

TEST(Stitch, Layout) {
  Batch batch;
  const Shape shape = {3, 4, 5, 6};
  ir::Ints perm = {0, 1, 2, 3};
  while (std::next_permutation(perm.begin(), perm.end())) {
    batch.add("transpose " + to_string(perm),
              [&](Builder& b) { b.graph().output("y", b.transpose(input(b, "x", DType::kF32, shape), perm)); });
  }
  for (DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kU8, DType::kBool, DType::kF8E5M2}) {
    batch.add("wide transpose " + std::string(to_string(dtype)), [&](Builder& b) {
      b.graph().output("y", b.transpose(input(b, "x", dtype, {70, 131}), {1, 0}));
      b.graph().output("z", b.transpose(input(b, "w", dtype, {2, 33, 70}), {0, 2, 1}));
    });
  }
  batch.add("heads", [&](Builder& b) {
    const auto x = b.add(input(b, "x", DType::kF32, {2, 17, 48}), input(b, "w", DType::kF32, {48}));
    b.graph().output("y", b.transpose(b.reshape(x, {2, 17, 4, 12}), {0, 2, 1, 3}));
    b.graph().output("z", b.transpose(b.reshape(x, {2, 17, 4, 12}), {0, 2, 3, 1}));
  });
  batch.add("reshapes", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {6, 35});
    b.graph().output("a", b.reshape(x, {10, 21}));
    b.graph().output("b", b.transpose(b.reshape(x, {14, 15}), {1, 0}));
    b.graph().output("c", b.add(b.reshape(x, {5, 42}), input(b, "w", DType::kF32, {42})));
    b.graph().output("d", b.transpose(b.reshape(b.transpose(x, {1, 0}), {7, 30}), {1, 0}));
  });
  batch.add("depth to space", [&](Builder& b) {
    const auto x = b.reshape(input(b, "x", DType::kF32, {1, 2, 2, 3, 5, 7}), {1, 2, 2, 3, 5, 7});
    b.graph().output("y", b.reshape(b.transpose(x, {0, 3, 4, 1, 5, 2}), {1, 3, 10, 14}));
  });
  batch.add("slices", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {9, 50});
    b.graph().output("a", b.slice(x, {1, 3}, {8, 47}));
    b.graph().output("b", b.slice(x, {0, 1}, {9, 50}, {2, 3}));
    b.graph().output("c", b.emit(Op::kReverse, {x}, {{"dims", ir::Ints{1}}}));
    b.graph().output("d", b.emit(Op::kReverse, {x}, {{"dims", ir::Ints{0, 1}}}));
    const auto half = b.slice_dim(x, 1, 0, 25), rest = b.slice_dim(x, 1, 25, 50);
    b.graph().output("glu", b.mul(half, b.sigmoid(rest)));
    const std::vector<ValueId> rotated = {b.unary(Op::kNeg, rest), half};
    b.graph().output("rotary", b.concat(rotated, 1));
  });
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    batch.add(std::string("pad ") + mode, [&](Builder& b) {
      const auto x = input(b, "x", DType::kF32, {4, 30}), v = input(b, "v", DType::kF32, {});
      const auto pad = [&](ValueId of, ir::Ints low, ir::Ints high) {
        return b.emit(Op::kPad, {of, v}, {{"low", low}, {"high", high}, {"mode", std::string(mode)}});
      };
      b.graph().output("columns", pad(x, {0, 3}, {0, 2}));
      b.graph().output("rows", pad(x, {2, 0}, {1, 0}));
      b.graph().output("both", b.binary(Op::kMul, pad(x, {1, 1}, {2, 40}), 2.0));
      b.graph().output("twice", pad(pad(x, {1, 1}, {0, 0}), {0, 0}, {3, 3}));
      b.graph().output("sum", b.reduce("sum", pad(x, {1, 4}, {1, 4}), {1}));
    });
  }
  for (int64_t dim : {0, 1, 2}) {
    batch.add("concat " + std::to_string(dim), [&](Builder& b) {
      std::vector<ValueId> parts;
      for (int64_t extent : {3, 1, 20, 0, 7}) {
        Shape s = {4, 5, 6};
        s[static_cast<size_t>(dim)] = extent;
        parts.push_back(input(b, "x" + std::to_string(parts.size()), DType::kF32, s));
      }
      const auto y = b.concat(parts, dim);
      b.graph().output("y", b.binary(Op::kAdd, y, 1.0));
      b.graph().output("t", b.transpose(y, {2, 1, 0}));
      b.graph().output("m", b.reduce("max", y, {dim}));
    });
  }
  batch.run();
}

TEST(Stitch, Indexing) {
  Batch batch;
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    batch.add(
        "gather " + std::string(to_string(dtype)),
        [&](Builder& b) {
          const auto x = input(b, "x", DType::kF32, {7, 5, 33});
          const auto i = input(b, "i", dtype, {2, 3});
          for (int64_t d : {0, 1, 2}) b.graph().output("d" + std::to_string(d), b.gather(x, i, d));
          b.graph().output("sum", b.reduce("sum", b.gather(x, i, 0), {1}));
        },
        0, 5);
  }
  batch.add(
      "embedding layer_norm",
      [&](Builder& b) {
        const auto table = input(b, "t", DType::kF32, {40, 24}), i = input(b, "i", DType::kI64, {2, 9});
        const auto x = b.add(b.gather(table, i, 0), input(b, "p", DType::kF32, {9, 24}));
        b.graph().output("y", layer_norm(b, x, input(b, "g", DType::kF32, {24}), input(b, "h", DType::kF32, {24})));
      },
      5e-4, 40);
  batch.add(
      "gather_elements",
      [&](Builder& b) {
        const auto x = input(b, "x", DType::kF32, {5, 33}), i = input(b, "i", DType::kI64, {5, 33});
        b.graph().output("a", b.emit(Op::kGatherElements, {x, i}, {{"dim", int64_t{0}}}));
        b.graph().output("b", b.emit(Op::kGatherElements, {x, i}, {{"dim", int64_t{1}}}));
      },
      0, 5);
  batch.add(
      "gather_nd",
      [&](Builder& b) {
        const auto x = input(b, "x", DType::kF32, {4, 5, 6}), i = input(b, "i", DType::kI64, {4, 3, 2});
        b.graph().output("a", b.emit(Op::kGatherNd, {x, i}, {{"batch_dims", int64_t{0}}}));
        b.graph().output("b", b.emit(Op::kGatherNd, {x, i}, {{"batch_dims", int64_t{1}}}));
      },
      0, 4);
  batch.add("iota", [&](Builder& b) {
    const auto row = b.iota(DType::kI64, {20, 30}, 0), column = b.iota(DType::kI64, {20, 30}, 1);
    const auto x = input(b, "x", DType::kF32, {20, 30});
    const auto low = b.full(DType::kF32, {20, 30}, -1e9);
    b.graph().output("causal", b.softmax(b.select(b.binary(Op::kGe, row, column), x, low), {1}));
    b.graph().output("f", b.iota(DType::kF32, {3, 50}, 1));
    b.graph().output("u8", b.iota(DType::kU8, {3, 50}, 1));
  });
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
    batch.add("random " + std::string(to_string(dtype)), [&](Builder& b) {
      for (const char* kind : {"uniform", "normal"}) {
        b.graph().output(kind, b.emit(Op::kRandom, {},
                                      {{"kind", std::string(kind)},
                                       {"dtype", dtype},
                                       {"shape", ir::Ints{3, 41}},
                                       {"seed", int64_t{1234567}}}));
      }
    });
  }
  batch.run();
}

// Columns that are gathered lane by lane, and read again by a later sweep.
TEST(Stitch, GathersThatTwoSweepsRead) {
  Batch batch;
  for (const Shape& shape : {Shape{2, 1, 2}, Shape{5, 3, 8}, Shape{3, 40, 6}}) {
    batch.add(
        to_string(shape),
        [&](Builder& b) {
          const ValueId x = input(b, "x", DType::kF32, {27, shape[1], shape[2]});
          const ValueId at = input(b, "i", DType::kI32, shape);
          const ValueId y = b.emit(Op::kGatherElements, {x, at}, {{"dim", int64_t{0}}});
          b.graph().output("y", b.sub(y, b.reduce("max", y, {0}, true)));
        },
        0, 27);
  }
  batch.run();
}

TEST(Stitch, Edges) {
  Batch batch;
  batch.add("division of a row by one number", [&](Builder& b) {
    for (double by : {3.0, 49.0, 0.0, 1e-40, 3e38, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      const std::string name = std::to_string(b.graph().inputs().size());
      b.graph().output("y" + name, b.binary(Op::kDiv, input(b, "x" + name, DType::kF32, {40}), by));
    }
    const auto big = b.binary(Op::kMul, input(b, "big", DType::kF32, {40}), 1.6e38);
    b.graph().output("overflow", b.binary(Op::kDiv, big, 0.25));
  });
  batch.add("division of rows by numbers that may be tiny or huge", [&](Builder& b) {
    const float by[] = {1e-40F, -3e-45F, 3e38F, 2e-38F, 1.5F};
    const float of[] = {2e-40F, 1e-40F, 6e-45F, 0, 1e38F, -3e38F, -2e-38F, 1e-38F, 0, 3};
    const auto constant = [&](std::span<const float> values, Shape shape) {
      return b.constant(Tensor::of<float>(DType::kF32, std::move(shape), values));
    };
    const auto zero = b.mul(input(b, "x", DType::kF32, {5, 1}), b.scalar(DType::kF32, 0));  // no pass says so
    b.graph().output("y", b.div(b.add(zero, constant(of, {5, 2})), b.add(zero, constant(by, {5, 1}))));
  });
  batch.add("empty", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {0, 5});
    b.graph().output("y", b.binary(Op::kAdd, x, 1.0));
    b.graph().output("sum", b.reduce("sum", x, {0}));
    b.graph().output("max", b.reduce("max", x, {0}));
    b.graph().output("prod", b.reduce("prod", x, {0, 1}));
    b.graph().output("pad", b.pad(x, input(b, "v", DType::kF32, {}), {2, 0}, {1, 0}));
  });
  for (const Shape& shape : {Shape{0, 5}, {127, 0}, {0, 0}}) {
    batch.add("empty statistics " + to_string(shape), [&](Builder& b) {
      const auto x = input(b, "x", DType::kF32, shape);
      for (int64_t dim : {0, 1}) {
        const auto centred = b.sub(x, b.reduce("sum", x, {dim}, true));
        b.graph().output("y" + std::to_string(dim), centred);
        b.graph().output("v" + std::to_string(dim), b.reduce("sum", b.mul(centred, centred), {dim}, false));
      }
      b.graph().output("s", b.softmax(x, {1}));
    });
  }
  batch.add("scalars", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {});
    b.graph().output("y", b.unary(Op::kExp, x));
    b.graph().output("r", b.reduce("sum", x, {}));
    b.graph().output("f", b.broadcast_to(x, {3, 5}));
  });
  batch.add("ones", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {1, 1, 1});
    b.graph().output("y", b.softmax(x, {2}));
    b.graph().output("t", b.transpose(x, {2, 0, 1}));
  });
  batch.add("constants", [&](Builder& b) {
    b.graph().output("full", b.broadcast_to(b.scalar(DType::kF32, 2.5), {3, 5}));
    const float values[] = {1, 2, 3};
    const auto c = b.constant(Tensor::of<float>(DType::kF32, {3}, std::span<const float>(values)));
    b.graph().output("y", b.add(c, input(b, "x", DType::kF32, {4, 3})));
    b.graph().output("inf", b.broadcast_to(b.scalar(DType::kF32, -HUGE_VAL), {3}));
  });
  batch.add("input is used by a later reduction of a reduction", [&](Builder& b) {
    const auto x = input(b, "x", DType::kF32, {5, 6, 7});
    const auto s = b.reduce("sum", x, {2});
    b.graph().output("y", b.reduce("max", b.mul(s, s), {0}));
    b.graph().output("s", s);
  });
  batch.add("half softmax", [&](Builder& b) {
    b.graph().output("y", b.softmax(input(b, "x", DType::kF16, {5, 70}), {1}));
  });
  batch.add(
      "bfloat layer_norm",
      [&](Builder& b) {
        b.graph().output("y", layer_norm(b, input(b, "x", DType::kBF16, {5, 70}), input(b, "g", DType::kBF16, {70}),
                                         input(b, "h", DType::kBF16, {70})));
      },
      5e-2);
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
