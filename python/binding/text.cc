#include "text.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "base/printable.h"
#include "errors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// "U", "S" or "T" for NumPy's kinds of text, "O" for objects, "" without a NumPy dtype.
std::string kind_of(nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object kind = nb::getattr(dtype, "kind", nb::none());
  std::string text;
  return nb::try_cast(kind, text) ? text : std::string();
}

std::string element(nb::handle object, const std::string& where) {
  if (PyBytes_Check(object.ptr())) {
    const auto bytes = nb::borrow<nb::bytes>(object);
    return {bytes.c_str(), bytes.size()};
  }
  if (!PyUnicode_Check(object.ptr())) {
    refuse_input(where, fmt::format("it holds an object of class {} where text is expected", class_name(object)),
                 "Give an array of text: numpy.asarray(x, dtype=\"U\")");
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) nb::raise_python_error();
  return {text, static_cast<size_t>(size)};
}

}  // namespace

std::string path_of(nb::handle path) {
  const auto bytes = nb::cast<nb::bytes>(nb::module_::import_("os").attr("fsencode")(path));
  return {bytes.c_str(), bytes.size()};
}

nb::object path_object(const std::string& path) {
  PyObject* const made = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
  if (made == nullptr) nb::raise_python_error();
  return nb::steal(made);
}

nb::object text_object(const std::string& text) {
  return nb::cast(printable(text, Lines::kMany));
}

bool holds_text(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return true;
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    return nb::len(object) > 0 && holds_text(object[0]);
  }
  const std::string kind = kind_of(object);
  return kind == "U" || kind == "S" || kind == "T" || kind == "O";
}

Tensor text_tensor(nb::handle object, const std::string& where) {
  const bool plain = PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr());
  if (!plain && !holds_text(object)) {
    refuse_input(where, fmt::format("a {} is given, the model takes text", class_name(object)),
                 "Give an array of text: numpy.asarray(x, dtype=\"U\")");
  }
  if (plain) return Tensor::of_strings({}, {element(object, where)});
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(object);
  std::vector<std::string> texts;
  for (const nb::handle one : array.attr("reshape")(-1).attr("tolist")()) texts.push_back(element(one, where));
  return Tensor::of_strings(nb::cast<Shape>(array.attr("shape")), std::move(texts));
}

}  // namespace heddle::python
