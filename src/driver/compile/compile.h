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
  // For verify and explain.
  std::shared_ptr<const ir::Graph> imported, optimised;
  BuiltPlan built;
  TuningChoices choices;
  KernelSet kernels;
  KernelSet compiled;   // in the plan's library: these, and some that other batches need
  KnownChoices chosen;  // only with a session
};

// State that the compilations of one model for several sets of shapes share, so that each costs little more than its
// differences. Not for concurrent compilations. The file is read once: later changes of it are not seen.
class Session {
 public:
  // kFirst: for the plan that load() makes. Its constants are made when it is written. Other shapes are compiled only
  // to learn about its kernels. kVariants: for plans of further shapes.
  enum class Kind : uint8_t { kFirst, kVariants };
  Session(const std::string& path, const CompileOptions& options, Kind kind = Kind::kVariants);

  onnx::Imported import(const CompileOptions& options);
  // The dimensions of the model's inputs; empty for textual IR.
  std::vector<onnx::ModelFile::InputDims> input_dims(const CompileOptions& options) const;
  Kind kind() const { return kind_; }
  // True if kernels can take numbers as arguments: on a CPU.
  bool takes_numbers(const CompileOptions& options) {
    return settings(options).target.traits().shares_kernels_of_shapes;
  }
  // The settings that `options` mean. The options of one model differ in shapes and values only, which do not affect
  // them.
  const Settings& settings(const CompileOptions& options);

  passes::FoldMemo folded;
  ConstantPool constants;
  NumberTable numbers;         // on a CPU
  bool batch_is_open = false;  // kernels take numbers that depend on the batch
  KernelSet other_forms;       // kernels of other batches; some go into the library of the first plan
  GroupMemo groups;            // on a CPU
  KnownChoices known_choices;  // of kernels that exist
  double most_slower = ReusedConfigs::kMostSlower;  // how much slower a known choice may be

 private:
  std::string path_;
  Kind kind_;
  std::unique_ptr<onnx::ModelFile> file_;  // null for textual IR
  std::optional<Settings> settings_;
};

// Compiles an ONNX file to a plan with its kernels. Does not use the plan cache, but kernels may come from the library
// cache. Throws the errors of the stages, and kOutOfMemory before the plan would need more memory than there is.
// `with_kernels` false: the text of the kernels is made but not compiled. The plan cannot run; the report is complete.
// `with_constants` false: packed constants have no content (BuiltPlan::makers).
// On a CPU, if the model leaves the batch open, kernels take as arguments the numbers that depend on it.
// `session`: kernels take arguments where shapes differ (on a CPU), products reuse the configurations of existing
// kernels, and constants are shared.
CompiledModel compile_model(const std::string& path, const CompileOptions& options, bool with_kernels = true,
                            bool with_constants = true, Session* session = nullptr);

}  // namespace heddle::driver
