#include "operators.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "errors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

nb::object python_of(const NodeAttribute& attribute) {
  return std::visit([](const auto& value) { return nb::cast(value); }, attribute);
}

// The parts of an exception of heddle._errors; of another one its text.
[[noreturn]] void rethrow(nb::python_error& raised, const std::string& where) {
  const nb::object error = nb::borrow(raised.value());
  const auto text = [&](const char* name) { return nb::cast<std::string>(nb::str(error.attr(name))); };
  if (!nb::hasattr(error, "remedy")) {
    throw Error(ErrorCode::kInvalidArgument, where, nb::cast<std::string>(nb::str(error)));
  }
  throw Error(static_cast<ErrorCode>(nb::cast<int>(error.attr("code"))), where, text("why"), text("remedy"));
}

OperatorProgram call(nb::handle object, const OperatorNode& node) {
  const std::string where = fmt::format("node '{}' ({})", node.name, node.op_type);
  nb::list inputs;
  for (const std::optional<PortInfo>& input : node.inputs) {
    if (input) {
      inputs.append(nb::make_tuple(std::string(to_string(input->dtype)), nb::tuple(nb::cast(input->shape))));
    } else {
      inputs.append(nb::none());
    }
  }
  nb::dict attributes;
  for (const auto& [name, value] : node.attributes) attributes[name.c_str()] = python_of(value);
  try {
    const nb::object told = object.attr("told_program")(where, inputs, attributes);
    OperatorProgram program;
    program.text = nb::cast<std::string>(told[0]);
    for (const nb::handle output : told[1]) {
      const auto name = nb::cast<std::string>(output[0]);
      const std::optional<DType> dtype = parse_dtype(name);
      if (!dtype) throw Error(ErrorCode::kInvalidArgument, where, fmt::format("no model has values of {}", name));
      program.outputs.push_back({"", *dtype, nb::cast<Shape>(output[1])});
    }
    return program;
  } catch (nb::python_error& raised) {
    if (!raised.matches(PyExc_Exception)) throw;  // KeyboardInterrupt is not the operator's error
    rethrow(raised, where);
  }
}

}  // namespace

std::map<std::string, Operator> operators_of(nb::handle operators) {
  std::map<std::string, Operator> made;
  if (operators.is_none()) return made;
  for (const auto [name, object] : nb::cast<nb::dict>(operators)) {
    const std::shared_ptr<nb::object> held(new nb::object(nb::borrow(object)), [](const nb::object* given) {
      const nb::gil_scoped_acquire gil;
      delete given;
    });
    made.emplace(nb::cast<std::string>(name), [held](const OperatorNode& node) {
      const nb::gil_scoped_acquire gil;
      return call(*held, node);
    });
  }
  return made;
}

}  // namespace heddle::python
