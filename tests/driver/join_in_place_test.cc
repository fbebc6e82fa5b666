// Concatenations whose parts are made where they lie: on a CPU in driver_tests, on a GPU or the emulator in
// cuda_runtime_tests.
#include <gtest/gtest.h>

#include <random>

#include "driver/compile/compile.h"
#include "driver/verify/verify.h"
#include "models.h"
#include "tests/cuda_runtime/cuda_plans.h"
#include "tests/instances.h"

namespace heddle {
namespace {

using onnx::GraphSpec;

// Images of NCHW and what is computed of them.
class Network {
 public:
  explicit Network(uint32_t seed) : engine_(seed) {}

  struct Value {
    std::string name;
    Shape shape;
  };
  GraphSpec graph;

  Value input(const Shape& shape) {
    graph.inputs.push_back({fresh(), DType::kF32, shape});
    return {graph.inputs.back().name, shape};
  }
  Value constant(const Shape& shape) {
    const std::string name = fresh();
    graph.initializers[name] = test::random_floats(shape, engine_());
    return {name, shape};
  }
  Value conv(const Value& x, int64_t channels, int64_t kernel, int64_t groups = 1) {
    const Value w = weights({channels, x.shape[1] / groups, kernel, kernel});
    const int64_t pad = kernel / 2;
    return node("Conv", {x.name, w.name}, {x.shape[0], channels, x.shape[2], x.shape[3]},
                {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}, {"group", groups}});
  }
  // Twice as high and wide.
  Value up(const Value& x, int64_t channels) {
    const Value w = weights({x.shape[1], channels, 2, 2});
    return node("ConvTranspose", {x.name, w.name}, {x.shape[0], channels, 2 * x.shape[2], 2 * x.shape[3]},
                {{"strides", std::vector<int64_t>{2, 2}}});
  }
  Value pool(const Value& x, const char* kind = "MaxPool") {
    return node(kind, {x.name}, {x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] / 2},
                {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  }
  Value relu(const Value& x) { return node("Relu", {x.name}, x.shape); }
  Value add(const Value& x, const Value& y) { return node("Add", {x.name, y.name}, x.shape); }
  Value softmax(const Value& x) { return node("Softmax", {x.name}, x.shape, {{"axis", int64_t{1}}}); }
  Value product(const Value& x, int64_t columns) {
    const Value w = weights({x.shape[3], columns});
    return node("MatMul", {x.name, w.name}, {x.shape[0], x.shape[1], x.shape[2], columns});
  }
  Value concat(const std::vector<Value>& parts, size_t axis) {
    std::vector<std::string> names;
    Shape shape = parts[0].shape;
    shape[axis] = 0;
    for (const Value& part : parts) names.push_back(part.name), shape[axis] += part.shape[axis];
    return node("Concat", names, shape, {{"axis", static_cast<int64_t>(axis)}});
  }
  Value slice(const Value& x, size_t axis, int64_t begin, int64_t end) {
    Shape shape = x.shape;
    shape[axis] = end - begin;
    std::vector<std::string> inputs{x.name};
    for (const int64_t number : {begin, end, static_cast<int64_t>(axis)}) {
      inputs.push_back(fresh());
      graph.initializers[inputs.back()] = onnx::longs({1}, {number});
    }
    return node("Slice", inputs, shape);
  }
  void output(const Value& x) {
    if (std::find(graph.outputs.begin(), graph.outputs.end(), x.name) == graph.outputs.end()) {
      graph.outputs.push_back(x.name);
    }
  }
  // Of a few, one.
  size_t any(size_t count) { return engine_() % count; }

 private:
  std::string fresh() { return "v" + std::to_string(count_++); }
  Value weights(const Shape& shape) {
    Value w = constant(shape);
    const float scale = 1.F / std::sqrt(static_cast<float>(element_count(shape) / shape[0]));
    for (float& v : graph.initializers.at(w.name).mutable_values<float>()) v *= scale;
    return w;
  }
  Value node(const char* op, std::vector<std::string> inputs, const Shape& shape,
             std::map<std::string, onnx::AttrSpec> attributes = {}) {
    graph.nodes.push_back({op, std::move(inputs), {fresh()}, std::move(attributes)});
    return {graph.nodes.back().outputs[0], shape};
  }

  std::mt19937 engine_;
  int count_ = 0;
};

class JoinInPlace : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HEDDLE_VALUES_ON_GPU
    if (!runtime::has_gpu()) GTEST_SKIP() << "there is no GPU";
    options_.target = "cuda";
#endif
    options_.threads = 2;
  }
  std::string write(const Network& network) {
    const std::string path = dir_.path() + "/m.onnx";
    write_file(path, onnx::model_bytes(network.graph, 18));
    return path;
  }
  void expect_right(const Network& network, const std::string& what = "") {
    const driver::VerifyReport report = driver::verify(write(network), options_, {}, 1);
    EXPECT_TRUE(report.ok) << what << (report.first ? ": " + report.first->label : "");
  }
  struct Counts {
    size_t kernels = 0, copies = 0, in_place = 0, copied = 0;
  };
  // Kernels, those that compute nothing, and what was decided of concatenations.
  Counts counts(const Network& network) {
    const driver::CompiledModel model = driver::compile_model(write(network), options_);
    Counts found;
    for (const driver::GroupReport& group : model.report.groups) {
      found.kernels += group.kernels.size();
      found.copies += !group.view && group.kind == ir::GroupKind::kStitch ? group.kernels.size() : 0;
    }
    for (const ir::Decision& decision : model.report.decisions) {
      if (decision.rule == "in place") ++(decision.yes ? found.in_place : found.copied);
    }
    return found;
  }

