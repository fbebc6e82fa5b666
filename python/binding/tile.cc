#include "tile.h"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/system/environment.h"
#include "base/thread/thread.h"
#include "errors.h"
#include "interrupt.h"
#include "lang/cpu/launch/kernel.h"
#include "lang/cuda/kernel.h"
#include "lang/interpret/interpret.h"
#include "lang/ir/parse.h"
#include "lang/ir/print.h"
#include "lang/ir/verify.h"
#include "lang/passes/check_bounds.h"
#include "launcher.h"
#include "text.h"
#include "tile_export.h"
#include "tile_kernels.h"
#include "tile_winners.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// (address, bytes, name)
using Region = std::tuple<uint64_t, uint64_t, std::string>;

// A pointer's address, an integer of up to 64 bits with or without sign, a bool or a float.
lang::Argument argument_of(nb::handle value) {
  if (nb::isinstance<nb::float_>(value)) return lang::Argument::of_number(nb::cast<double>(value));
  int64_t integer = 0;
  if (nb::try_cast<int64_t>(value, integer)) return lang::Argument::of(integer);
  uint64_t large = 0;
  if (!nb::try_cast<uint64_t>(value, large)) {
    refuse_argument("arguments", fmt::format("a {} is neither an integer of 64 bits nor a float", class_name(value)));
  }
  return {static_cast<int64_t>(large), static_cast<double>(large)};
}

std::vector<lang::Argument> arguments_of(const nb::sequence& values) {
  std::vector<lang::Argument> arguments;
  for (const nb::handle value : values) arguments.push_back(argument_of(value));
  return arguments;
}

// A kernel that was parsed and verified.
struct Verified {
  lang::Kernel kernel;
};

lang::InterpretOptions options_of(const std::vector<Region>& allocations, bool checked, const nb::object& print) {
  lang::InterpretOptions options;
  for (const auto& [address, bytes, name] : allocations) options.allocations.push_back({address, bytes, name});
  options.checked = checked;
  if (!print.is_none()) {
    options.print = [&print](const std::string& line) {
      const nb::gil_scoped_acquire held;
      print(line);
    };
  }
  return options;
}

void interpret(const Verified& kernel, const Grid& grid, const nb::sequence& arguments,
               const std::vector<Region>& allocations, bool checked, const nb::object& print) {
  const std::vector<lang::Argument> values = arguments_of(arguments);
  const lang::InterpretOptions options = options_of(allocations, checked, print);
  interruptible([&] { lang::interpret(kernel.kernel, grid, values, options); });
}

Verified with_checks(const Verified& given) {
  Verified checked = given;
  lang::check_bounds(checked.kernel);
  lang::verify(checked.kernel);
  return checked;
}

// For the CPU or a GPU. `cancellation`: set by the thread that waits for this one to compile.
nb::object compile_for(const Verified& kernel, const std::string& target, Cancellation* cancellation) {
  if (target == "cpu") {
    return nb::cast(interruptible(cancellation, [&] {
      return std::const_pointer_cast<lang::cpu::CpuKernel>(
          lang::cpu::CpuKernel::compile(kernel.kernel, Target::host_cpu()));
    }));
  }
  return nb::cast(DeviceKernel{kernel.kernel, interruptible(cancellation, [&] {
                                 return std::make_shared<lang::cuda::CudaKernel>(kernel.kernel, target);
                               })});
}

std::string cuda_target(int ordinal) {
  const auto context = runtime::CudaContext::of_device(ordinal);
  return lang::cuda::target_name(context->device().target);
}

void launch_on_device(const DeviceKernel& kernel, const Grid& grid, const nb::sequence& arguments, uint64_t stream,
                      int device) {
  const std::vector<uint64_t> words = lang::argument_words(kernel.kernel, arguments_of(arguments));
  const nb::gil_scoped_release free;
  kernel.compiled->launch(grid, words, reinterpret_cast<CudaDriver::Handle>(stream), device);
}

void launch(const lang::cpu::CpuKernel& kernel, const Grid& grid, const nb::sequence& arguments,
            const nb::object& print) {
  const std::vector<lang::Argument> values = arguments_of(arguments);
  const lang::InterpretOptions options = options_of({}, false, print);
  interruptible([&] { kernel.launch(grid, values, tile_threads(), options.print); });
}

}  // namespace

ThreadPool& tile_threads() {
  const auto wanted = [] {
    const std::optional<int64_t> given = integer_in_environment("HEDDLE_TILE_THREADS", 1, 4096);
    return given ? static_cast<int>(*given) : Target::host_cpu().cpu.threads;
  };
  static const std::unique_ptr<ThreadPool> threads = pool_of_up_to(wanted());
  return *threads;
}

void register_tile(nb::module_& module) {
  // Triton's exception, for tuners that pass over configurations by it.
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const lang::cuda::SharedMemoryError& error) {
      const nb::object made =
          nb::module_::import_("heddle.tile.compiler.errors")
              .attr("OutOfResources")(error.required(), error.limit(), "shared memory", text_object(error.where()));
      PyErr_SetObject(made.type().ptr(), made.ptr());
    }
  });
  nb::module_ tile = module.def_submodule("tile", "Kernels of the tile language. Use heddle.tile.");
  nb::class_<Cancellation>(tile, "Cancellation", "Ends what is compiled with it.")
      .def(nb::init<>())
      .def("cancel", &Cancellation::cancel);
  nb::class_<Verified>(tile, "Verified")
      .def_prop_ro("name", [](const Verified& self) { return self.kernel.name; })
      .def("text", [](const Verified& self) { return lang::print(self.kernel); })
      .def("interpret", &interpret, nb::arg("grid"), nb::arg("arguments"),
           nb::arg("allocations") = std::vector<Region>(), nb::arg("checked") = false,
           nb::arg("print").none() = nb::none())
      .def("with_checks", &with_checks)
      .def("compile", &compile_for, nb::arg("target") = "cpu", nb::arg("cancellation").none() = nb::none());
  nb::class_<lang::cpu::CpuKernel>(tile, "Kernel")
      .def_prop_ro("text", &lang::cpu::CpuKernel::text)
      .def("launch", &launch, nb::arg("grid"), nb::arg("arguments"), nb::arg("print").none() = nb::none());
  nb::class_<DeviceKernel>(tile, "DeviceKernel")
      .def_prop_ro("text", [](const DeviceKernel& self) { return self.compiled->unit().text; })
      .def_prop_ro("registers", [](const DeviceKernel& self) { return self.compiled->registers(); })
      .def_prop_ro("spills", [](const DeviceKernel& self) { return self.compiled->spills(); })
      .def_prop_ro("shared", [](const DeviceKernel& self) { return self.compiled->unit().shared_bytes; })
      .def("launch", &launch_on_device, nb::arg("grid"), nb::arg("arguments"), nb::arg("stream") = 0,
           nb::arg("device") = 0);
  register_launcher(tile);
  register_tile_export(tile);
  register_tile_winners(tile);
  tile.def("cuda_target", &cuda_target, nb::arg("device") = 0);
  tile.def(
      "parse_and_verify", [](const std::string& text) { return Verified{lang::parse_and_verify(text)}; },
      nb::arg("text"));
}

}  // namespace heddle::python
