#include "jit/hip/clang.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/file/file.h"
#include "jit/cache.h"
#include "jit/headers.h"
#include "jit/process.h"

namespace heddle::jit {

std::string compile_by_clang(const std::string& path, const std::string& unit, const std::vector<std::string>& options,
                             bool use_cache) {
  const TempDir dir("heddle-hip", use_cache ? Cache::of_user().scratch_folder() : "");
  const std::string include = header_folder(dir.path() + "/headers", use_cache), system = dir.path() + "/system";
  make_directories(system);
  for (const SystemHeader& header : kSystemHeaders) {
    write_file(fmt::format("{}/{}", system, header.path), header.text, Sync::kNo);
  }
  const std::string source = dir.path() + "/kernel.hip", object = dir.path() + "/kernel.co";
  write_file(source, unit, Sync::kNo);
  // No file of ROCm or of the C library, and no bundle of objects for several architectures.
  std::vector<std::string> command = {path, "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output",
                                      "-nogpuinc", "-nogpulib", "-nostdinc", "-nostdinc++", "-I", system, "-I",
                                      include + "/tile/arch/hip", "-I", include};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-c", source, "-o", object});
  const ProcessResult result = run_process(command, dir.path() + "/log");
  if (result.status != 0 || !file_exists(object)) {
    constexpr size_t kShown = 6000;
    fail(ErrorCode::kCompilerFailed, path,
         fmt::format("compiling a kernel failed with status {}:\n{}", result.status, result.output.substr(0, kShown)),
         "clang needs its AMDGPU target and lld of the same version (Debian: clang-19 and lld-19)");
  }
  return std::string(MappedFile::read(object)->text());
}

}  // namespace heddle::jit
