// Device times of plans, for scripts that alternate them with a rival's. Each line on stdin is RUNS, a space and the
// path of a plan file; the answer is one line of JSON: medians in microseconds of its graph with the L2 flushed before
// each run (cold_us) and not (warm_us), and the same of a graph whose kernel does nothing (empty_us, flushed). A plan
// stays loaded until a line names another one. With 0 RUNS it runs once, for a profiler.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/model_impl.h"
#include "driver/random_inputs.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/launch.h"

using namespace heddle;

namespace {

double median_us(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2] * 1e6;
}

// Of either sign, from 1/4 to 4: quick to make, so that gigabytes take no longer than what is to be measured.
Tensor random_floats(const runtime::Port& port) {
  Tensor tensor(port.dtype, port.shape);
  uint64_t state = 0x9e3779b97f4a7c15;
  const auto next = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  if (port.dtype == DType::kF32) {
    auto* out = static_cast<uint32_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const uint64_t r = next();
      out[i] = static_cast<uint32_t>((r & 0x807fffff) | ((125 + (r >> 40 & 3)) << 23));
    }
  } else {
    auto* out = static_cast<uint16_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const uint64_t r = next();
      out[i] = static_cast<uint16_t>((r & 0x83ff) | ((13 + (r >> 40 & 3)) << 10));
    }
  }
  return tensor;
}

class Loaded {
 public:
  explicit Loaded(const std::string& path) : path(path), model_(Model::load(path, {})) {
    const runtime::Plan& plan = *model_.impl().primary().plan;
    std::map<std::string, Tensor> large;
    for (const runtime::Port& port : plan.inputs) {
      if (port.dtype == DType::kF32 || port.dtype == DType::kF16) large.emplace(port.name, random_floats(port));
    }
    const auto inputs = driver::random_inputs(plan, 1, std::move(large));
    for (const runtime::Port& port : plan.inputs) inputs_.push_back(inputs.at(port.name));
  }
  std::vector<double> seconds(int runs, bool cold) const {
    return model_.impl().primary().executor->device_seconds(inputs_, runs, cold);
  }
  const std::string path;

 private:
  Model model_;
  std::vector<Tensor> inputs_;
};

// What a graph takes whose one kernel does nothing.
double empty_us(int runs) {
  const auto context = runtime::CudaContext::of_device(0);
  const std::string text = "extern \"C\" __global__ void __launch_bounds__(32) nothing() {}\n";
  const auto compiled = jit::compile_cubin(text, context->device().target.architecture(), true);
  const runtime::CudaModule module(*context, compiled.bytes);
  CudaLaunch launch;
  launch.symbol = "nothing";
  launch.block = 32;
  const runtime::CudaSequence sequence(*context, module, {launch}, {});
  runtime::CudaBuffer flush(*context, runtime::flush_bytes(context->device().target));
  const runtime::CudaGraph graph(*context, [&] { sequence.enqueue(); });
  runtime::CudaTimer timer(*context, flush);
  std::vector<double> times;
  for (int i = 0; i < runs + 3; ++i) times.push_back(timer.time_us(graph) * 1e-6);
  return median_us(std::vector<double>(times.begin() + 3, times.end()));
}

}  // namespace

int main() {
  std::unique_ptr<Loaded> loaded;
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::json answer;
    try {
      size_t at = 0;
      const int runs = std::stoi(line, &at);
      const std::string path = line.substr(std::min(at + 1, line.size()));
      if (!loaded || loaded->path != path) {
        loaded.reset();
        loaded = std::make_unique<Loaded>(path);
      }
      loaded->seconds(runs > 0 ? 3 : 1, true);
      if (runs > 0) {
        answer["cold_us"] = median_us(loaded->seconds(runs, true));
        answer["warm_us"] = median_us(loaded->seconds(runs, false));
        answer["empty_us"] = empty_us(runs);
      }
    } catch (const std::exception& error) {
      answer["failure"] = error.what();
      loaded.reset();
    }
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
