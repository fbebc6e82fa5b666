#pragma once

#include <string>

#include "base/hash.h"
#include "frontend/onnx/importer.h"
#include "heddle/model.h"

namespace heddle::driver {

// Whether a model file holds textual IR: its name ends in .hir.
bool is_ir_file(const std::string& path);

// What of the options concerns the import.
onnx::ImportOptions import_options(const CompileOptions& options);

// What the caller's operators make of the model for these shapes: part of the identity of its plans. Imports the model
// where there are such operators, and throws what that throws.
Hash128 operators_hash(const std::string& path, const CompileOptions& options);

// Makes constants of the inputs that CompileOptions::constants names. Throws kInvalidInput where one does not exist or
// has another type.
void bind_constants(const std::string& path, const CompileOptions& options, ir::Graph& graph);

// The graph of a model file: ONNX, or textual IR, whose shapes are fixed. Throws what onnx::import_model and ir::parse
// throw, and kInvalidInput where the options name an input of textual IR that does not exist or has another shape.
onnx::Imported import_file(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
