#include "jit/hip/code_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread/cancel.h"
#include "jit/compiler.h"
#include "jit/headers.h"
#include "jit/hip/clang.h"
#include "jit/hip/hiprtc.h"
#include "jit/hip/metadata.h"

namespace heddle::jit {
namespace {

constexpr std::string_view kArchitecture = "gfx";

std::string find_clang() {
  for (const char* name : {"clang-22", "clang-21", "clang-20", "clang-19", "/opt/rocm/llvm/bin/clang"}) {
    if (std::string path = find_program(name); !path.empty()) return path;
  }
  return {};
}

HipCompiler clang_at(const std::string& path) {
  return {path, fmt::format("{} {}", version_of(path), fmt::join(device_library(), " ")), true};
}

// Without debug information, and with the arithmetic of CUDA's compiler: products are contracted to fused
// multiply-adds, nothing else is reassociated.
std::vector<std::string> hip_options(const std::string& architecture) {
  return {"--offload-arch=" + architecture, "-std=c++20", "-O3", "-ffp-contract=fast", "-w"};
}

CompiledCubin build_code_object(const HipCompiler& compiler, const std::string& unit,
                                const std::vector<std::string>& options, bool use_cache) {
  const std::string text = "#include \"tile/arch/hip/hip.h\"\n" + unit;
  CompiledCubin compiled;
  compiled.bytes =
      compiler.is_clang ? compile_by_clang(compiler.path, text, options, use_cache) : compile_by_hiprtc(text, options);
  compiled.log = resource_log(kernels_of(compiled.bytes));
  return compiled;
}

}  // namespace

HipCompiler find_hip_compiler() {
  const char* chosen = std::getenv("HEDDLE_HIP_CLANG");
  if (chosen != nullptr && *chosen != '\0') {
    const std::string path = find_program(chosen);
    if (path.empty()) {
      fail(ErrorCode::kNoCompiler, "HEDDLE_HIP_CLANG", fmt::format("\"{}\" is no executable file", chosen),
           "Set HEDDLE_HIP_CLANG to a clang of version 19 or later, or unset it");
    }
    return clang_at(path);
  }
  std::string why;
  if (const std::optional<HiprtcInfo> hiprtc = find_hiprtc(&why)) {
    return {hiprtc->path, fmt::format("hiprtc {}.{}", hiprtc->major, hiprtc->minor), false};
  }
  const std::string path = find_clang();
  if (path.empty()) {
    fail(
        ErrorCode::kNoCompiler, "hiprtc", why + ", and no clang of version 19 or later is on $PATH",
        "Install hiprtc of ROCm 5.5 or later (libhiprtc) or name it in HEDDLE_HIPRTC. To compile without ROCm, install "
        "clang-19 and lld-19");
  }
  return clang_at(path);
}

CompiledCubin compile_code_object(const std::string& unit, const std::string& architecture, bool use_cache, Slow slow) {
  check_cancelled();
  const double start = wall_seconds();
  const HipCompiler compiler = find_hip_compiler();
  const std::vector<std::string> options = hip_options(architecture);
  Hasher hasher;
  const bool relax = slow != Slow::kAcceptAtOnce;
  hasher.add(relax ? "code object" : "code object, one attempt").add(compiler.version).add(headers_hash()).add(unit);
  for (const std::string& option : options) hasher.add(option);
  const Hash128 key = hasher.finish();
  CompiledCubin compiled;
  if (!use_cache || !find_cubin(key, compiled)) {
    compiled = build_code_object(compiler, unit, options, use_cache);
    const std::string relaxed = relax ? relax_bounds(unit, compiled.log) : unit;
    if (relaxed != unit) {
      CompiledCubin again = build_code_object(compiler, relaxed, options, use_cache);
      if (spilled_bytes(again.log) < spilled_bytes(compiled.log)) compiled = std::move(again);
    }
    if (use_cache) store_cubin(key, compiled);
  }
  if (const std::string defect = find_defect(compiled.log); slow == Slow::kRefuse && !defect.empty()) {
    fail(ErrorCode::kCompilerFailed, compiler.path, fmt::format("{}:\n{}", defect, compiled.log));
  }
  compiled.seconds = wall_seconds() - start;
  return compiled;
}

CompiledCubin compile_for_gpu(const std::string& unit, const std::string& architecture, bool use_cache, Slow slow) {
  return architecture.starts_with(kArchitecture) ? compile_code_object(unit, architecture, use_cache, slow)
                                                 : compile_cubin(unit, architecture, use_cache, slow);
}

}  // namespace heddle::jit
