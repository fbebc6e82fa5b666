#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "heddle/model.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"
#include "schedule/scheme.h"

namespace heddle::driver {

// CompileOptions with every text parsed and every default filled in.
struct Settings {
  Target target;
  int device = -1;  // of the target, if it is a GPU of this machine
  passes::Precision precision = passes::Precision::kF32;
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  passes::FusionRules rules;
  schedule::StitchOptions stitch;
};

// Throws kInvalidArgument, naming the option and its valid values. Throws kDevice for a missing GPU on a machine that
// has others. On a machine without a GPU, the target "cuda" is Target::cuda_h200(), so plans can be made for it.
Settings resolve(const CompileOptions& options);

// Everything that decides a plan apart from the model: options, target, this build of Heddle.
Hash128 settings_hash(const CompileOptions& options, const Settings& settings);

// Throws kDevice, saying what is missing, if the target is a GPU and this machine has none.
void require_device(const Settings& settings);

// Throws kDevice when kernels made for the target of this fingerprint do not run on this machine: on its CPU, or on GPU
// `device`.
void check_runs_here(const std::string& plan, const std::string& fingerprint, int device);

// Adds the text of option `where` to `options`: "OUTPUT=INPUT" (CompileOptions::alias) or "auto" (alias_updates).
// Throws kInvalidArgument naming the option.
void add_alias(CompileOptions& options, const std::string& text, const char* where);

// "Did you mean f16? " for a word that is not in `known`. It is found by other common names ("half"), else by spelling.
// "" if none is near.
std::string meant_word(std::string_view word, const std::vector<std::string_view>& known);

// The number in "cuda:N"; 0 in "cuda" and in "cpu". Throws kInvalidArgument.
int device_of(const std::string& target);

}  // namespace heddle::driver
