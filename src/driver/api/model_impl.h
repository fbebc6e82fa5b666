#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/api/model_variant.h"
#include "driver/compile/variants.h"
#include "heddle/model.h"
#include "runtime/executor.h"

namespace heddle {

// Returns the plan of a model file, from the cache or newly compiled. `file` receives the path of the cache file that
// holds the plan, if there is one.
std::shared_ptr<const runtime::Plan> plan_of_model(const std::string& path, const CompileOptions& options,
                                                   FromCache* from_cache = nullptr, std::string* file = nullptr);

using OutputMemory = std::function<void*(size_t output, const Shape& shape)>;
using OnStep = std::function<void(const runtime::Step& step)>;

class Model::Impl {
 public:
  // `path` is a plan file or an ONNX file; the first bytes decide which. `pool` runs the model on a CPU and
  // overrides CompileOptions::threads. Null: the model has a pool of its own.
  Impl(std::string path, CompileOptions options, std::shared_ptr<ThreadPool> pool = nullptr);

  const std::vector<PortInfo>& inputs() const { return inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }
  const std::vector<PortInfo>& optional_inputs() const { return optional_; }
  // inputs() followed by optional_inputs().
  const std::vector<PortInfo>& ports() const { return ports_; }
  bool has_default(size_t port) const { return has_default_[port]; }
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs) const;
  std::vector<Tensor> run_into(const std::map<std::string, Tensor>& inputs,
                               const std::map<std::string, Tensor>& outputs) const;
  // Runs the model with inputs in the order of inputs() and with their dtypes. `into` holds, for each output, the
  // caller's memory as for run_into(), or an undefined tensor. `into` may also be empty.
  std::vector<Tensor> run_in_order(const std::vector<Tensor>& inputs, std::vector<Tensor> into = {}) const;
  // Like run_in_order(), with inputs in the order of ports(). Throws kInvalidInput if an input without a default is
  // missing.
  std::vector<Tensor> run_given(const GivenInputs& given, std::vector<Tensor> into) const;
  // Like run_in_order(), but stores each output at the address that `memory` returns for it. `memory` is called once
  // the shapes are known, `on_step` after each outermost step.
  void run_in_memory(const std::vector<Tensor>& inputs, const OutputMemory& memory, const OnStep& on_step = {}) const;
  EnqueueNeeds prepare(const std::vector<Shape>& inputs) const;
  void enqueue(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs, void* workspace,
               void* stream) const;

  std::string profile(const std::map<std::string, Tensor>& inputs, double seconds) const;

  // The variant that load() made.
  const ModelVariant& primary() const { return *primary_; }
  // The variants for shapes other than the primary's, most recently used first.
  std::vector<std::shared_ptr<const ModelVariant>> variants() const {
    const std::lock_guard lock(mutex_);
    return {others_.begin(), others_.end()};
  }
  int threads() const { return pool_->threads(); }
  // The options. If they contain ranges of extents, their shapes have the largest extents of these ranges.
  const CompileOptions& options() const { return options_; }
  // Waits until background compilation has finished. Then the kernels for CompileOptions::ranges exist, and every shape
  // has its best plan.
  void wait_for_background() const {
    if (maker_ != nullptr) maker_->wait_for_background();
  }

 private:
  std::unique_ptr<ModelVariant> make_variant(const CompileOptions& options) const;
  using Variant = std::shared_ptr<const ModelVariant>;
  Variant with_executor(driver::VariantMaker::Made made) const;
  void set_ports(const runtime::Plan& plan);
  void find_places(ModelVariant& variant) const;
  size_t port_of(const std::string& name) const;
  void check_given(const GivenInputs& given) const;
  GivenInputs in_order(const std::vector<Tensor>& inputs) const;
  GivenInputs look_up(const std::map<std::string, Tensor>& inputs) const;
  std::vector<Tensor> finish(const ModelVariant& variant, const std::vector<Tensor>& inputs, std::vector<Tensor> into,
                             const runtime::Executor::Observer& observe = {}) const;
  CompileOptions options_for(const GivenInputs& given, bool with_values) const;
  Variant find_variant(const GivenInputs& given) const;
  Variant variant_for(const GivenInputs& given, bool with_values) const;
  Variant variant_on_device(const std::vector<Shape>& inputs) const;
  void keep(const Variant& variant) const;
  void improve(const Variant& variant, const CompileOptions& options) const;

  std::string path_;
  CompileOptions options_;
  bool is_plan_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<PortInfo> inputs_, optional_, ports_, outputs_;
  std::map<std::string, size_t, std::less<>> places_;  // by name: index in ports_
  std::vector<bool> has_default_;                      // by index in ports_
  Variant primary_;
  // Variants for shapes other than the primary's, most recently used first. CompileOptions limits their number. A run
  // shares ownership of its variant, so removing a variant from this list does not affect the run.
  mutable std::list<Variant> others_;
  mutable std::vector<Variant> prepared_;        // variants for enqueue(); kept as long as the model
  mutable std::mutex mutex_;                     // guards others_ and prepared_
  mutable std::timed_mutex compiling_;           // locked before mutex_; runs with known shapes do not lock it
  std::unique_ptr<driver::VariantMaker> maker_;  // null for a plan file; last, since it uses the other members
};

}  // namespace heddle
