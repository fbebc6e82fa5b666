#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jit/cubin.h"

namespace heddle::jit {

// The NVRTC library of this machine, which is loaded at the first call. If $HEDDLE_NVRTC is set, it names the library.
// Otherwise it is the libnvrtc.so.13 or .12 that the loader finds, else one below /usr/local/cuda.
struct NvrtcInfo {
  std::string path;
  int major = 0, minor = 0;
};
// Throws kNoCompiler; the message lists the files that were tried.
NvrtcInfo find_nvrtc();
// Sets the files to try, in this order, before the loader's libraries, unless $HEDDLE_NVRTC is set. The loader does not
// search the folders that pip installs to. Not thread-safe; call it before the first compilation.
void prefer_nvrtc(std::vector<std::string> paths);

// Whether compile_cubin() accepts a kernel whose registers spill, or whose tensor-core instructions the compiler
// serialised or ignored (C7508, C7510). Such a kernel is many times slower than it should be. kRefuse throws
// kCompilerFailed. kAccept accepts the kernel, since its results are correct: a model with an unforeseen epilogue has
// to run. kAcceptAtOnce accepts it without trying relaxed launch bounds first.
enum class Slow : uint8_t { kRefuse, kAccept, kAcceptAtOnce };
// kWritten: the machine code has line tables, in which the unit is called kernel.cu. The tables are four times the size
// of the rest of the file; the instructions are the same.
enum class Lines : uint8_t { kNone, kWritten };
// Compiles one unit (CUDA C++ that includes tile headers) to machine code of `architecture`
// (CudaTarget::architecture()). Units for an emulated GPU are compiled by the host's compiler (cuda/emulated.h). Looks
// in the user's cache first unless `use_cache` is false. If kernels spill, compiles the unit again with relaxed launch
// bounds, except with kAcceptAtOnce. Throws kNoCompiler. Throws kCompilerFailed, with the log, if the unit does not
// compile, or if a kernel is slow (Slow) and `slow` is kRefuse. Thread-safe.
CompiledCubin compile_cubin(const std::string& unit, const std::string& architecture, bool use_cache,
                            Slow slow = Slow::kRefuse, Lines lines = Lines::kNone);

// spilling_kernels() returns the kernels that spill registers according to a compiler's log. spilled_bytes() returns
// the spilled bytes of all kernels. Use the bytes only for comparison, since a log may list a kernel several times.
std::set<std::string> spilling_kernels(std::string_view log);
int64_t spilled_bytes(std::string_view log);
int64_t spilled_bytes(std::string_view log, const std::set<std::string>& kernels);  // of these kernels only

// Returns the reason why a compiler's log counts as a failure; "" if it does not. Exposed for tests.
std::string find_defect(std::string_view log);

// Returns `unit` with relaxed launch bounds. For the kernels that spill according to `log`, __launch_bounds__(threads)
// and __launch_bounds__(threads, blocks) become __launch_bounds__(threads, 1). With other bounds, the compiler limits
// registers to leave room for more blocks, and spills a few bytes to stay below that limit. Returns the text unchanged
// if nothing can be relaxed.
std::string relax_bounds(const std::string& unit, std::string_view log);

}  // namespace heddle::jit
