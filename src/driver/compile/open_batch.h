#pragma once

#include <functional>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// If the model leaves the batch (the outermost extent of an input) open, writes the texts for a few other batches than
// that of `options`, without a compiler. From these it learns which numbers depend on the batch. The kernels of
// `session` then take exactly these as arguments, so further batches run them, too. The result depends only on the
// model and on the shapes of `options`. CPU only. Returns the shapes of those batches that have kernels of other forms.
using CompileTexts = std::function<CompiledModel(const CompileOptions&)>;
std::vector<CompileOptions> learn_batch(Session& session, const CompileOptions& options, const CompileTexts& compile);

// True if these shapes differ from those of a plan of the model only in the batch.
bool differs_in_batch(const runtime::Plan& known, const CompileOptions& options);

}  // namespace heddle::driver
