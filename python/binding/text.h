#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heddle/tensor.h"

namespace heddle::python {

// Converts a Python path to the bytes that the file system uses. These need not be valid UTF-8.
std::string path_of(nanobind::handle path);

// Convert to a Python string. path_object() converts a path as os.fsdecode() does. text_object() converts text that may
// contain a path, and escapes control characters.
nanobind::object path_object(const std::string& path);
nanobind::object text_object(const std::string& text);

// True if `object` is text, or an array or a list of text.
bool holds_text(nanobind::handle object);
// Converts text to a tensor. Throws kInvalidInput for any other object; the message names `where`.
Tensor text_tensor(nanobind::handle object, const std::string& where);

}  // namespace heddle::python
