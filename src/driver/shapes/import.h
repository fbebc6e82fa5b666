#pragma once

#include <string>

#include "base/hash.h"
#include "frontend/onnx/importer.h"
#include "heddle/model.h"

namespace heddle::driver {

// True if a model file holds textual IR: its name ends in .hir.
bool is_ir_file(const std::string& path);

// Returns those options of a compilation that apply to the import.
onnx::ImportOptions import_options(const CompileOptions& options);

// Returns a hash of the programs that the caller's operators produce for this model with these shapes. The hash is part
// of the identity of the model's plans. If the caller has operators and the model is an ONNX model, imports the
// model and throws the errors of the import.
Hash128 operators_hash(const std::string& path, const CompileOptions& options);

// Replaces inputs by the constants that CompileOptions::constants gives for their names, and reduces outputs to what
// CompileOptions::rows and CompileOptions::appended want of them. Throws kInvalidInput if a named input or output does
// not exist or has another type.
void change_interface(const std::string& path, const CompileOptions& options, ir::Graph& graph);

// Imports a model file: ONNX or textual IR. Textual IR has fixed shapes. Throws the errors of onnx::import_model and
// ir::parse. Throws kInvalidInput if the options name an input that the textual IR does not have or that has another
// shape there.
onnx::Imported import_file(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
