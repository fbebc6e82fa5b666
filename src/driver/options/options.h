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

// CompileOptions after parsing: every text is parsed and every default filled in.
struct Settings {
  Target target;
  int device = -1;  // the device number, if the target is a GPU of this machine
  passes::Precision precision = passes::Precision::kF32;
  passes::FusionPolicy fusion = passes::FusionPolicy::kStitch;
  passes::FusionRules rules;
  schedule::StitchOptions stitch;
};

// Parses the options. Throws kInvalidArgument, with the option's name and its valid values, if one is invalid. Throws
// kDevice if the machine has GPUs but not the requested one. On a machine without a GPU, the target "cuda" is
// Target::cuda_h200(), so that plans can be made for it.
Settings resolve(const CompileOptions& options);

// Sets the folder of the cache for this process. Throws kInvalidArgument if it has been set to another folder.
void use_cache_folder(const std::string& folder);

// Returns a hash of everything that determines a plan besides the model: the options, the target and this build of
// Heddle.
Hash128 settings_hash(const CompileOptions& options, const Settings& settings);

// Throws kDevice, with a message that says what is missing, if the target is a GPU and this machine has none.
void require_device(const Settings& settings);

// Throws kDevice if kernels for the target with this fingerprint cannot run on this machine: on its CPU, or on GPU
// `device`. `plan` is the plan's name in the message.
void check_runs_here(const std::string& plan, const std::string& fingerprint, int device);

// Parses the value `text` of the option `where` and adds it to `options`. The text is "OUTPUT=INPUT"
// (CompileOptions::alias) or "auto" (alias_updates). Throws kInvalidArgument with the option's name.
void add_alias(CompileOptions& options, const std::string& text, const char* where);

// Adds "OUTPUT=INPUT" to CompileOptions::rows. Throws kInvalidArgument with the option's name.
void add_rows(CompileOptions& options, const std::string& text, const char* where);

// Adds "OUTPUT=INPUT" to CompileOptions::appended. Throws kInvalidArgument with the option's name.
void add_appended(CompileOptions& options, const std::string& text, const char* where);

// Returns "Did you mean f16? " for a word that is not in `known`. The suggestion is a known word of which `word` is a
// common synonym ("half"), else the known word with the most similar spelling. Returns "" if no known word is similar.
std::string meant_word(std::string_view word, const std::vector<std::string_view>& known);

// Returns the device number N of "cuda:N" or "hip:N"; 0 for "cuda", "hip", "hip-gfx90a" (an architecture of
// target/models/hip) and "cpu". Throws kInvalidArgument for any other text.
int device_of(const std::string& target);

}  // namespace heddle::driver
