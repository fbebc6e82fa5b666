#pragma once

#include "base/hash.h"
#include "heddle/model.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"
#include "schedule/scheme.h"

namespace heddle::driver {

// CompileOptions with every text understood and every default filled in.
struct Settings {
  Target target;
  passes::Precision precision = passes::Precision::kF32;
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  schedule::StitchOptions stitch;
};

// Throws kInvalidArgument naming the option and what it may be, kDevice for a target that this machine lacks.
Settings resolve(const CompileOptions& options);

// Everything that decides a plan apart from the model: options, target, this build of Heddle.
Hash128 settings_hash(const CompileOptions& options, const Settings& settings);

// Throws kDevice when kernels made for the target of this fingerprint do not run on this machine.
void check_runs_here(const std::string& plan, const std::string& fingerprint);

}  // namespace heddle::driver