  TempDir dir_;
  runtime::Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  runtime::Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "4"};
  CompileOptions options_;
};

// A level of a UNet: what goes down is pooled and joined with what comes up.
Network unet(int64_t channels, int64_t size) {
  Network n(1);
  const Network::Value x = n.relu(n.conv(n.input({2, 8, size, size}), channels, 3));
  const Network::Value below = n.relu(n.conv(n.pool(x), 2 * channels, 3));
  n.output(n.conv(n.concat({n.up(below, channels), x}, 1), channels, 3));
  return n;
}

TEST_F(JoinInPlace, ALevelOfAUNetCopiesNothing) {
  const Network n = unet(16, 16);
  const Counts found = counts(n);
  EXPECT_EQ(found.in_place, 1u);
  options_.disabled_passes = {"join_in_place"};
  EXPECT_GT(counts(n).copies, found.copies);
  options_.disabled_passes = {};
  expect_right(n);
}

// Kernels of tensor cores store tiles and gather windows by TMA, whose maps have pitches and offsets.
TEST_F(JoinInPlace, NarrowNumbers) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  for (const char* precision : test::draw<const char*>({"f16", "tf32"})) {
    options_.precision = precision;
    Network n(6);
    const Network::Value x = n.conv(n.input({1, 16, 96, 96}), 64, 1), a = n.conv(x, 64, 3), b = n.conv(x, 128, 1);
    n.output(n.pool(n.conv(n.concat({a, b}, 1), 8, 1)));
    n.output(n.pool(n.conv(b, 8, 1)));
    expect_right(n, precision);
  }
}

// Channels that fill no vector, or begin inside of one.
TEST_F(JoinInPlace, OddChannels) {
  expect_right(unet(5, 12));
}

// Each layer reads what all before it made, and adds to it.
TEST_F(JoinInPlace, AGrowingConcatenationIsOneBuffer) {
  Network n(2);
  std::vector<Network::Value> parts{n.conv(n.input({1, 8, 12, 12}), 16, 3)};
  Network::Value all = parts[0];
  for (int layer = 0; layer < 3; ++layer) {
    parts.push_back(n.relu(n.conv(all, 8, layer % 2 == 0 ? 3 : 1)));
    all = n.concat(parts, 1);
  }
  n.output(n.conv(all, 8, 1));
  const Counts found = counts(n);
  EXPECT_EQ(found.in_place, 3u);
  EXPECT_EQ(found.copied, 0u);
  expect_right(n);
}

