#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "addresses.h"
#include "base/interface/option.h"
#include "base/near_miss.h"
#include "cli/arguments.h"
#include "errors.h"
#include "graph.h"
#include "heddle/version.h"
#include "interrupt.h"
#include "jit/cuda/nvrtc.h"
#include "model.h"
#include "ops.h"
#include "reference.h"
#include "source.h"
#include "specialised.h"
#include "tensor.h"
#include "text.h"
#include "tile.h"
#include "torch_tensors.h"

namespace nb = nanobind;

namespace {

// The command `heddle`, in this process, which ends after it.
int command(const nb::list& given) {
  std::vector<std::string> words;
  for (const nb::handle word : given) words.push_back(heddle::python::path_of(word));
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const nb::gil_scoped_release free;
  return heddle::cli::main(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // torch keeps operators, and with them models, to the end of the process
  module.doc() = "What heddle has in C++. Use the package heddle.";
  module.def("version", [] { return std::string(heddle::version()); });
  module.def("near_miss", [](const std::string& word, const std::vector<std::string>& known) {
    return std::string(heddle::near_miss(word, {known.begin(), known.end()}));
  });
  module.def("command", &command, nb::arg("words"));
  module.def("prefer_nvrtc", &heddle::jit::prefer_nvrtc, nb::arg("paths"));
  heddle::speak_of(heddle::Interface::kPython);
  heddle::python::find_main_thread();
  heddle::python::register_errors();
  heddle::python::register_tensor(module);
  heddle::python::register_source(module);
  heddle::python::register_model(module);
  heddle::python::register_torch_tensors(module);
  heddle::python::register_graph(module);
  heddle::python::register_specialised(module);
  heddle::python::register_addresses(module);
  heddle::python::register_ops(module);
  heddle::python::register_reference(module);
  heddle::python::register_tile(module);
}
