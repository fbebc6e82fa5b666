#include "machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/check.h"
#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"
#include "tests/instances.h"
#include "tests/machine_code.h"

namespace heddle::testing {
namespace {

// The driver is chosen before the first use of CUDA, the machine before the first test.
const bool kInstalled = [] {
  ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
  machine() = {[](int threads) { return Target::cuda_device(0, threads); }, compile_for_cuda};
  return true;
}();

// The emulator's compiler takes more than NVRTC does, which sees some of the same texts wherever it is installed.
void compile_by_nvrtc(const std::string& unit, const CudaTarget& emulated) {
  static const bool has_nvrtc = [] {
    try {
      jit::find_nvrtc();
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  if (!has_nvrtc || !test::takes_instance(std::hash<std::string>()(unit))) return;
  CudaTarget target = emulated;
  target.emulated = false;
  const auto compiled = jit::compile_cubin(unit, target.architecture(), true, jit::Slow::kAcceptAtOnce);
  EXPECT_EQ(test::find_wrong_loads(compiled.bytes), "") << unit;
}

}  // namespace

RunKernels compile_for_cuda(const std::vector<const codegen::KernelSource*>& kernels, const Target& target) {
  struct Loaded {
    runtime::CudaContext context{0};
    std::unique_ptr<runtime::CudaModule> module;
  };
  const auto loaded = std::make_shared<Loaded>();
  const std::string unit = codegen::translation_unit(kernels);
  if (target.cuda.emulated) compile_by_nvrtc(unit, target.cuda);
  const auto compiled = jit::compile_cubin(unit, target.cuda.architecture(), true);
  loaded->module = std::make_unique<runtime::CudaModule>(loaded->context, compiled.bytes);
  return [loaded](const schedule::ScheduledGroup& group, const std::vector<codegen::KernelSource>& sources,
                  const std::string&, Memory& memory) {
    std::map<Guarded*, std::unique_ptr<runtime::CudaBuffer>> buffers;
    const auto upload = [&](Guarded& host, bool filled) {
      auto buffer = std::make_unique<runtime::CudaBuffer>(loaded->context, std::max<int64_t>(host.size(), 1));
      if (filled && host.size() > 0) buffer->write(host.data(), static_cast<size_t>(host.size()));
      buffers[&host] = std::move(buffer);
    };
    for (auto& [id, host] : memory.values) upload(*host, true);
    for (auto& host : memory.workspaces) upload(*host, false);
    for (size_t k = 0; k < group.kernels.size(); ++k) {
      std::vector<uint64_t> operands;
      for (const auto& b : group.kernels[k].bindings) {
        const bool is_value = b.kind == schedule::Binding::Kind::kValue;
        Guarded* host = is_value ? memory.values.at(b.value).get() : memory.workspaces[b.workspace].get();
        operands.push_back(buffers.at(host)->address());
      }
      // What the driver supplies behind a kernel's operands; counters are left at zero.
      runtime::CudaBuffer workspace(loaded->context, std::max<size_t>(sources[k].workspace_bytes, 1));
      runtime::CudaBuffer counters(loaded->context, std::max<size_t>(sources[k].counter_bytes, 4));
      std::vector<uint8_t> zeros(counters.size());
      counters.write(zeros.data(), zeros.size());
      if (sources[k].workspace_bytes > 0 || sources[k].counter_bytes > 0) {
        operands.insert(operands.end(), {workspace.address(), counters.address()});
      }
      runtime::CudaSequence(loaded->context, *loaded->module, sources[k].launches, operands).enqueue();
      loaded->context.synchronize();
      counters.read(zeros.data(), zeros.size());
      HEDDLE_CHECK(std::count(zeros.begin(), zeros.end(), 0) == static_cast<ptrdiff_t>(zeros.size()));
    }
    for (auto& [id, host] : memory.values) {
      if (host->size() > 0) buffers.at(host.get())->read(host->data(), static_cast<size_t>(host->size()));
    }
  };
}

}  // namespace heddle::testing
