#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

constexpr auto kF32 = DType::kF32;
constexpr auto kI64 = DType::kI64;
constexpr auto kBool = DType::kBool;

TensorType f32(Shape shape) {
  return {kF32, std::move(shape)};
}
TensorType i64(Shape shape) {
  return {kI64, std::move(shape)};
}

void expect_type(const std::vector<TensorType>& actual, const TensorType& expected) {
  ASSERT_EQ(actual.size(), 1u);
  EXPECT_EQ(actual[0], expected) << to_string(actual[0]);
}

TEST(Infer, Elementwise) {
  expect_type(infer_op(Op::kExp, {f32({2, 0, 3})}), f32({2, 0, 3}));
  expect_type(infer_op(Op::kNeg, {i64({})}), i64({}));
  expect_type(infer_op(Op::kIsNan, {f32({5})}), {kBool, {5}});
  expect_type(infer_op(Op::kIsInf, {f32({5})}, {{"positive", int64_t{1}}, {"negative", int64_t{0}}}), {kBool, {5}});
  expect_type(infer_op(Op::kCast, {f32({5})}, {{"to", DType::kI8}}), {DType::kI8, {5}});
  expect_type(infer_op(Op::kBitcast, {f32({5})}, {{"to", DType::kU32}}), {DType::kU32, {5}});
  expect_type(infer_op(Op::kLt, {f32({7}), f32({7})}), {kBool, {7}});
  expect_type(infer_op(Op::kXor, {{kBool, {7}}, {kBool, {7}}}), {kBool, {7}});
  expect_type(infer_op(Op::kSelect, {{kBool, {7}}, i64({7}), i64({7})}), i64({7}));
}

TEST(Infer, ElementwiseRejects) {
  expect_rejected(Op::kExp, {i64({2})}, {}, {"exp(i64[2])", "exp takes floats, not i64"});
  expect_rejected(Op::kAdd, {{kBool, {2}}, {kBool, {2}}}, {}, {"numbers", "bool"});
  expect_rejected(Op::kAnd, {f32({2}), f32({2})}, {}, {"and takes integers or bool, not f32"});
  expect_rejected(Op::kShl, {{kBool, {2}}, {kBool, {2}}}, {}, {"shl takes integers"});
  expect_rejected(Op::kAdd, {f32({2, 3}), f32({3})}, {}, {"f32[2,3]", "f32[3]", "one dtype and shape"});
  expect_rejected(Op::kAdd, {f32({2}), i64({2})}, {}, {"one dtype and shape"});
  expect_rejected(Op::kBitcast, {f32({2})}, {{"to", DType::kI8}}, {"f32 and i8", "sizes"});
  expect_rejected(Op::kCast, {f32({2})}, {{"to", DType::kString}}, {"strings"});
  expect_rejected(Op::kCast, {f32({2})}, {}, {"attribute to is missing"});
  expect_rejected(Op::kCast, {f32({2})}, {{"to", int64_t{1}}}, {"attribute to has the wrong kind"});
  expect_rejected(Op::kSelect, {i64({2}), f32({2}), f32({2})}, {}, {"condition must be bool, not i64"});
  expect_rejected(Op::kSelect, {{kBool, {3}}, f32({2}), f32({2})}, {}, {"[3]", "[2]"});
  expect_rejected(Op::kSelect, {{kBool, {2}}, f32({2}), i64({2})}, {}, {"branches f32[2] and i64[2]"});
  expect_rejected(Op::kAdd, {f32({2})}, {}, {"1 operands given, 2 to 2 expected"});
}

TEST(Infer, Sources) {
  expect_type(infer_op(Op::kIota, {}, {{"dtype", kI64}, {"shape", Ints{2, 3}}, {"dim", int64_t{1}}}), i64({2, 3}));
  expect_type(
      infer_op(Op::kRandom, {}, {{"kind", "normal"}, {"dtype", DType::kF16}, {"shape", Ints{2}}, {"seed", int64_t{1}}}),
      {DType::kF16, {2}});
  expect_rejected(Op::kIota, {}, {{"dtype", kI64}, {"shape", Ints{}}, {"dim", int64_t{0}}}, {"dim = 0", "[]"});
  expect_rejected(Op::kIota, {}, {{"dtype", kBool}, {"shape", Ints{2}}, {"dim", int64_t{0}}}, {"not bool"});
  expect_rejected(Op::kRandom, {}, {{"kind", "beta"}, {"dtype", kF32}, {"shape", Ints{2}}, {"seed", int64_t{1}}},
                  {"\"beta\""});
  expect_rejected(Op::kRandom, {}, {{"kind", "normal"}, {"dtype", kI64}, {"shape", Ints{2}}, {"seed", int64_t{1}}},
                  {"not i64"});
  expect_rejected(Op::kParameter, {}, {{"name", "x"}, {"dtype", kF32}, {"shape", Ints{2, -1}}}, {"negative"});
  expect_rejected(Op::kParameter, {}, {{"name", "x"}, {"dtype", DType::kString}, {"shape", Ints{2}}}, {"strings"});
}

