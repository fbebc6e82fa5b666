#include "jit/hip/hiprtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "base/check.h"
#include "jit/headers.h"

namespace heddle::jit {
namespace {

struct Hiprtc {
  using Program = void*;
  int (*version)(int* major, int* minor);
  int (*create)(Program* program, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*destroy)(Program* program);
  int (*compile)(Program program, int options, const char* const* values);
  int (*log_size)(Program program, size_t* bytes);
  int (*log)(Program program, char* text);
  int (*code_size)(Program program, size_t* bytes);
  int (*code)(Program program, char* bytes);
  const char* (*error_text)(int result);
  HiprtcInfo info;
  std::string why;  // empty: there is one
};

bool open_hiprtc(Hiprtc& hiprtc, const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool all = true;
  const auto need = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function != nullptr;
  };
  need("hiprtcVersion", hiprtc.version);
  need("hiprtcCreateProgram", hiprtc.create);
  need("hiprtcDestroyProgram", hiprtc.destroy);
  need("hiprtcCompileProgram", hiprtc.compile);
  need("hiprtcGetProgramLogSize", hiprtc.log_size);
  need("hiprtcGetProgramLog", hiprtc.log);
  need("hiprtcGetCodeSize", hiprtc.code_size);
  need("hiprtcGetCode", hiprtc.code);
  need("hiprtcGetErrorString", hiprtc.error_text);
  if (!all || hiprtc.version(&hiprtc.info.major, &hiprtc.info.minor) != 0) {
    ::dlclose(library);
    return false;
  }
  hiprtc.info.path = path;
  return true;
}

Hiprtc load_hiprtc() {
  Hiprtc hiprtc{};
  std::vector<std::string> paths;
  if (const char* chosen = std::getenv("HEDDLE_HIPRTC"); chosen != nullptr && *chosen != '\0') {
    paths.emplace_back(chosen);
  } else {
    for (const char* folder : {"", "/opt/rocm/lib/"}) {
      for (const char* name : {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"}) {
        paths.push_back(std::string(folder) + name);
      }
    }
  }
  for (const std::string& path : paths) {
    if (open_hiprtc(hiprtc, path)) return hiprtc;
  }
  hiprtc.why = fmt::format("none of {} can be loaded", fmt::join(paths, ", "));
  return hiprtc;
}

const Hiprtc& hiprtc_of_process() {
  static const Hiprtc hiprtc = load_hiprtc();
  return hiprtc;
}

// The headers by the names under which units include them: those of tile/arch/hip in place of the others.
std::map<std::string_view, const char*> headers_for_hip() {
  constexpr std::string_view kReplacing = "tile/arch/hip/";
  std::map<std::string_view, const char*> headers;
  for (const SystemHeader& header : kSystemHeaders) headers[header.path] = header.text;
  for (const EmbeddedHeader& header : embedded_headers()) headers[header.path] = header.text.data();
  for (const EmbeddedHeader& header : embedded_headers()) {
    if (header.path.starts_with(kReplacing)) headers[header.path.substr(kReplacing.size())] = header.text.data();
  }
  return headers;
}

[[noreturn]] void hiprtc_failed(const Hiprtc& hiprtc, const std::string& why, const std::string& log) {
  constexpr size_t kShown = 6000;
  fail(ErrorCode::kCompilerFailed, hiprtc.info.path, fmt::format("{}:\n{}", why, log.substr(0, kShown)));
}

}  // namespace

std::optional<HiprtcInfo> find_hiprtc(std::string* why) {
  const Hiprtc& hiprtc = hiprtc_of_process();
  if (hiprtc.why.empty()) return hiprtc.info;
  *why = hiprtc.why;
  return std::nullopt;
}

std::string compile_by_hiprtc(const std::string& unit, const std::vector<std::string>& options) {
  const Hiprtc& hiprtc = hiprtc_of_process();
  static const std::map<std::string_view, const char*> headers = headers_for_hip();
  // Views of string literals: they end with a zero.
  std::vector<const char*> texts, names, values;
  for (const auto& [name, text] : headers) {
    names.push_back(name.data());
    texts.push_back(text);
  }
  for (const std::string& option : options) values.push_back(option.c_str());
  Hiprtc::Program program = nullptr;
  int result =
      hiprtc.create(&program, unit.c_str(), "kernel.hip", static_cast<int>(texts.size()), texts.data(), names.data());
  if (result != 0) hiprtc_failed(hiprtc, "creating a program", hiprtc.error_text(result));
  const std::shared_ptr<void> owner(nullptr, [&](void*) { hiprtc.destroy(&program); });
  result = hiprtc.compile(program, static_cast<int>(values.size()), values.data());
  if (result != 0) {
    size_t bytes = 0;
    std::string log;
    if (hiprtc.log_size(program, &bytes) == 0 && bytes > 0) {
      log.resize(bytes);
      if (hiprtc.log(program, log.data()) != 0) log.clear();
    }
    hiprtc_failed(hiprtc, hiprtc.error_text(result), log);
  }
  size_t bytes = 0;
  result = hiprtc.code_size(program, &bytes);
  std::string code(bytes, '\0');
  if (result == 0) result = hiprtc.code(program, code.data());
  if (result != 0) hiprtc_failed(hiprtc, "no machine code", hiprtc.error_text(result));
  return code;
}

}  // namespace heddle::jit
