#include "jit/hip/clang.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/file/file.h"
#include "jit/cache.h"
#include "jit/headers.h"
#include "jit/process.h"

namespace heddle::jit {

std::vector<std::string> device_library() {
  std::vector<std::string> folders = {"/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode"};
  if (const char* chosen = std::getenv("HEDDLE_HIP_DEVICE_LIBS"); chosen != nullptr && *chosen != '\0') {
    folders = {chosen};
  }
  // The last five are constants that the functions read. They ask for no other architecture than "before GCN 9 or not".
  constexpr const char* kFiles[] = {"ocml",
                                    "oclc_finite_only_off",
                                    "oclc_unsafe_math_off",
                                    "oclc_daz_opt_off",
                                    "oclc_correctly_rounded_sqrt_on",
                                    "oclc_isa_version_900"};
  for (const std::string& folder : folders) {
    std::vector<std::string> files;
    for (const char* file : kFiles) files.push_back(fmt::format("{}/{}.bc", folder, file));
    if (std::all_of(files.begin(), files.end(), [](const std::string& file) { return file_exists(file); }))
      return files;
  }
  return {};
}

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
  std::vector<std::string> command = {path,
                                      "-x",
                                      "hip",
                                      "--offload-device-only",
                                      "--no-gpu-bundle-output",
                                      "-nogpuinc",
                                      "-nogpulib",
                                      "-nostdinc",
                                      "-nostdinc++",
                                      "-I",
                                      system,
                                      "-I",
                                      include + "/tile/arch/hip",
                                      "-I",
                                      include};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& file : device_library()) {
    command.insert(command.end(), {"-Xclang", "-mlink-builtin-bitcode", "-Xclang", file});
  }
  // A missing function would otherwise be one for the loader to find, on the user's GPU.
  command.insert(command.end(), {"-Xoffload-linker", "--no-undefined"});
  command.insert(command.end(), {"-c", source, "-o", object});
  const ProcessResult result = run_process(command, dir.path() + "/log");
  if (result.status != 0 || !file_exists(object)) {
    constexpr size_t kShown = 6000;
    fail(ErrorCode::kCompilerFailed, path,
         fmt::format("compiling a kernel failed with status {}:\n{}", result.status, result.output.substr(0, kShown)),
         "clang needs its AMDGPU target, lld of the same version (Debian: clang-19 and lld-19) and, for functions such "
         "as "
         "__ocml_exp_f64, ROCm's device library (Debian: rocm-device-libs)");
  }
  return std::string(MappedFile::read(object)->text());
}

}  // namespace heddle::jit
