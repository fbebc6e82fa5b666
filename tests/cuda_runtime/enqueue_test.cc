// Runs in device memory and on a stream of the caller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>

#include "cuda_plans.h"
#include "driver/api/model_impl.h"
#include "heddle/c_api.h"
#include "heddle/model.h"
#include "runtime/cuda/executor.h"
#include "tests/driver/models.h"
#include "tests/error_of.h"

namespace heddle::runtime {
namespace {

using test::error_of;
using test::random_floats;
using testing::HasSubstr;

// Device memory with its shape, and poison in it unless a value is given.
class OnDevice {
 public:
  OnDevice(const CudaContext& context, const Tensor& value)
      : shape_(value.shape()), buffer_(context, std::max<size_t>(value.bytes(), 16)) {
    write(value);
  }
  OnDevice(const CudaContext& context, const Shape& shape) : OnDevice(context, poison(shape)) {}

  void write(const Tensor& value) { buffer_.write(value.data(), value.bytes()); }
  Tensor read() const {
    Tensor value(DType::kF32, shape_);
    buffer_.read(value.mutable_data(), value.bytes());
    return value;
  }
  uint64_t address() const { return buffer_.address(); }
  DeviceTensor tensor() const { return {reinterpret_cast<void*>(buffer_.address()), DType::kF32, shape_}; }

 private:
  static Tensor poison(const Shape& shape) {
    Tensor value(DType::kF32, shape);
    std::memset(value.mutable_data(), 0xff, value.bytes());
    return value;
  }
  Shape shape_;
  CudaBuffer buffer_;
};

class EnqueueTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
    context_ = CudaContext::of_device(0);
    options_.target = "cuda";
  }
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  // Memory of a workspace, with poison in it.
  OnDevice workspace(size_t bytes) const { return {*context_, Shape{static_cast<int64_t>(bytes / 4 + 64)}}; }

  TempDir dir_;
  Variable cache_{"HEDDLE_CACHE_DIR", dir_.path() + "/cache"};
  Variable multiprocessors_{"HEDDLE_EMULATED_SMS", "4"};
  std::shared_ptr<const CudaContext> context_;
  CompileOptions options_;
};

// The second output of the plan is its input, which is copied.
TEST_F(EnqueueTest, APlanGivesWhatARunGives) {
  const CudaExecutor gpu(on_gpu(*small_plan()), pool(), nullptr, 0);
  const CudaStream stream(*context_);
  const OnDevice space = workspace(gpu.workspace_bytes());
  for (int place = 0; place < 2; ++place) {
    OnDevice x(*context_, Shape{kSize}), y(*context_, Shape{kSize}), same(*context_, Shape{kSize});
    for (uint32_t round = 0; round < 3; ++round) {  // kernels alone, then a graph
      const Tensor value = random_floats({kSize}, 10 * round + 1);
      x.write(value);
      gpu.enqueue({x.address(), y.address(), same.address(), space.address()}, stream.handle());
      stream.synchronize();
      const auto expected = gpu.run(std::span(&value, 1));
      EXPECT_EQ(values_of(y.read()), values_of(expected[0])) << "round " << round;
      EXPECT_EQ(values_of(same.read()), values_of(expected[1])) << "round " << round;
    }
  }
}

TEST_F(EnqueueTest, AStreamThatCapturesGetsTheRunIntoItsGraph) {
  const CudaExecutor gpu(on_gpu(*small_plan()), pool(), nullptr, 0);
  const CudaStream stream(*context_);
  const OnDevice space = workspace(gpu.workspace_bytes());
  OnDevice x(*context_, Shape{kSize}), y(*context_, Shape{kSize}), same(*context_, Shape{kSize});
  const auto run = [&] { gpu.enqueue({x.address(), y.address(), same.address(), space.address()}, stream.handle()); };
  const CudaGraph graph(
      *context_, [&] { run(), run(); }, stream.handle());
  for (uint32_t round = 0; round < 2; ++round) {
    const Tensor value = random_floats({kSize}, round);
    x.write(value);
    graph.launch(stream.handle());
    stream.synchronize();
    EXPECT_EQ(values_of(y.read()), values_of(gpu.run(std::span(&value, 1))[0]));
  }
}

TEST_F(EnqueueTest, ACapturedGraphOutlivesThePlan) {
  const CudaStream stream(*context_);
  OnDevice x(*context_, Shape{kSize}), y(*context_, Shape{kSize}), same(*context_, Shape{kSize});
  const Tensor value = random_floats({kSize}, 1);
  x.write(value);
  auto gpu = std::make_unique<CudaExecutor>(on_gpu(*small_plan()), pool(), nullptr, 0);
  const std::vector<float> expected = values_of(gpu->run(std::span(&value, 1))[0]);
  const OnDevice space = workspace(gpu->workspace_bytes());
  const std::vector<uint64_t> addresses = {x.address(), y.address(), same.address(), space.address()};
  const CudaGraph graph(
      *context_, [&] { gpu->enqueue(addresses, stream.handle()); }, stream.handle());
  gpu.reset();
  destroy_data_of_graphs();
  graph.launch(stream.handle());
  stream.synchronize();
  EXPECT_EQ(values_of(y.read()), expected);
}

