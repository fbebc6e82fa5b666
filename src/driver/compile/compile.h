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
  KernelSet compiled;   // what the plan's library has: these, and forms that other batches have
  KnownChoices chosen;  // with a session
};

// What the compilations of one model for several sets of shapes share, so that each costs little beyond what differs.
// For one compilation at a time. The file is read once: later changes of it are not seen.
class Session {
 public:
  // kFirst: of the plan that load() makes, whose constants are made when it is written; other shapes are only looked at
  // for what they show of its kernels.
  enum class Kind : uint8_t { kFirst, kVariants };
  Session(const std::string& path, const CompileOptions& options, Kind kind = Kind::kVariants);

  onnx::Imported import(const CompileOptions& options);
  // Of the model; none for textual IR.
  std::vector<onnx::ModelFile::InputDims> input_dims(const CompileOptions& options) const;
  Kind kind() const { return kind_; }
  // Whether kernels can be told numbers: on a CPU.
  bool takes_numbers(const CompileOptions& options) {
    return settings(options).target.traits().shares_kernels_of_shapes;
  }
  // `options` understood. Those of one model differ in shapes and values only, which settings do not depend on.
  const Settings& settings(const CompileOptions& options);

  passes::FoldMemo folded;
  ConstantPool constants;
  NumberTable numbers;         // on a CPU
  bool batch_is_open = false;  // numbers may depend on the batch
  KernelSet other_forms;       // kernels that other batches have; the library of the first plan gets some of them, too
  GroupMemo groups;            // on a CPU
  KnownChoices known_choices;  // those that there are kernels for
  double most_slower = ReusedConfigs::kMostSlower;  // that known choices may be

 private:
  std::string path_;
  Kind kind_;
  std::unique_ptr<onnx::ModelFile> file_;  // null for textual IR
  std::optional<Settings> settings_;
};

// The whole way from an ONNX file to a plan with its kernels; nothing is taken from the plan cache (kernels may come
// from the library cache). Throws whatever the stages throw, and kOutOfMemory before the plan would need more memory
// than there is.
// `with_kernels` false: the kernels' text is made, but not compiled; the plan cannot run and the report is complete.
// `with_constants` false: packed constants have no content (BuiltPlan::makers).
// On a CPU kernels take as arguments what depends on the batch, where the model leaves that open.
// `session`: its kernels take arguments where shapes differ (on a CPU), products are configured like those of kernels
// that exist, and constants are shared.
CompiledModel compile_model(const std::string& path, const CompileOptions& options, bool with_kernels = true,
                            bool with_constants = true, Session* session = nullptr);

}  // namespace heddle::driver
