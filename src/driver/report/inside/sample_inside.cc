#include "driver/report/inside/sample_inside.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "driver/report/inside/fused_kernels.h"
#include "driver/target/machine_code.h"
#include "jit/compiler.h"
#include "jit/library.h"
#include "profile/code/elf.h"
#include "profile/code/line_table.h"
#include "profile/code/sampler.h"

namespace heddle::driver {
namespace {

// None, and why, where another profile of this process is taking samples.
std::vector<profile::code::Sample> samples_of(double seconds, const RunSteps& run, std::string& why) {
  constexpr int64_t kPeriod = 200'000;
  constexpr size_t kMost = 1 << 16;
  constexpr uint32_t kNoStep = 0;
  std::optional<profile::code::Sampler> sampler;
  try {
    sampler.emplace(kPeriod, kMost);
  } catch (const Error& error) {
    why = error.why();
    return {};
  }
  sampler->set_context(kNoStep);
  const double begin = wall_seconds();
  do {
    run([&](int64_t step) { sampler->set_context(static_cast<uint32_t>(step + 1)); });
  } while (wall_seconds() - begin < seconds);
  sampler->stop();
  return sampler->samples();
}

}  // namespace

std::string InsideShares::fact() const {
  if (!why_none.empty()) return "no samples: " + why_none;
  if (fused == 0) return "no kernel outside of branches and loops is of several nodes";
  const auto steps = std::count_if(by_step.begin(), by_step.end(), [](const auto& shares) { return !shares.empty(); });
  return fmt::format("{} of {} kernels of several nodes divided by samples, {} in all{}{}", steps, fused, samples,
                     dropped == 0 ? "" : fmt::format(", {} dropped", dropped),
                     static_cast<size_t>(steps) == fused ? "" : "; more seconds divide more of them");
}

InsideShares sample_inside(const CompiledModel& model, const Target& target, double seconds, const RunSteps& run) {
  InsideShares result;
  result.by_step.resize(model.plan->steps.size());
  FusedKernels kernels(model, target);
  result.fused = kernels.steps();
  if (kernels.empty()) return result;

  const std::string& plain = model.plan->library;
  LinedLibrary lined;
  profile::code::LineTable table;
  try {
    lined = compile_lined_library(model.compiled, target.cpu, Target::host_cpu().cpu.threads);
    table = profile::code::LineTable::of(lined.bytes);
  } catch (const Error& error) {
    result.why_none = error.why();
    return result;
  }
  const profile::code::Section text = profile::code::section_of(plain, ".text");
  const profile::code::Section same = profile::code::section_of(lined.bytes, ".text");
  if (text.bytes != same.bytes || text.address != same.address) {
    result.why_none = "the compiler makes other code when it writes tables of lines";
    return result;
  }
  TextPlaces places;
  for (size_t unit = 0; unit < lined.units.size(); ++unit) {
    for (const auto& [symbol, kernel] : kernels.all()) {
      for (const auto& [of_text, lines] : kernel.lines) {
        places.add(jit::unit_file(lined.units[unit]), lined.units[unit],
                   codegen::without_comments(model.kernels.text_of(of_text).text), of_text);
      }
    }
  }
  // Equal bytes are one library: this is the one that the executor runs.
  const auto library = jit::Library::load(plain);
  Dl_info object = {};
  if (::dladdr(reinterpret_cast<void*>(library->find(kernels.all().begin()->first)), &object) == 0) {
    result.why_none = "the loader does not say where the kernels lie";
    return result;
  }
  const auto base = reinterpret_cast<uint64_t>(object.dli_fbase);

  std::map<uint64_t, std::optional<TextLine>> known;  // by address
  for (const profile::code::Sample& sample : samples_of(seconds, run, result.why_none)) {
    const uint64_t address = sample.pc - base;
    const bool inside = sample.context > 0 && address - text.address < text.bytes.size();
    FusedKernel* const kernel = inside ? kernels.of(sample.context - 1) : nullptr;
    if (kernel == nullptr) continue;
    auto found = known.find(address);
    if (found == known.end()) found = known.emplace(address, places.text_at(table.at(address))).first;
    kernels.count(*kernel, found->second);
    ++result.samples;
  }
  result.by_step = kernels.shares();
  return result;
}

}  // namespace heddle::driver
