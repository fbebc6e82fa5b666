#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::jit {

// NVRTC of this machine. Loaded at the first call: $HEDDLE_NVRTC where that is set, else the loader's libnvrtc.so.13
// and .12, else those below /usr/local/cuda.
struct NvrtcInfo {
  std::string path;
  int major = 0, minor = 0;
};
// Throws kNoCompiler saying what was searched.
NvrtcInfo find_nvrtc();
// Files to try before those names, in this order: no loader looks where pip installs. Call it before anything is
// compiled; it is not thread-safe.
void prefer_nvrtc(std::vector<std::string> paths);

struct CompiledCubin {
  std::string bytes;
  std::string log;  // what the compiler wrote, with registers and shared memory of each kernel
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Compiles one unit (CUDA C++ that includes tile headers) to machine code of `architecture`
// (CudaTarget::architecture(); that of an emulated GPU is compiled by the host's compiler, cuda/emulated.h). Looks into
// the user's cache first unless `use_cache` is false. Safe from several threads. Throws kNoCompiler, and
// kCompilerFailed with the log where the unit does not compile, registers spill or the compiler serialised or ignored
// what the tensor cores need (C7508, C7510): such a kernel is many times slower than it should be. kAccept takes
// it all the same, for it is right: a model whose epilogue nobody foresaw has to run.
enum class Slow : uint8_t { kRefuse, kAccept, kAcceptAtOnce };
// Tables of lines, in which the unit is kernel.cu, four times the size of the rest; the code is the same.
enum class Lines : uint8_t { kNone, kWritten };
// Where kernels spill, the unit is compiled a second time with relaxed bounds, except with kAcceptAtOnce.
CompiledCubin compile_cubin(const std::string& unit, const std::string& architecture, bool use_cache,
                            Slow slow = Slow::kRefuse, Lines lines = Lines::kNone);

// The kernels that spill registers according to a compiler's log, and what all of them spill, in bytes; only to be
// compared, since a log may give each kernel several times.
std::set<std::string> spilling_kernels(std::string_view log);
int64_t spilled_bytes(std::string_view log);
int64_t spilled_bytes(std::string_view log, const std::set<std::string>& kernels);  // of these

// What makes a compiler's log a failure; "" for nothing. Exposed for tests.
std::string find_defect(std::string_view log);

// `unit` with __launch_bounds__(threads, 1) in place of __launch_bounds__(threads) or (threads, blocks) at the kernels
// that spill according to `log`; the same text where nothing can be relaxed. Without the 1 the compiler stops at a
// number of registers that leaves room for more blocks, and prefers a spill of a few bytes to passing it.
std::string relax_bounds(const std::string& unit, std::string_view log);

}  // namespace heddle::jit
