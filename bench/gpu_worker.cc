// Device times of plans, for scripts that alternate them with a rival's. Each line on stdin is RUNS, a space and the
// path of a plan file; the answer is one line of JSON: medians in microseconds of its graph with the L2 overwritten
// before each run (cold_us), overwritten and then full of other memory that was read (clean_us), and neither (warm_us),
// and of a graph whose kernel does nothing (empty_us, overwritten). What the first leaves in the L2 the kernel under
// test has to write to memory before it can read as much, which a copy gets back at its end, but not a reduction. A
// plan stays loaded until a line names another one. With 0 RUNS it runs once, for a profiler.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/model_impl.h"
#include "driver/random_inputs.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/executor.h"
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

// Plans of one model are timed one after the other: they get the same inputs.
using Inputs = std::map<std::string, Tensor>;

class Loaded {
 public:
  Loaded(const std::string& path, Inputs& last) : path(path), model_(Model::load(path, {})) {
    const runtime::Plan& plan = *model_.impl().primary().plan;
    Inputs large;
    for (const runtime::Port& port : plan.inputs) {
      if (port.dtype != DType::kF32 && port.dtype != DType::kF16) continue;
      const auto known = last.find(port.name);
      const bool same =
          known != last.end() && known->second.dtype() == port.dtype && known->second.shape() == port.shape;
      large.emplace(port.name, same ? known->second : random_floats(port));
    }
    last = large;
    const auto inputs = driver::random_inputs(plan, 1, std::move(large));
    for (const runtime::Port& port : plan.inputs) inputs_.push_back(inputs.at(port.name));
  }
  // `before` puts on the stream what comes ahead of each run.
  using Before = std::function<void(CudaDriver::Handle stream)>;
  double median_us_of(int runs, const Before& before) const {
    const auto& executor = dynamic_cast<const runtime::CudaExecutor&>(*model_.impl().primary().executor);
    return median_us(executor.device_seconds(inputs_, runs, before));
  }
  const std::string path;

 private:
  Model model_;
  std::vector<Tensor> inputs_;
};

// Kernels of the worker's own, and what overwrites the L2.
class Machine {
 public:
  Machine() {
    CudaLaunch nothing, read;
    nothing.symbol = "nothing";
    nothing.block = 32;
    read.symbol = "read_all";
    read.block = 256;
    read.grid = {static_cast<uint32_t>(8 * context_->device().target.sms), 1, 1};
    read.arguments.emplace_back(sizeof(uint64_t), uint8_t{0});
    read.pointers.push_back({0, 0, 0});
    nothing_ = graph_of(nothing);
    read_ = graph_of(read);
  }
  void overwrite(CudaDriver::Handle stream) { flush_.enqueue(stream); }
  void overwrite_and_read(CudaDriver::Handle stream) {
    overwrite(stream);
    read_->launch(stream);
  }
  double empty_us(int runs) {
    runtime::CudaTimer timer(*context_);
    std::vector<double> times;
    for (int i = 0; i < runs + 3; ++i) times.push_back(timer.time_us(*nothing_) * 1e-6);
    return median_us(std::vector<double>(times.begin() + 3, times.end()));
  }

 private:
  std::string text() const {
    return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(32) nothing() {{}}
extern "C" __global__ void __launch_bounds__(256) read_all(uint4* all) {{
  unsigned sum = 0;
  for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < {0}u; i += gridDim.x * 256) {{
    const uint4 v = all[i];
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }}
  if (sum == 0x13579bdfu) all[0].x = sum;
}}
)",
                       flush_.size() / 16);
  }
  std::unique_ptr<runtime::CudaGraph> graph_of(const CudaLaunch& launch) {
    sequences_.push_back(std::make_unique<runtime::CudaSequence>(*context_, module_, std::vector{launch},
                                                                 std::vector<uint64_t>{flush_.address()}));
    return std::make_unique<runtime::CudaGraph>(*context_, [&] { sequences_.back()->enqueue(); });
  }

  std::shared_ptr<const runtime::CudaContext> context_ = runtime::CudaContext::of_device(0);
  runtime::CudaFlush flush_{*context_};
  runtime::CudaModule module_{*context_,
                              jit::compile_cubin(text(), context_->device().target.architecture(), true).bytes};
  std::vector<std::unique_ptr<runtime::CudaSequence>> sequences_;
  std::unique_ptr<runtime::CudaGraph> nothing_, read_;
};

}  // namespace

int main() {
  std::unique_ptr<Machine> machine;  // holds the context, too: it is not made anew for each plan
  std::unique_ptr<Loaded> loaded;
  Inputs last;
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::json answer;
    try {
      size_t at = 0;
      const int runs = std::stoi(line, &at);
      const std::string path = line.substr(std::min(at + 1, line.size()));
      if (!machine) machine = std::make_unique<Machine>();
      if (!loaded || loaded->path != path) {
        loaded.reset();
        loaded = std::make_unique<Loaded>(path, last);
      }
      const Loaded::Before cold = [&](auto stream) { machine->overwrite(stream); };
      const Loaded::Before clean = [&](auto stream) { machine->overwrite_and_read(stream); };
      loaded->median_us_of(runs > 0 ? 3 : 1, cold);
      if (runs > 0) {
        answer["cold_us"] = loaded->median_us_of(runs, cold);
        answer["clean_us"] = loaded->median_us_of(runs, clean);
        answer["warm_us"] = loaded->median_us_of(runs, nullptr);
        answer["empty_us"] = machine->empty_us(runs);
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
