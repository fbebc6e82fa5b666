#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heddle/tensor.h"

namespace heddle::python {

// A path as the bytes that the file system has, which need not be UTF-8.
std::string path_of(nanobind::handle path);

// A path, or text that may name one, for Python: a path as os.fsdecode() has it, text with every character that no
// terminal should obey escaped.
nanobind::object path_object(const std::string& path);
nanobind::object text_object(const std::string& text);

// Whether an object is text or an array or list of it.
bool holds_text(nanobind::handle object);
// Its tensor. Throws kInvalidInput, naming `where`, for what is no text.
Tensor text_tensor(nanobind::handle object, const std::string& where);

}  // namespace heddle::python
