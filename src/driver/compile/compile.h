#pragma once

#include <memory>
#include <optional>
#include <string>

#include "driver/compile/reused_configs.h"
#include "driver/compile/tuned_configs.h"
#include "driver/model/kernel_set.h"
#include "driver/model/report.h"
#include "driver/options/options.h"
#include "driver/plan/constant_pool.h"
#include "driver/plan/group_kernels.h"
#include "driver/plan/number_table.h"
#include "driver/plan/plan_builder.h"
#include "frontend/onnx/importer.h"
#include "passes/simplify/fold.h"
#include "runtime/plan.h"

namespace heddle::driver {

struct CompiledModel {
  std::shared_ptr<const runtime::Plan> plan;
  CompileReport report;
  // Used by verify and explain.
  std::shared_ptr<const ir::Graph> imported, optimised;
  BuiltPlan built;
  TuningChoices choices;
  KernelSet kernels;
  KernelSet compiled;   // the kernels of the plan's library: `kernels`, and some that other batches need
  KnownChoices chosen;  // only with a session
};

// State that is shared by the compilations of one model for several sets of shapes, so that a further compilation costs
// little more than the differences between the shapes. Compilations with one session must not run concurrently. The
// model file is read once; later changes of this file have no effect.
class Session {
 public:
  // kFirst: for the plan that load() makes. Its constants are computed when the plan is written, and other shapes are
  // compiled only to learn about the plan's kernels. kVariants: for plans of further shapes.
  enum class Kind : uint8_t { kFirst, kVariants };
  Session(const std::string& path, const CompileOptions& options, Kind kind = Kind::kVariants);

  onnx::Imported import(const CompileOptions& options);
  // Returns the dimensions of the model's inputs; empty for textual IR.
  std::vector<onnx::ModelFile::InputDims> input_dims(const CompileOptions& options) const;
  Kind kind() const { return kind_; }
  // True if kernels can take numbers (such as sizes) as arguments. Only kernels for a CPU can.
  bool takes_numbers(const CompileOptions& options) {
    return settings(options).target.traits().shares_kernels_of_shapes;
  }
  // Returns the settings that `options` specify. The options of one model differ only in shapes and values, which do
  // not affect the settings.
  const Settings& settings(const CompileOptions& options);

  passes::FoldMemo folded;
  ConstantPool constants;
  NumberTable numbers;         // used on a CPU only
  bool batch_is_open = false;  // numbers that depend on the batch are arguments of kernels
  KernelSet other_forms;       // kernels of other batches; the library of the first plan contains some of them
  GroupMemo groups;            // used on a CPU only
  KnownChoices known_choices;  // configurations of existing kernels
  double most_slower = ReusedConfigs::kMostSlower;  // the accepted slowdown of a known choice

 private:
  std::string path_;
  Kind kind_;
  std::unique_ptr<onnx::ModelFile> file_;  // null for textual IR
  std::optional<Settings> settings_;
};

// Returns how a plan would compute an imported graph's products of quantised operands. What large constants contain
// does not matter.
passes::QuantisedProducts quantised_products(const ir::Graph& imported, const Settings& settings);

// Compiles an ONNX file to a plan with its kernels. Does not use the plan cache, but kernels may come from the library
// cache. Throws the errors of the stages. Throws kOutOfMemory if the plan would need more memory than is available.
// `with_kernels` false: the texts of the kernels are generated but not compiled. The report is complete, but the plan
// cannot run.
// `with_constants` false: packed constants have no content (BuiltPlan::makers).
// On a CPU, if the model leaves the batch open, numbers that depend on the batch become arguments of the kernels.
//
// With a `session`, constants are shared, products reuse the configurations of existing kernels, and, on a CPU, numbers
// that differ between shapes become arguments of the kernels.
CompiledModel compile_model(const std::string& path, const CompileOptions& options, bool with_kernels = true,
                            bool with_constants = true, Session* session = nullptr);

}  // namespace heddle::driver