TEST_F(EnqueueTest, MemoryOfRunsIsAllocatedForTheFirst) {
  const CudaExecutor gpu(on_gpu(*small_plan()), pool(), nullptr, 0, true);
  const CudaStream stream(*context_);
  const OnDevice space = workspace(gpu.workspace_bytes());
  OnDevice x(*context_, Shape{kSize}), y(*context_, Shape{kSize}), same(*context_, Shape{kSize});
  const Tensor value = random_floats({kSize}, 1);
  x.write(value);
  const uint64_t constants = gpu.device_bytes();
  gpu.enqueue({x.address(), y.address(), same.address(), space.address()}, stream.handle());
  stream.synchronize();
  EXPECT_EQ(gpu.device_bytes(), constants);
  EXPECT_EQ(values_of(gpu.run(std::span(&value, 1))[0]), values_of(y.read()));
  EXPECT_GE(gpu.device_bytes(), constants + 3 * kSize * sizeof(float));
}

// How often the loop runs is only known when it has run.
TEST_F(EnqueueTest, APlanThatAsksTheDeviceIsRefused) {
  const CudaExecutor gpu(on_gpu(*loop_plan(6)), pool(), nullptr, 0);
  const Error error = error_of([&] { gpu.workspace_bytes(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupportedOperator);
  EXPECT_THAT(error.what(), HasSubstr("loop or branch"));
}

TEST_F(EnqueueTest, AModelInShapesOfItsOwnFromSeveralThreads) {
  test::write_open_rows(path("m.onnx"));
  options_.shapes["x"] = {2, 8};
  const Model model = Model::load(path("m.onnx"), options_);
  std::vector<std::thread> threads;
  for (int64_t rows = 2; rows < 6; ++rows) {
    threads.emplace_back([&, rows] {
      context_->make_current();
      const CudaStream stream(*context_);
      const EnqueueNeeds needs = model.prepare({{rows, 8}});
      ASSERT_EQ(needs.outputs.size(), 1u);
      EXPECT_EQ(needs.outputs[0].name, "y");
      EXPECT_EQ(needs.outputs[0].shape, (Shape{rows, 4}));
      const OnDevice space = workspace(needs.workspace_bytes);
      OnDevice x(*context_, Shape{rows, 8}), y(*context_, Shape{rows, 4});
      for (uint32_t round = 0; round < 3; ++round) {
        const Tensor value = random_floats({rows, 8}, 100 * round + static_cast<uint32_t>(rows));
        x.write(value);
        model.enqueue({x.tensor()}, {y.tensor()}, space.tensor().data, stream.handle());
        stream.synchronize();
        EXPECT_EQ(values_of(y.read()), values_of(model.run({{"x", value}})[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The device may be at work with its kernels, and the caller has a workspace for it.
TEST_F(EnqueueTest, APlanThatWasPreparedStays) {
  test::write_open_rows(path("m.onnx"));
  options_.shapes["x"] = {2, 8};
  options_.max_plans = 1;
  const Model model = Model::load(path("m.onnx"), options_);
  const EnqueueNeeds needs = model.prepare({{3, 8}});
  ASSERT_FALSE(model.impl().variants().empty());
  const std::weak_ptr<const Plan> plan = model.impl().variants().front()->plan;
  for (const int64_t rows : {5, 7}) model.run({{"x", random_floats({rows, 8}, 1)}});
  EXPECT_FALSE(plan.expired());
  EXPECT_EQ(model.prepare({{3, 8}}).workspace_bytes, needs.workspace_bytes);
  const OnDevice space = workspace(needs.workspace_bytes);
  const Tensor value = random_floats({3, 8}, 2);
  const OnDevice x(*context_, value), y(*context_, Shape{3, 4});
  model.enqueue({x.tensor()}, {y.tensor()}, space.tensor().data, context_->stream());
  context_->synchronize();
  EXPECT_EQ(values_of(y.read()), values_of(model.run({{"x", value}})[0]));
}

// Memory of no elements has no address.
TEST_F(EnqueueTest, ATensorOfNoElements) {
  test::write_open_rows(path("m.onnx"));
  options_.shapes["x"] = {2, 8};
  const Model model = Model::load(path("m.onnx"), options_);
  const OnDevice space = workspace(model.prepare({{0, 8}}).workspace_bytes);
  const DeviceTensor x{nullptr, DType::kF32, {0, 8}}, y{nullptr, DType::kF32, {0, 4}};
  for (int round = 0; round < 3; ++round) model.enqueue({x}, {y}, space.tensor().data, context_->stream());
  context_->synchronize();
}

TEST_F(EnqueueTest, TheCInterface) {
  test::write_mlp(path("m.onnx"));
  heddle_options* options = heddle_options_new();
  ASSERT_EQ(heddle_options_set(options, "target", "cuda", nullptr), 1);
  heddle_error* error = nullptr;
  heddle_model* model = heddle_model_load(path("m.onnx").c_str(), options, &error);
  heddle_options_free(options);
  ASSERT_NE(model, nullptr) << heddle_error_message(error);
  const heddle_port in = heddle_model_input(model, 0), out = heddle_model_output(model, 0);
  const auto shape = [](const heddle_port& port) { return Shape(port.shape, port.shape + port.rank); };
  const Tensor value = random_floats(shape(in), 3);
  const OnDevice x(*context_, value), y(*context_, shape(out));
  const heddle_device_tensor inputs[] = {{x.tensor().data, HEDDLE_F32, in.rank, in.shape}};
  const heddle_device_tensor outputs[] = {{y.tensor().data, HEDDLE_F32, out.rank, out.shape}};
  size_t bytes = 0;
  ASSERT_EQ(heddle_model_prepare(model, inputs, &bytes, &error), 1) << heddle_error_message(error);
  const OnDevice space = workspace(bytes);
  const CudaStream stream(*context_);
  ASSERT_EQ(heddle_model_enqueue(model, inputs, outputs, space.tensor().data, stream.handle(), &error), 1)
      << heddle_error_message(error);
  stream.synchronize();
  const Tensor expected = Model::load(path("m.onnx")).run({{in.name, value}})[0];
  for (size_t i = 0; i < expected.values<float>().size(); ++i) {
    EXPECT_NEAR(y.read().values<float>()[i], expected.values<float>()[i], 1e-5F);
  }
  EXPECT_EQ(heddle_model_enqueue(model, nullptr, outputs, space.tensor().data, nullptr, &error), 0);
  EXPECT_THAT(heddle_error_message(error), HasSubstr("tensors are NULL"));
  heddle_error_free(error);
  heddle_model_free(model);
}

TEST_F(EnqueueTest, WhatIsWrongIsNamed) {
  test::write_mlp(path("m.onnx"));
  const Model model = Model::load(path("m.onnx"), options_);
  const Shape in = model.inputs()[0].shape, out = model.outputs()[0].shape;
  const OnDevice x(*context_, in), y(*context_, out), space = workspace(model.prepare({in}).workspace_bytes);
  const auto refusal = [&](const DeviceTensor& input, const DeviceTensor& output, void* workspace) {
    return error_of([&] { model.enqueue({input}, {output}, workspace); });
  };
  DeviceTensor shifted = x.tensor(), other = y.tensor(), none = y.tensor(), half = x.tensor();
  shifted.data = static_cast<char*>(shifted.data) + 4;
  other.shape.push_back(1);
  none.data = nullptr;
  half.dtype = DType::kF16;
  const auto name = "input " + model.inputs()[0].name;
  EXPECT_THAT(refusal(shifted, y.tensor(), space.tensor().data).what(),
              AllOf(HasSubstr(name), HasSubstr("multiple of 16")));
  EXPECT_THAT(refusal(half, y.tensor(), space.tensor().data).what(), AllOf(HasSubstr(name), HasSubstr("f16")));
  EXPECT_THAT(refusal(x.tensor(), other, space.tensor().data).what(), HasSubstr("output"));
  EXPECT_THAT(refusal(x.tensor(), none, space.tensor().data).what(), HasSubstr("no memory"));
  DeviceTensor over = y.tensor();
  over.data = x.tensor().data;
  EXPECT_THAT(refusal(x.tensor(), over, space.tensor().data).what(), AllOf(HasSubstr("output"), HasSubstr("input")));
  EXPECT_THAT(refusal(x.tensor(), y.tensor(), static_cast<char*>(space.tensor().data) + 16).what(),
              HasSubstr("multiple of 256"));
  EXPECT_THAT(error_of([&] { model.enqueue({}, {}, nullptr); }).what(),
              HasSubstr("0 inputs are given, the model has 1"));
  const Model cpu = Model::load(path("m.onnx"));
  const Error on_cpu = error_of([&] { cpu.prepare({in}); });
  EXPECT_EQ(on_cpu.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(on_cpu.what(), HasSubstr("CPU"));
}

}  // namespace
}  // namespace heddle::runtime
