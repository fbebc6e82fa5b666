#pragma once

#include <functional>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// Where the model leaves the batch open (the outermost extent of an input), looks at the texts of a few other batches
// than that of `options`, without a compiler, so that the kernels of `session` take as arguments exactly what depends
// on the batch: further ones then run them, too. What is learnt depends on the model and on the shapes of `options`
// alone. CPU only. Returns the shapes of those batches that have kernels of other forms, too.
using CompileTexts = std::function<CompiledModel(const CompileOptions&)>;
std::vector<CompileOptions> learn_batch(Session& session, const CompileOptions& options, const CompileTexts& compile);

// Whether these shapes differ from those of a plan of the model in the batch only.
bool differs_in_batch(const runtime::Plan& known, const CompileOptions& options);

}  // namespace heddle::driver
