#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "heddle/error.h"

namespace heddle::python {

// Registers the translation of heddle::Error to the Python exceptions of heddle._errors.
void register_errors();

// Sets the Python exception for the C++ exception being handled, as nanobind does in the functions that it binds.
void set_python_error() noexcept;

// Throws an Error about an argument of a function. `where` names the argument, for example "argument x of
// heddle.compile()"; `why` says what is wrong, and `remedy` what to do.
[[noreturn]] void refuse_argument(const std::string& where, const std::string& why, const std::string& remedy = {});

// Throws an Error about an input that a model or kernel was called with. `where` names it, for example "input x".
[[noreturn]] void refuse_input(const std::string& where, const std::string& why, const std::string& remedy);

// The name of an object's class as users write it, for example "numpy.ndarray".
std::string class_name(nanobind::handle object);

}  // namespace heddle::python
