#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heddle::jit {

struct HiprtcInfo {
  std::string path;
  int major = 0, minor = 0;
};
// The hiprtc library of this machine, which is loaded at the first call; nullopt if there is none, with the reason in
// `*why`.
std::optional<HiprtcInfo> find_hiprtc(std::string* why);

// Compiles a unit to a code object. There must be a hiprtc. Throws kCompilerFailed with the compiler's log.
std::string compile_by_hiprtc(const std::string& unit, const std::vector<std::string>& options);

}  // namespace heddle::jit
