#pragma once

#include <functional>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// Learns which numbers in kernel texts depend on the batch, if the model leaves the batch (the outermost extent of an
// input) open. For this, it writes the kernel texts for the batch of `options` and for a few other batches, without a
// compiler. Kernels of `session` then take exactly these numbers as arguments, so that they also run further batches.
// The result depends only on the model and on the shapes of `options`. CPU only. Returns the options for those of the
// other batches whose kernels need additional forms.
using CompileTexts = std::function<CompiledModel(const CompileOptions&)>;
std::vector<CompileOptions> learn_batch(Session& session, const CompileOptions& options, const CompileTexts& compile);

// True if the shapes of `options` differ from those of `known`, a plan of the same model, only in the batch.
bool differs_in_batch(const runtime::Plan& known, const CompileOptions& options);

}  // namespace heddle::driver
