#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::jit {

// The NVRTC of this machine. It is loaded at the first call: $HEDDLE_NVRTC if that is set, else the loader's
// libnvrtc.so.13 or .12, else one below /usr/local/cuda.
struct NvrtcInfo {
  std::string path;
  int major = 0, minor = 0;
};
// Throws kNoCompiler with the places that were searched.
NvrtcInfo find_nvrtc();
// Files to try before those names, in this order: no loader searches the folders that pip installs to. Not thread-safe;
// call it before the first compilation.
void prefer_nvrtc(std::vector<std::string> paths);

struct CompiledCubin {
  std::string bytes;
  std::string log;  // the compiler's output, with registers and shared memory of each kernel
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Compiles one unit (CUDA C++ that includes tile headers) to machine code of `architecture`
// (CudaTarget::architecture()). Units for an emulated GPU are compiled by the host's compiler (cuda/emulated.h). Looks
// in the user's cache first unless `use_cache` is false. Thread-safe. Throws kNoCompiler. Throws kCompilerFailed with
// the log if the unit does not compile, if registers spill, or if the compiler serialised or ignored tensor-core
// instructions (C7508, C7510): such a kernel is many times slower than it should be. kAccept accepts a slow kernel,
// since its results are right: a model with an unforeseen epilogue has to run.
enum class Slow : uint8_t { kRefuse, kAccept, kAcceptAtOnce };
// kWritten: the machine code has line tables, in which the unit is kernel.cu. They are four times the size of the rest;
// the code is the same.
enum class Lines : uint8_t { kNone, kWritten };
// If kernels spill, the unit is compiled again with relaxed launch bounds, except with kAcceptAtOnce.
CompiledCubin compile_cubin(const std::string& unit, const std::string& architecture, bool use_cache,
                            Slow slow = Slow::kRefuse, Lines lines = Lines::kNone);

// The kernels that spill registers according to a compiler's log, and the spilled bytes of all of them. Use the bytes
// only for comparison, since a log may list a kernel several times.
std::set<std::string> spilling_kernels(std::string_view log);
int64_t spilled_bytes(std::string_view log);
int64_t spilled_bytes(std::string_view log, const std::set<std::string>& kernels);  // of these kernels

// Why a compiler's log counts as a failure; "" if it does not. Exposed for tests.
std::string find_defect(std::string_view log);

// `unit` with __launch_bounds__(threads, 1) in place of __launch_bounds__(threads) or (threads, blocks) at the kernels
// that spill according to `log`. Returns the text unchanged if nothing can be relaxed. Without the 1, the compiler
// limits registers to leave room for more blocks and accepts a spill of a few bytes to stay below that limit.
std::string relax_bounds(const std::string& unit, std::string_view log);

}  // namespace heddle::jit
