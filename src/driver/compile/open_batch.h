#pragma once

#include <functional>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// Finds the numbers in kernel texts that depend on the batch, which is the outermost extent of an input that the model
// leaves open. For this, generates the kernel texts for the batch of `options` and for a few further batches, but does
// not compile them. Kernels of `session` then accept exactly these numbers as arguments, so that they also run other
// batches. The result depends only on the model and on the shapes of `options`. CPU only. Returns the options for those
// of the further batches whose kernels need additional forms.
using CompileTexts = std::function<CompiledModel(const CompileOptions&)>;
std::vector<CompileOptions> learn_batch(Session& session, const CompileOptions& options, const CompileTexts& compile);

// `known` is a plan of the same model. True if the shapes of `options` have another batch size than those of `known`,
// and there is no other difference.
bool differs_in_batch(const runtime::Plan& known, const CompileOptions& options);

}  // namespace heddle::driver
