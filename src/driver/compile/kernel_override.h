#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/model/kernel_set.h"
#include "target/target.h"

namespace heddle::driver {

// $HEDDLE_KERNEL_OVERRIDE: a folder whose edited kernel files (driver/compile/kernel_file.h) are compiled in place of
// the generated texts. nullopt: it is not set, or empty. Plans that are made while it is set stay out of the plan
// cache; the caches of libraries and cubins are keyed by the compiled text.
std::optional<std::string> override_folder();

// The edited files of a folder whose names are those of kernels for this target, by symbol. Throws kFile if users other
// than this one and root may write to the folder or to one of the files, since these are code.
std::map<std::string, EditedText> read_edited_texts(const std::string& folder, const Target& target);

// Warns of each edited text that is compiled in place of a generated one.
void tell_used_texts(const KernelSet& kernels);
// Warns of the texts in the folder, if one is set, that tell_used_texts() never received. Call it once all shapes known
// to be needed are compiled.
void tell_unused_texts(const std::string& model, const Target& target);

}  // namespace heddle::driver
