// Statistics of columns that are results beside what is normalised by them.
#include "machine.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

TEST(CudaStitch, StatisticsBesideWhatTheyNormalise) {
  Target target = test_target();
  target.cuda.model.chip.copy_tbps *= 24.0 / target.cuda.sms;
  target.cuda.sms = 24;  // more than the clusters of these columns keep busy
  Batch batch(target);
  for (const Shape& shape : {Shape{16, 24, 25, 16}, {7, 33, 31, 16}}) {
    const Shape columns = {shape.back()};
    const auto images = [shape](Builder& b, const char* name) {
      return b.cast(input(b, name, DType::kBF16, shape), DType::kF32);
    };
    const auto spread = [shape](Builder& b, ValueId v) { return b.broadcast(v, shape, {3}); };
    const auto forward = [=](Builder& b) {
      const ValueId x = images(b, "x"), old = input(b, "old", DType::kF32, columns);
      const ValueId mean = b.mean(x, {0, 1, 2}, false), centred = b.sub(x, spread(b, mean));
      const ValueId variance = b.mean(b.mul(centred, centred), {0, 1, 2}, false);
      b.graph().output("mean", b.add(mean, old));
      b.graph().output("variance", variance);
      const ValueId factor = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, 1e-5));
      b.graph().output("y", b.cast(b.mul(centred, spread(b, factor)), DType::kBF16));
    };
    const auto backward = [=](Builder& b) {
      const ValueId x = images(b, "x"), dy = images(b, "dy");
      const ValueId bias = b.mean(dy, {0, 1, 2}, false), scale = b.mean(b.mul(dy, x), {0, 1, 2}, false);
      b.graph().output("bias", bias);
      b.graph().output("scale", scale);
      b.graph().output("dx", b.cast(b.sub(b.sub(dy, spread(b, bias)), b.mul(x, spread(b, scale))), DType::kBF16));
    };
    for (const auto& [name, build] :
         {std::pair<std::string, std::function<void(Builder&)>>{"forward", forward}, {"backward", backward}}) {
      ir::Graph graph;
      Builder builder(graph);
      build(builder);
      EXPECT_EQ(schedule::schedule(graph, whole_graph(graph), target).kernels.size(), 1u) << name << shape[0];
      batch.add(name + std::to_string(shape[0]), build, 1e-2);
    }
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
