#pragma once

#include <string>

#include "base/hash.h"
#include "frontend/onnx/importer.h"
#include "heddle/model.h"

namespace heddle::driver {

// True if a model file holds textual IR: its name ends in .hir.
bool is_ir_file(const std::string& path);

// The options that concern the import.
onnx::ImportOptions import_options(const CompileOptions& options);

// Hash of the programs that the caller's operators make for this model and these shapes; part of the identity of its
// plans. If there are such operators, it imports the model and throws what the import throws.
Hash128 operators_hash(const std::string& path, const CompileOptions& options);

// Replaces the inputs that CompileOptions::constants names by constants. Throws kInvalidInput if one does not exist or
// has another type.
void bind_constants(const std::string& path, const CompileOptions& options, ir::Graph& graph);

// The graph of a model file: ONNX, or textual IR, which has fixed shapes. Throws what onnx::import_model and ir::parse
// throw. Throws kInvalidInput if the options name an input of textual IR that does not exist or has another shape.
onnx::Imported import_file(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
