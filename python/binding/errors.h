#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle::python {

// From here on heddle::Error becomes the Python exception that heddle._errors makes of it.
void register_errors();

// The Python exception for the C++ exception that is being handled, as nanobind's own functions make it.
void set_python_error() noexcept;

// "argument x of heddle.compile()", what is wrong, what to do.
[[noreturn]] void refuse_argument(const std::string& where, const std::string& why, const std::string& remedy = {});

// The same of what a model or kernel is called with: "input x".
[[noreturn]] void refuse_input(const std::string& where, const std::string& why, const std::string& remedy);

// "numpy.ndarray": what a caller calls the class of an object.
std::string class_name(nanobind::handle object);

}  // namespace heddle::python
