#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/thread/thread_pool.h"
#include "jit/compiler.h"
#include "runtime/arena.h"
#include "runtime/plan.h"

namespace heddle::runtime {

// Plans written by hand over kernels that are compiled once per test binary: f32 vectors of eight elements.
inline constexpr int64_t kSize = 8;

// axpy: y = a + 2 b; increment: y = a + 1; less: y[0] = a[0] < 5 (a: i64 or f32 scalar); task_id: y[i] = i per task.
inline const std::string& kernel_library() {
  static const std::string library = [] {
    const std::string text = R"(
      #include <stdint.h>
      #define KERNEL(NAME) extern "C" void NAME(void* const* p, void* scratch, int64_t begin, int64_t end)
      KERNEL(axpy) {
        auto *a = (const float*)p[0], *b = (const float*)p[1];
        auto* y = (float*)p[2];
        for (int64_t i = begin; i < end; ++i) y[i] = a[i] + 2 * b[i];
      }
      KERNEL(increment) {
        auto* a = (const float*)p[0];
        auto* y = (float*)p[1];
        for (int64_t i = begin; i < end; ++i) y[i] = a[i] + 1;
      }
      KERNEL(below_five) { *(uint8_t*)p[1] = *(const float*)p[0] < 5; }
      KERNEL(add_index) { *(float*)p[2] = *(const float*)p[0] + (float)*(const int64_t*)p[1]; }
      KERNEL(through_scratch) {
        auto* a = (const float*)p[0];
        auto* y = (float*)p[1];
        auto* s = (float*)scratch;
        for (int64_t i = begin; i < end; ++i) {
          for (int j = 0; j < 64; ++j) s[j] = a[i] + j;
          y[i] = s[63] - 63;
        }
      }
    )";
    return jit::compile({text}, Target::host_cpu(2).cpu, 1, false).bytes;
  }();
  return library;
}

class PlanWriter {
 public:
  Plan plan;

  uint32_t input(const std::string& name, DType dtype, Shape shape) {
    const uint32_t index = add(Place::kInput, static_cast<uint32_t>(plan.inputs.size()), dtype, shape);
    plan.inputs.push_back({name, dtype, shape, index});
    return index;
  }
  uint32_t constant(Tensor value) {
    const uint32_t index =
        add(Place::kConstant, static_cast<uint32_t>(plan.constants.size()), value.dtype(), value.shape());
    plan.constants.push_back(std::move(value));
    return index;
  }
  uint32_t arena(DType dtype, Shape shape) {
    const uint32_t index = add(Place::kArena, 0, dtype, shape);
    plan.buffers[index].offset = plan.arena_bytes;
    plan.arena_bytes += aligned(plan.buffers[index].bytes);
    return index;
  }
  // A buffer that is the next output itself.
  uint32_t output(const std::string& name, DType dtype, Shape shape) {
    const uint32_t index = add(Place::kOutput, static_cast<uint32_t>(plan.outputs.size()), dtype, shape);
    plan.outputs.push_back({name, dtype, shape, index});
    return index;
  }
  // An output whose value lies in another buffer.
  void output_of(const std::string& name, uint32_t buffer) {
    plan.outputs.push_back({name, plan.buffers[buffer].dtype, plan.buffers[buffer].shape, buffer});
  }
  void kernel(const std::string& symbol, std::vector<uint32_t> operands, int64_t tasks, int64_t scratch = 0) {
    step(KernelStep{symbol, std::move(operands), tasks, scratch});
  }
  template <typename Action>
  void step(Action action) {
    plan.steps.push_back({std::move(action), "step", "node", 1e-6});
  }
  std::shared_ptr<const Plan> finish(bool with_library = true) {
    if (with_library) plan.library = kernel_library();
    plan.model = "test";
    plan.target = "cpu-portable";
    validate(plan);
    return std::make_shared<const Plan>(plan);
  }

 private:
  uint32_t add(Place place, uint32_t index, DType dtype, const Shape& shape) {
    Buffer buffer;
    buffer.place = place;
    buffer.index = index;
    buffer.dtype = dtype;
    buffer.shape = shape;
    buffer.bytes = element_count(shape) * static_cast<int64_t>(size_of(dtype));
    plan.buffers.push_back(buffer);
    return static_cast<uint32_t>(plan.buffers.size() - 1);
  }
};

inline std::shared_ptr<ThreadPool> pool(int threads = 2) {
  return std::make_shared<ThreadPool>(threads);
}

inline Tensor floats(std::vector<float> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::of<float>(DType::kF32, {n}, std::span<const float>(values));
}

inline Tensor scalar_i64(int64_t value) {
  return Tensor::of<int64_t>(DType::kI64, {}, {value});
}
inline Tensor scalar_bool(bool value) {
  return Tensor::of<uint8_t>(DType::kBool, {}, {static_cast<uint8_t>(value)});
}
inline Tensor scalar_f32(float value) {
  return Tensor::of<float>(DType::kF32, {}, {value});
}

inline std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

// y = (x + 1) + 2 c, out2 = x.
inline std::shared_ptr<const Plan> small_plan() {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {kSize});
  const uint32_t c = w.constant(floats({1, 2, 3, 4, 5, 6, 7, 8}));
  const uint32_t t = w.arena(DType::kF32, {kSize});
  const uint32_t y = w.output("y", DType::kF32, {kSize});
  w.kernel("increment", {x, t}, kSize);
  w.kernel("axpy", {t, c, y}, kSize);
  w.output_of("same", x);
  return w.finish();
}

// state' = state + index, stacked = state'; runs while state' < 5 and index < trip.
inline std::shared_ptr<const Plan> loop_plan(int64_t bound) {
  PlanWriter body;
  const uint32_t index = body.input("i", DType::kI64, {});
  body.input("c", DType::kBool, {});
  const uint32_t state = body.input("s", DType::kF32, {});
  const uint32_t condition = body.output("c", DType::kBool, {});
  // The state lives in the slice: port 1 names the buffer of port 2.
  body.plan.outputs.push_back({"s", DType::kF32, {}, 0});
  const uint32_t slice = body.output("slice", DType::kF32, {});
  body.plan.outputs[1].buffer = slice;
  body.kernel("add_index", {state, index, slice}, 1);
  body.kernel("below_five", {slice, condition}, 1);

  PlanWriter outer;
  LoopStep loop;
  loop.body = std::make_shared<const Plan>(body.plan);
  loop.trip = outer.input("trip", DType::kI64, {});
  loop.condition = outer.input("condition", DType::kBool, {});
  loop.states = {outer.input("s", DType::kF32, {})};
  loop.final_states = {outer.output("final", DType::kF32, {})};
  loop.stacked = {outer.output("stacked", DType::kF32, {bound})};
  loop.trip_bound = bound;
  loop.workspace = outer.arena(DType::kU8, {workspace_bytes(loop)});
  outer.step(loop);
  return outer.finish();
}

}  // namespace heddle::runtime
