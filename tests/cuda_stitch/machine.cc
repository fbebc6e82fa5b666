#include "machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"
#include "loaded.h"
#include "tests/instances.h"
#include "tests/machine_code.h"

namespace heddle::testing {
namespace {

// The driver is chosen before the first use of CUDA, the machine before the first test.
const bool kInstalled = [] {
  ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
  machine() = {[](int threads) { return Target::cuda_device(0, threads); }, compile_for_cuda, test::kOneDrawn};
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
  const std::string unit = codegen::translation_unit(kernels);
  if (target.cuda.emulated) compile_by_nvrtc(unit, target.cuda);
  return run_on_gpu(runtime::GpuApi::kCuda, jit::compile_cubin(unit, target.cuda.architecture(), true).bytes);
}

}  // namespace heddle::testing
