#pragma once

#include "codegen/codegen.h"
#include "schedule/bundle.h"

namespace heddle::codegen {

KernelSource emit_bundle(const schedule::BundleDesc& bundle);

}  // namespace heddle::codegen