TEST(Infer, Layout) {
  expect_type(infer_op(Op::kBroadcast, {f32({3, 1})}, {{"shape", Ints{2, 3, 4}}, {"dims", Ints{1, 2}}}),
              f32({2, 3, 4}));
  expect_type(infer_op(Op::kBroadcast, {f32({})}, {{"shape", Ints{0, 4}}, {"dims", Ints{}}}), f32({0, 4}));
  expect_type(infer_op(Op::kReshape, {f32({6, 0})}, {{"shape", Ints{0, 7}}}), f32({0, 7}));
  expect_type(infer_op(Op::kTranspose, {f32({2, 3, 5})}, {{"perm", Ints{2, 0, 1}}}), f32({5, 2, 3}));
  expect_type(
      infer_op(Op::kSlice, {f32({7, 5})}, {{"starts", Ints{1, 5}}, {"limits", Ints{7, 5}}, {"strides", Ints{4, 1}}}),
      f32({2, 0}));
  expect_type(infer_op(Op::kReverse, {f32({7, 5})}, {{"dims", Ints{0, 1}}}), f32({7, 5}));
  expect_type(
      infer_op(Op::kPad, {f32({7, 0}), f32({})}, {{"low", Ints{1, 2}}, {"high", Ints{0, 3}}, {"mode", "constant"}}),
      f32({8, 5}));
  expect_type(infer_op(Op::kConcat, {f32({7, 2}), f32({7, 0}), f32({7, 3})}, {{"dim", int64_t{1}}}), f32({7, 5}));
}

TEST(Infer, LayoutRejects) {
  const int64_t huge = INT64_MAX - 1;
  expect_rejected(Op::kBroadcast, {f32({3})}, {{"shape", Ints{4}}, {"dims", Ints{0}}}, {"[3]", "extent 4"});
  expect_rejected(Op::kBroadcast, {f32({3, 3})}, {{"shape", Ints{3, 3}}, {"dims", Ints{1, 0}}}, {"increasing"});
  expect_rejected(Op::kBroadcast, {f32({3})}, {{"shape", Ints{3}}, {"dims", Ints{1}}}, {"dims = 1"});
  expect_rejected(Op::kBroadcast, {f32({3})}, {{"shape", Ints{3}}, {"dims", Ints{}}}, {"one entry per dimension"});
  expect_rejected(Op::kReshape, {f32({3})}, {{"shape", Ints{2}}}, {"[2] does not hold as many elements as [3]"});
  expect_rejected(Op::kTranspose, {f32({2, 3})}, {{"perm", Ints{0, 0}}}, {"[0,0] is not a permutation"});
  expect_rejected(Op::kTranspose, {f32({2, 3})}, {{"perm", Ints{0, 2}}}, {"perm = 2"});
  expect_rejected(Op::kSlice, {f32({5})}, {{"starts", Ints{3}}, {"limits", Ints{6}}, {"strides", Ints{1}}},
                  {"[3, 6)", "[5]"});
  expect_rejected(Op::kSlice, {f32({5})}, {{"starts", Ints{0}}, {"limits", Ints{5}}, {"strides", Ints{0}}},
                  {"stride 0"});
  expect_rejected(Op::kReverse, {f32({5})}, {{"dims", Ints{0, 0}}}, {"strictly increasing"});
  expect_rejected(Op::kPad, {f32({5}), f32({1})}, {{"low", Ints{0}}, {"high", Ints{0}}, {"mode", "constant"}},
                  {"pad value must be f32[], not f32[1]"});
  expect_rejected(Op::kPad, {f32({5}), f32({})}, {{"low", Ints{-1}}, {"high", Ints{0}}, {"mode", "constant"}},
                  {"negative"});
  expect_rejected(Op::kPad, {f32({5}), f32({})}, {{"low", Ints{huge}}, {"high", Ints{0}}, {"mode", "constant"}},
                  {"overflows"});
  expect_rejected(Op::kPad, {f32({0}), f32({})}, {{"low", Ints{1}}, {"high", Ints{0}}, {"mode", "edge"}}, {"empty"});
  expect_rejected(Op::kPad, {f32({5}), f32({})}, {{"low", Ints{1}}, {"high", Ints{0}}, {"mode", "mirror"}},
                  {"\"mirror\""});
  expect_rejected(Op::kConcat, {f32({5, 2}), f32({4, 2})}, {{"dim", int64_t{1}}}, {"f32[5,2]", "f32[4,2]"});
  expect_rejected(Op::kConcat, {f32({5}), i64({5})}, {{"dim", int64_t{0}}}, {"i64[5]"});
  expect_rejected(Op::kConcat, {}, {{"dim", int64_t{0}}}, {"operands"});
}

