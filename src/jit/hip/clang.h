#pragma once

#include <string>
#include <vector>

namespace heddle::jit {

// The bitcode of ROCm's library of elementary functions (OCML), which units need that compute such functions of doubles
// or rare ones of floats: in $HEDDLE_HIP_DEVICE_LIBS if set, else where Debian or ROCm installs it. Empty if there is
// none.
std::vector<std::string> device_library();

// Compiles a unit to a code object with the clang at `path`, without ROCm. `options` are those for hiprtc. Throws
// kCompilerFailed with the compiler's output, and kFile.
std::string compile_by_clang(const std::string& path, const std::string& unit, const std::vector<std::string>& options,
                             bool use_cache);

}  // namespace heddle::jit
