#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "harness.h"
#include "heddle/error.h"
#include "jit/hip/code_object.h"
#include "loaded.h"
#include "tests/instances.h"

namespace heddle::testing {
namespace {

bool has_compiler() {
  static const bool found = [] {
    try {
      jit::find_hip_compiler();
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return found;
}

// The emulator's compiler sees all texts, that for AMD GPUs some of them. It must not spill registers.
void compile_for_hardware(const std::string& unit, const HipTarget& emulated) {
  if (!has_compiler() || !test::takes_instance(std::hash<std::string>()(unit))) return;
  HipTarget target = emulated;
  target.emulated = false;
  EXPECT_NO_THROW(jit::compile_code_object(unit, target.architecture(), true)) << unit;
}

RunKernels compile_for_hip(const std::vector<const codegen::KernelSource*>& kernels, const Target& target) {
  const std::string unit = codegen::translation_unit(kernels);
  compile_for_hardware(unit, target.hip);
  return run_on_gpu(runtime::GpuApi::kHip, jit::compile_for_gpu(unit, target.hip.architecture(), true).bytes);
}

// The driver is chosen before its first use, the machine before the first test.
const bool kInstalled = [] {
  ::setenv("HEDDLE_HIP_DRIVER", HEDDLE_EMULATOR, 0);
  machine() = {[](int threads) { return Target::hip_device(0, threads); }, compile_for_hip, test::kOneDrawn};
  return true;
}();

}  // namespace
}  // namespace heddle::testing
