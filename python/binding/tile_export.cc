#include "tile_export.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "errors.h"
#include "interrupt.h"
#include "jit/compiler.h"
#include "jit/headers.h"
#include "lang/analysis/accesses.h"
#include "lang/cpu/lower.h"
#include "lang/cuda/kernel.h"
#include "lang/ir/parse.h"
#include "target/target.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// Name and type of each parameter, and whether the kernel writes to its memory.
nb::list parameters(const std::string& ir) {
  const lang::Kernel kernel = lang::parse_and_verify(ir);
  const std::vector<lang::Accesses> accesses = lang::accesses_of(kernel);
  nb::list all;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const lang::Value& value = kernel.values[static_cast<size_t>(kernel.parameters[i].value)];
    all.append(
        nb::make_tuple(value.name, std::string(to_string(value.type.element)), value.type.pointer, accesses[i].writes));
  }
  return all;
}

// (text, symbol, bytes of scratch of a thread)
nb::tuple cpu_text(const std::string& ir) {
  lang::Kernel kernel = lang::parse_and_verify(ir);
  const lang::cpu::ProgramText made = lang::cpu::lower(kernel);
  return nb::make_tuple(made.text, made.symbol, made.scratch_bytes);
}

// (text, symbol, machine code, threads of a program, bytes of dynamic shared memory). The kernel takes its own
// parameters alone, no tensor maps.
nb::tuple cuda_code(const std::string& ir, const std::string& target) {
  const auto made = interruptible([&] {
    return std::make_shared<const lang::cuda::CudaKernel>(lang::parse_and_verify(ir), target,
                                                          lang::cuda::Loads::kWithoutTensorMaps);
  });
  const lang::cuda::CudaKernel& kernel = *made;
  const lang::cuda::CudaUnit& unit = kernel.unit();
  return nb::make_tuple(unit.text, unit.symbol, nb::bytes(kernel.machine_code().data(), kernel.machine_code().size()),
                        unit.threads, unit.shared_bytes);
}

// A command that compiles texts of kernels for the CPU of `target`: "cpu" for this machine's, "cpu-avx512", "cpu-avx2",
// "cpu-portable". The headers that they include are put into `folder`.
std::vector<std::string> compiler_command(const std::string& target, const std::string& folder) {
  CpuTarget cpu = Target::host_cpu().cpu;
  if (target != "cpu") {
    constexpr CpuIsa kAll[] = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512};
    const auto* const isa = std::find_if(std::begin(kAll), std::end(kAll), [&](CpuIsa known) {
      return target == fmt::format("cpu-{}", to_string(known));
    });
    if (isa == std::end(kAll)) {
      refuse_argument("target", fmt::format("{} is no CPU that kernels are compiled for", target),
                      "Use cpu, cpu-avx512, cpu-avx2, cpu-portable or cuda-sm_90a");
    }
    cpu = CpuTarget{};
    cpu.isa = *isa;
    cpu.f16c = *isa >= CpuIsa::kAvx2;
  }
  std::vector<std::string> command{interruptible([&] {
    jit::materialise_headers(folder);
    return jit::find_compiler().path;
  })};
  for (std::string& flag : jit::compile_flags(cpu)) command.push_back(std::move(flag));
  command.push_back("-I" + folder);
  return command;
}

}  // namespace

void register_tile_export(nb::module_& tile) {
  nb::module_ module = tile.def_submodule("export", "What heddle.tile.tools.compile is made of.");
  module.def("parameters", &parameters, nb::arg("ir"));
  module.def("cpu_text", &cpu_text, nb::arg("ir"));
  module.def("cuda_code", &cuda_code, nb::arg("ir"), nb::arg("target"));
  module.def("compiler_command", &compiler_command, nb::arg("target"), nb::arg("folder"));
}

}  // namespace heddle::python