// Every window, pool and product that reads a part of a concatenation beside the concatenation itself.
TEST_F(JoinInPlace, PartsAreReadWhereTheyLie) {
  Network n(3);
  // So many channels on so few pixels that channels are last on every CPU.
  const Network::Value a = n.conv(n.input({2, 8, 6, 6}), 32, 3), b = n.conv(a, 32, 1), c = n.conv(b, 32, 3, 32);
  const Network::Value all = n.concat({a, b, c}, 1);
  n.output(n.conv(all, 32, 1));
  n.output(n.pool(b));
  n.output(n.pool(c, "AveragePool"));
  n.output(n.add(n.softmax(c), b));
  n.output(n.conv(n.slice(all, 1, 16, 80), 32, 3));
  EXPECT_EQ(counts(n).in_place, 1u);
  expect_right(n);
}

TEST_F(JoinInPlace, WhatCannotBeMadeInPlaceIsCopied) {
  Network n(4);
  const Network::Value x = n.input({1, 8, 8, 8}), a = n.conv(x, 16, 3), b = n.conv(x, 16, 1);
  n.output(a);                                                            // has memory of its own
  n.output(n.conv(n.concat({a, b, n.constant({1, 8, 8, 8})}, 1), 8, 1));  // a constant
  n.output(n.concat({b, a}, 1));                                          // b lies in another one
  n.output(n.concat({n.concat({x, b}, 1), n.conv(b, 24, 1)}, 2));         // along other dimensions
  n.output(n.conv(n.concat({b, b}, 1), 8, 3));                            // twice the same
  expect_right(n);
}

TEST_F(JoinInPlace, EveryAxis) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  for (const size_t axis : test::draw<size_t>({0, 1, 2, 3})) {
    Network n(5);
    const Network::Value x = n.input({2, 8, 6, 6}), a = n.conv(x, 8, 3), b = n.relu(n.conv(x, 8, 1));
    const Network::Value all = n.concat({a, b}, axis);
    n.output(n.conv(all, 8, 3));
    n.output(n.product(b, 5));
    expect_right(n, "axis " + std::to_string(axis));
  }
}

// The batch may differ from the one that the model was compiled for.
TEST_F(JoinInPlace, OpenBatch) {
  Network n = unet(8, 8);
  n.graph.inputs[0].shape[0] = -1;
  const std::string path = write(n);
  const Model model = Model::load(path, options_);
  CompileOptions apart = options_;
  apart.disabled_passes = {"join_in_place"};
  const Model copied = Model::load(path, apart);
  for (const int64_t batch : {1, 3, 5}) {
    const Tensor x = test::random_floats({batch, 8, 8, 8}, 7);
    const Tensor y = model.run({{"v0", x}})[0], wanted = copied.run({{"v0", x}})[0];
    for (size_t i = 0; i < y.values<float>().size(); ++i) {
      ASSERT_NEAR(y.values<float>()[i], wanted.values<float>()[i], 1e-4F) << "batch " << batch << ", element " << i;
    }
  }
}

TEST_F(JoinInPlace, RandomNetworks) {
  for (uint32_t seed = 1; seed <= test::instances(28); ++seed) {
    Network n(seed);
    std::vector<Network::Value> values{n.input({2, 8, 4, 4}), n.input({2, 3, 4, 4})};
    const auto any = [&] { return values[n.any(values.size())]; };
    for (int step = 0; step < 12; ++step) {
      const Network::Value x = any();
      const size_t axis = n.any(4);
      std::vector<Network::Value> parts{x};
      for (const Network::Value& y : values) {
        Shape other = y.shape;
        other[axis] = x.shape[axis];
        if (other == x.shape && y.name != x.name && parts.size() < 4) parts.push_back(y);
      }
      const bool small = element_count(x.shape) <= 4096;
      switch (n.any(8)) {
        case 0:
        case 1:
          values.push_back(n.conv(x, small ? 8 : 3, 1 + 2 * static_cast<int64_t>(n.any(2))));
          break;
        case 2:
          if (x.shape[2] >= 2 && x.shape[3] >= 2) values.push_back(n.pool(x));
          break;
        case 3:
          values.push_back(n.relu(x));
          break;
        case 4:
          values.push_back(n.slice(x, axis, x.shape[axis] / 2, x.shape[axis]));
          break;
        case 5:
          values.push_back(n.product(x, x.shape[3]));
          break;
        default:
          if (parts.size() > 1 && small) values.push_back(n.concat(parts, axis));
      }
      if (n.any(6) == 0 && values.size() > 2) n.output(values.back());
    }
    if (values.size() == 2) continue;
    n.output(values.back());
    expect_right(n, "seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace heddle
