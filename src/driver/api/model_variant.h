#pragma once

#include <memory>
#include <vector>

#include "heddle/model.h"
#include "runtime/executor.h"

namespace heddle {

// Records whether the plan came from the cache, and whether the kernels of the plan came from it.
struct FromCache {
  bool plan = false, kernels = false;
};

// A model compiled for one combination of three things: the inputs that the caller passes, the shapes of the inputs,
// and the values of those inputs that determine shapes.
struct ModelVariant {
  std::shared_ptr<const runtime::Plan> plan;
  std::unique_ptr<runtime::Executor> executor;
  FromCache from_cache;
  // The index in Model::Impl::ports() of each input of the plan (`inputs`) and of each text input (`texts`).
  std::vector<size_t> inputs, texts;
};

// The inputs of a run, one for each of Model::Impl::ports(). A null pointer selects the port's default.
using GivenInputs = std::vector<const Tensor*>;

// True if the variant serves these inputs.
bool fits(const ModelVariant& variant, const GivenInputs& given);

// Returns the inputs in the order of the variant's plan.
std::vector<Tensor> operands_of(const ModelVariant& variant, const GivenInputs& given);

// Throws kInvalidInput with the reason why a plan file does not serve these inputs: a plan file is valid only for what
// it was made for. `ports`: the ports of the model in it.
[[noreturn]] void refuse(const ModelVariant& variant, const std::vector<PortInfo>& ports, const GivenInputs& given);

}  // namespace heddle
