#include "driver/report/inside/sample_gpu.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "driver/report/inside/fused_kernels.h"
#include "profile/code/cubin_lines.h"
#include "profile/gpu/pc_sampler.h"
#include "runtime/cuda/device.h"

namespace heddle::driver {
namespace {

using profile::code::CubinLines;

// Of the launches of one kernel whose code is known: by symbol.
struct Lined {
  std::map<std::string, CubinLines> lines;
  TextPlaces places;
};

std::string_view code_in_plan(const runtime::Plan& plan, const std::string& symbol) {
  for (const runtime::Cubin& cubin : plan.cubins) {
    const bool has = std::find(cubin.symbols.begin(), cubin.symbols.end(), symbol) != cubin.symbols.end();
    if (has) return profile::code::code_of(cubin.bytes, symbol);
  }
  return {};
}

// Empty where the code with tables is not the plan's. Throws what the compiler throws.
Lined lined(const CompiledModel& model, const FusedKernel& kernel, const Target& target) {
  for (const bool relaxed : {false, true}) {
    const LinedCubin compiled = compile_lined_cubin(model.kernels, kernel.launches, target.cuda, relaxed);
    Lined found;
    for (const std::string& symbol : kernel.launches) {
      const std::string_view code = code_in_plan(*model.plan, symbol);
      if (code.empty() || code != profile::code::code_of(compiled.bytes, symbol)) continue;
      found.lines.emplace(symbol, CubinLines::of(compiled.bytes, symbol));
    }
    if (found.lines.empty()) continue;
    for (const auto& [symbol, lines] : kernel.lines) {
      found.places.add("kernel.cu", compiled.text, model.kernels.text_of(symbol).text, symbol);
    }
    return found;
  }
  return {};
}

// By kernel. Those that cannot be compiled have none, and `why` has the last reason.
std::map<const FusedKernel*, Lined> lined_kernels(const CompiledModel& model, FusedKernels& kernels,
                                                  const Target& target, std::string& why) {
  std::vector<const FusedKernel*> order;
  for (const auto& [symbol, kernel] : kernels.all()) order.push_back(&kernel);
  std::map<const FusedKernel*, Lined> all;
  std::mutex mutex;
  const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::clamp<int>(Target::host_cpu().cpu.threads, 1, static_cast<int>(order.size())));
  pool->run(static_cast<int64_t>(order.size()), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const FusedKernel* const kernel = order[static_cast<size_t>(i)];
      Lined one;
      std::string failure;
      try {
        one = lined(model, *kernel, target);
      } catch (const Error& error) {
        failure = error.why();
      }
      const std::lock_guard lock(mutex);
      if (!failure.empty()) why = std::move(failure);
      all.emplace(kernel, std::move(one));
    }
  });
  return all;
}

std::vector<profile::PcSample> samples_of(double seconds, int device, const std::vector<Tensor>& inputs,
                                          const std::function<std::unique_ptr<runtime::Executor>()>& make,
                                          size_t& dropped) {
  constexpr uint32_t kPeriod = 14;  // 2^14 cycles: some 100,000 samples a second of each SM
  constexpr int kRunsAtOnce = 10;
  const auto context = runtime::CudaContext::of_device(device);
  context->make_current();
  profile::PcSampler sampler(context->handle(), kPeriod);  // ahead of the kernels' code
  const std::unique_ptr<runtime::Executor> executor = make();
  executor->run(inputs);
  context->make_current();
  sampler.start();
  const double begin = wall_seconds();
  do {
    executor->device_seconds(inputs, kRunsAtOnce);
  } while (wall_seconds() - begin < seconds);
  context->make_current();
  context->synchronize();
  std::vector<profile::PcSample> samples = sampler.stop();
  dropped = sampler.dropped();
  return samples;
}

}  // namespace

InsideShares sample_inside_gpu(const CompiledModel& model, const Target& target, double seconds, int device,
                               const std::vector<Tensor>& inputs,
                               const std::function<std::unique_ptr<runtime::Executor>()>& make) {
  InsideShares result;
  result.by_step.resize(model.plan->steps.size());
  if (target.cuda.emulated) {
    result.why_none = "an emulated GPU has no program counters";
    return result;
  }
  FusedKernels kernels(model, target);
  result.fused = kernels.steps();
  if (kernels.empty()) return result;
  std::vector<profile::PcSample> samples;
  try {
    samples = samples_of(seconds, device, inputs, make, result.dropped);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDevice && error.code() != ErrorCode::kOutOfMemory) throw;
    result.why_none = error.why();
    return result;
  }
  std::string why;
  const std::map<const FusedKernel*, Lined> all = lined_kernels(model, kernels, target, why);
  for (const profile::PcSample& sample : samples) {
    FusedKernel* const kernel = kernels.of_symbol(sample.kernel);
    if (kernel == nullptr) continue;
    const Lined& known = all.at(kernel);
    const auto lines = known.lines.find(sample.kernel);
    if (lines == known.lines.end()) continue;
    kernels.count(*kernel, known.places.text_at(lines->second.at(sample.offset)),
                  static_cast<double>(sample.samples - sample.memory));
    kernel->memory += static_cast<double>(sample.memory);
    result.samples += sample.samples;
  }
  if (result.samples == 0) result.why_none = why;
  result.by_step = kernels.shares();
  return result;
}

}  // namespace heddle::driver
