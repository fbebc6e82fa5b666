#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/model/kernel_set.h"
#include "target/target.h"

namespace heddle::driver {

// Returns $HEDDLE_KERNEL_OVERRIDE: a folder of edited kernel files (driver/compile/kernel_file.h) that are compiled
// instead of the generated texts. Returns nullopt if the variable is unset or empty. Plans that are built while the
// variable is set are not stored in the plan cache. The caches of libraries and cubins are used as usual, because their
// keys contain the compiled text.
std::optional<std::string> override_folder();

// Reads the edited files of a folder that are named after kernels for this target. Returns them by symbol. Throws kFile
// if users other than the current user and root may write to the folder or a file, since the files are code.
std::map<std::string, EditedText> read_edited_texts(const std::string& folder, const Target& target);

// Warns about each edited text that is compiled instead of a generated one.
void tell_used_texts(const KernelSet& kernels);
// Warns about each text in the override folder that tell_used_texts() never received. Does nothing if no folder is set.
// Call this once all shapes known to be needed are compiled.
void tell_unused_texts(const std::string& model, const Target& target);

}  // namespace heddle::driver
