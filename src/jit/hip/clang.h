#pragma once

#include <string>
#include <vector>

namespace heddle::jit {

// Compiles a unit to a code object with the clang at `path`, without ROCm. `options` are those for hiprtc. Throws
// kCompilerFailed with the compiler's output, and kFile.
std::string compile_by_clang(const std::string& path, const std::string& unit, const std::vector<std::string>& options,
                             bool use_cache);

}  // namespace heddle::jit
