#include "reference.h"

#include <nanobind/stl/string.h>

#include <map>
#include <string>
#include <vector>

#include "errors.h"
#include "interrupt.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "ir/verify.h"
#include "source.h"
#include "tensor.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

nb::list evaluate(const std::string& text, const nb::dict& inputs) {
  const std::map<std::string, Tensor> given = host_tensors(inputs);
  const std::vector<Tensor> results = interruptible([&] {
    const ir::Graph graph = ir::parse(text);
    ir::verify(graph);
    std::vector<ir::Array> arrays;
    for (const ir::Graph::Port& port : graph.inputs()) {
      const auto found = given.find(port.name);
      if (found == given.end()) refuse_input("input " + port.name, "it is missing", "Give each parameter of the graph");
      arrays.push_back(ir::to_array(found->second));
    }
    std::vector<Tensor> made;
    for (const ir::Array& array : ir::evaluate(graph, std::move(arrays), {.round = true, .observe = {}})) {
      made.push_back(ir::to_tensor(array));
    }
    return made;
  });
  nb::list all;
  for (const Tensor& tensor : results) all.append(nb::cast(PyTensor(tensor)));
  return all;
}

}  // namespace

void register_reference(nb::module_& module) {
  module.def("evaluate", &evaluate, nb::arg("text"), nb::arg("inputs"));
}

}  // namespace heddle::python
