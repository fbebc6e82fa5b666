// Device times of plans, for scripts that alternate them with a rival's. A line on stdin is one of
//   RUNS PATH                of a plan file, which stays loaded until a line names another one
//   RUNS copy READ WRITTEN   bytes
// and is answered by a line of JSON: medians in microseconds of its graph with the L2 overwritten before each run
// (cold_us), overwritten and then full of other memory that was read (clean_us), and neither (warm_us), and of a graph
// whose kernel does nothing (empty_us, overwritten). What the first leaves in the L2 the kernel under test has to write
// to memory before it can read as much, which a copy gets back at its end, but not a reduction. With 0 RUNS a plan runs
// once, for a profiler. `copy` is the fastest of nine kernels that read so many bytes, write so many others and do
// nothing else (cold_us alone): 1 to 4 vectors of 16 bytes a thread, blocks of 128 to 512.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/api/model_impl.h"
#include "driver/verify/random_inputs.h"
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

// Its arguments are the addresses of so many operands.
CudaLaunch launch_of(const std::string& symbol, int operands, uint32_t threads) {
  CudaLaunch launch;
  launch.symbol = symbol;
  launch.block = threads;
  for (int i = 0; i < operands; ++i) {
    launch.arguments.emplace_back(sizeof(uint64_t), uint8_t{0});
    launch.pointers.push_back({i, 0, i});
  }
  return launch;
}

// Kernels of the worker's own, and what overwrites the L2.
class Machine {
 public:
  Machine() {
    CudaLaunch read = launch_of("read_all", 1, 256);
    read.grid[0] = static_cast<uint32_t>(8 * context_->device().target.sms);
    nothing_ = graph_of(launch_of("nothing", 0, 32));
    read_ = graph_of(read);
  }
  void overwrite(CudaDriver::Handle stream) { timer_.flush().enqueue(stream); }
  void overwrite_and_read(CudaDriver::Handle stream) {
    overwrite(stream);
    read_->launch(stream);
  }
  double empty_us(int runs) { return median_us_of(*nothing_, runs); }
  double copy_us(int runs, uint64_t read, uint64_t written) {
    const runtime::CudaBuffer from(*context_, std::max<uint64_t>(read, 16)),
        to(*context_, std::max<uint64_t>(written, 16));
    const std::vector<uint64_t> operands = {from.address(), to.address()};
    std::string unit;
    std::vector<CudaLaunch> launches;
    for (const int vectors : {1, 2, 4}) {
      for (const int threads : {128, 256, 512}) {
        const uint64_t each = uint64_t{16} * vectors * threads;
        CudaLaunch& launch = launches.emplace_back(launch_of(fmt::format("copy{}", launches.size()), 2, threads));
        launch.grid[0] = static_cast<uint32_t>((std::max(read, written) + each - 1) / each);
        unit += copy_text(launch.symbol, vectors, threads, read / 16, written / 16);
      }
    }
    const runtime::CudaModule module(*context_,
                                     jit::compile_cubin(unit, context_->device().target.architecture(), true).bytes);
    double best = HUGE_VAL;
    for (const CudaLaunch& launch : launches) {
      const runtime::CudaSequence sequence(*context_, module, {launch}, operands);
      best = std::min(best, median_us_of(runtime::CudaGraph(*context_, [&] { sequence.enqueue(); }), runs));
    }
    return best;
  }

 private:
  double median_us_of(const runtime::CudaGraph& graph, int runs) {
    std::vector<double> times;
    for (int i = 0; i < runs + 3; ++i) times.push_back(timer_.time_us(graph) * 1e-6);
    return median_us(std::vector<double>(times.begin() + 3, times.end()));
  }
  static std::string copy_text(const std::string& symbol, int vectors, int threads, uint64_t read, uint64_t written) {
    return fmt::format(R"(
extern "C" __global__ void __launch_bounds__({2}) {0}(const uint4* from, uint4* to) {{
  const unsigned first = blockIdx.x * {1}u * {2}u + threadIdx.x;
  uint4 v[{1}] = {{}};
#pragma unroll
  for (int k = 0; k < {1}; ++k) {{
    if (first + k * {2}u < {3}u) v[k] = from[first + k * {2}u];
  }}
#pragma unroll
  for (int k = 0; k < {1}; ++k) {{
    const unsigned i = first + k * {2}u;
    if (i < {4}u || (v[k].x ^ v[k].y ^ v[k].z ^ v[k].w) == 0x13579bdfu) to[i < {4}u ? i : 0] = v[k];
  }}
}}
)",
                       symbol, vectors, threads, read, written);
  }
  std::string text() {
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
                       timer_.flush().size() / 16);
  }
  std::unique_ptr<runtime::CudaGraph> graph_of(const CudaLaunch& launch) {
    sequences_.push_back(std::make_unique<runtime::CudaSequence>(*context_, module_, std::vector{launch},
                                                                 std::vector<uint64_t>{timer_.flush().address()}));
    return std::make_unique<runtime::CudaGraph>(*context_, [&] { sequences_.back()->enqueue(); });
  }

  std::shared_ptr<const runtime::CudaContext> context_ = runtime::CudaContext::of_device(0);
  runtime::CudaTimer timer_{*context_};
  runtime::CudaModule module_{*context_,
                              jit::compile_cubin(text(), context_->device().target.architecture(), true).bytes};
  std::vector<std::unique_ptr<runtime::CudaSequence>> sequences_;
  std::unique_ptr<runtime::CudaGraph> nothing_, read_;
};

class Worker {
 public:
  nlohmann::json answer(const std::string& line) {
    size_t at = 0;
    const int runs = std::stoi(line, &at);
    const std::string what = line.substr(std::min(at + 1, line.size()));
    unsigned long long read = 0, written = 0;
    if (std::sscanf(what.c_str(), "copy %llu %llu", &read, &written) == 2) {
      return {{"cold_us", machine_.copy_us(runs, read, written)}};
    }
    if (!loaded_ || loaded_->path != what) {
      loaded_.reset();
      loaded_ = std::make_unique<Loaded>(what, last_);
    }
    const Loaded::Before cold = [&](auto stream) { machine_.overwrite(stream); };
    const Loaded::Before clean = [&](auto stream) { machine_.overwrite_and_read(stream); };
    loaded_->median_us_of(runs > 0 ? 3 : 1, cold);
    if (runs == 0) return nlohmann::json::object();
    return {{"cold_us", loaded_->median_us_of(runs, cold)},
            {"clean_us", loaded_->median_us_of(runs, clean)},
            {"warm_us", loaded_->median_us_of(runs, nullptr)},
            {"empty_us", machine_.empty_us(runs)}};
  }
  void forget() { loaded_.reset(); }

 private:
  Machine machine_;  // holds the context, too: it is not made anew for each plan
  std::unique_ptr<Loaded> loaded_;
  Inputs last_;
};

}  // namespace

int main() {
  std::unique_ptr<Worker> worker;
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::json answer;
    try {
      if (!worker) worker = std::make_unique<Worker>();
      answer = worker->answer(line);
    } catch (const std::exception& error) {
      answer["failure"] = error.what();
      if (worker) worker->forget();
    }
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
