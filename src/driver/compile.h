#pragma once

#include <memory>
#include <string>

#include "driver/options.h"
#include "driver/plan_builder.h"
#include "driver/report.h"
#include "driver/tuned_configs.h"
#include "runtime/plan.h"

namespace heddle::driver {

struct CompiledModel {
  std::shared_ptr<const runtime::Plan> plan;
  CompileReport report;
  // For verify and explain.
  std::shared_ptr<const ir::Graph> imported, optimised;
  BuiltPlan built;
  TuningChoices choices;
};

// The whole way from an ONNX file to a plan with its kernels; nothing is taken from the plan cache (kernels may come
// from the library cache). Throws whatever the stages throw, and kOutOfMemory before the plan would need more memory
// than there is.
// `with_kernels` false: the kernels' text is made, but not compiled; the plan cannot run and the report is complete.
// `with_constants` false: packed constants have no content (BuiltPlan::makers).
CompiledModel compile_model(const std::string& path, const CompileOptions& options, bool with_kernels = true,
                            bool with_constants = true);

// Throws kOutOfMemory when `needed` bytes are not available.
void check_memory(const std::string& model, int64_t needed, const char* what);

// The same for what a plan needs at least on its target: memory that is there, or all of a GPU's.
void check_device_memory(const std::string& model, const runtime::Plan& plan, const Target& target);

}  // namespace heddle::driver