TEST(Infer, Indexing) {
  expect_type(infer_op(Op::kGather, {f32({5, 6, 7}), i64({2, 3})}, {{"dim", int64_t{1}}}), f32({5, 2, 3, 7}));
  expect_type(infer_op(Op::kGather, {f32({5}), i64({})}, {{"dim", int64_t{0}}}), f32({}));
  expect_type(infer_op(Op::kGatherElements, {f32({5, 6}), i64({9, 6})}, {{"dim", int64_t{0}}}), f32({9, 6}));
  expect_type(infer_op(Op::kGatherNd, {f32({2, 5, 6, 7}), i64({2, 3, 2})}, {{"batch_dims", int64_t{1}}}),
              f32({2, 3, 7}));
  expect_type(infer_op(Op::kScatterElements, {f32({5, 6}), i64({2, 6}), f32({2, 6})},
                       {{"dim", int64_t{0}}, {"reduction", "none"}}),
              f32({5, 6}));
  expect_type(infer_op(Op::kScatterNd, {f32({5, 6}), i64({3, 1}), f32({3, 6})}, {{"reduction", "add"}}), f32({5, 6}));

  expect_rejected(Op::kGather, {f32({5}), f32({2})}, {{"dim", int64_t{0}}}, {"indices must be integers, not f32"});
  expect_rejected(Op::kGather, {f32({5}), i64({2})}, {{"dim", int64_t{1}}}, {"dim = 1", "[5]"});
  expect_rejected(Op::kGatherElements, {f32({5, 6}), i64({5})}, {{"dim", int64_t{0}}}, {"one rank"});
  expect_rejected(Op::kGatherElements, {f32({5, 6}), i64({5, 7})}, {{"dim", int64_t{0}}}, {"[5,7]", "[5,6]"});
  expect_rejected(Op::kGatherNd, {f32({5, 6}), i64({3, 3})}, {{"batch_dims", int64_t{0}}}, {"[3,3]", "1 to 2"});
  expect_rejected(Op::kGatherNd, {f32({5, 6}), i64({4, 1})}, {{"batch_dims", int64_t{1}}}, {"first 1 dimensions"});
  expect_rejected(Op::kGatherNd, {f32({5, 6}), i64({})}, {{"batch_dims", int64_t{0}}}, {"at least one dimension"});
  expect_rejected(Op::kScatterNd, {f32({5, 6}), i64({3, 1}), f32({3, 5})}, {{"reduction", "add"}}, {"[3,6]", "[3,5]"});
  expect_rejected(Op::kScatterNd, {f32({5}), i64({3, 1}), f32({3})}, {{"reduction", "xor"}}, {"\"xor\""});
  expect_rejected(Op::kScatterNd, {{kBool, {5}}, i64({3, 1}), {kBool, {3}}}, {{"reduction", "add"}}, {"not bool"});
}

TEST(Infer, Reductions) {
  expect_type(infer_op(Op::kReduce, {f32({2, 3, 5})}, {{"kind", "sum"}, {"dims", Ints{0, 2}}}), f32({3}));
  expect_type(infer_op(Op::kReduce, {{kBool, {2, 3}}}, {{"kind", "any"}, {"dims", Ints{}}}), {kBool, {2, 3}});
  expect_type(infer_op(Op::kArgReduce, {f32({2, 3})}, {{"kind", "max"}, {"dim", int64_t{0}}, {"last", int64_t{0}}}),
              i64({3}));
  expect_type(infer_op(Op::kScan, {f32({2, 3})},
                       {{"kind", "sum"}, {"dim", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{1}}}),
              f32({2, 3}));
  const auto topk = infer_op(Op::kTopK, {f32({2, 7})},
                             {{"k", int64_t{3}}, {"dim", int64_t{1}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  ASSERT_EQ(topk.size(), 2u);
  EXPECT_EQ(topk[0], f32({2, 3}));
  EXPECT_EQ(topk[1], i64({2, 3}));

  expect_rejected(Op::kReduce, {f32({2, 3})}, {{"kind", "sum"}, {"dims", Ints{1, 0}}}, {"[1,0]"});
  expect_rejected(Op::kReduce, {f32({2, 3})}, {{"kind", "mean"}, {"dims", Ints{1}}}, {"\"mean\""});
  expect_rejected(Op::kReduce, {f32({2, 3})}, {{"kind", "any"}, {"dims", Ints{1}}}, {"takes bool, not f32"});
  expect_rejected(Op::kReduce, {{kBool, {2}}}, {{"kind", "sum"}, {"dims", Ints{0}}}, {"takes numbers, not bool"});
  expect_rejected(Op::kReduce, {f32({2, 3})}, {{"kind", "sum"}, {"dims", Ints{2}}}, {"dims = 2", "[2,3]"});
  expect_rejected(Op::kArgReduce, {f32({0, 3})}, {{"kind", "max"}, {"dim", int64_t{0}}, {"last", int64_t{0}}},
                  {"[0,3]", "empty"});
  expect_rejected(Op::kTopK, {f32({2, 7})},
                  {{"k", int64_t{8}}, {"dim", int64_t{1}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}},
                  {"k = 8", "extent 7"});
}

TEST(Infer, ErrorsNameTheOrigin) {
  Graph graph;
  const OriginId origin = graph.origin({"encoder/add", "Add"});
  const ValueId a = graph.parameter("a", f32({2}));
  const ValueId b = graph.parameter("b", f32({3}));
  try {
    graph.add(Op::kAdd, {a, b}, {}, {origin});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "add(f32[2], f32[3]) of encoder/add (Add)");
  }
}

}  // namespace
}  // namespace heddle::ir::testing
