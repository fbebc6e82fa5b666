#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heddle/tensor.h"

namespace heddle::python {

// A path as the file system's bytes, which need not be UTF-8.
std::string path_of(nanobind::handle path);

// Converts a path, or text that may contain one, to Python: a path as os.fsdecode() does, text with control characters
// escaped.
nanobind::object path_object(const std::string& path);
nanobind::object text_object(const std::string& text);

// True for text and for an array or list of it.
bool holds_text(nanobind::handle object);
// The tensor of text. Throws kInvalidInput, naming `where`, for anything else.
Tensor text_tensor(nanobind::handle object, const std::string& where);

}  // namespace heddle::python
