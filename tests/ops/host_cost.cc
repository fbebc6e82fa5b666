// What a call of the client API costs on the host beside the driver: prints the figures, and fails above what is
// promised. The driver is a stub of empty functions; time is that of the thread.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/file/file.h"
#include "heddle/ops.h"

namespace {

using namespace heddle;

// Nanoseconds of one call: the median of batches.
template <typename Call>
double cost_of(const Call& call) {
  constexpr int kBatches = 41, kCalls = 500;
  std::vector<double> batches;
  for (int i = 0; i < kBatches; ++i) {
    const double start = thread_seconds();
    for (int k = 0; k < kCalls; ++k) call(k);
    batches.push_back((thread_seconds() - start) / kCalls * 1e9);
  }
  std::sort(batches.begin(), batches.end());
  return batches[kBatches / 2];
}

const void* at(uint64_t address) {
  return reinterpret_cast<const void*>(address);
}

bool measure(const char* what, const ops::GemmProblem& problem) {
  constexpr double kPromised = 2500;
  constexpr uint64_t kA = 1u << 30, kB = 2u << 30, kD = 3u << 30, kSlot = 1 << 16;
  const ops::Gemm gemm = ops::Gemm::prepare(problem);
  std::vector<const void*> operands;
  for (size_t i = 0; i < problem.operands.size(); ++i) operands.push_back(at(0x200000000 + (i << 24)));
  const auto d = [&](int k) { return const_cast<void*>(at(kD + static_cast<uint64_t>(k) % 4 * kSlot)); };
  const double prepared = cost_of([&](int k) { gemm(at(kA), at(kB), d(k), nullptr, operands); });
  const double found = cost_of([&](int k) { ops::gemm(problem, at(kA), at(kB), d(k), nullptr, operands); });
  std::printf("%s (%s, workspace %lld bytes): %.0f ns a call of a prepared product, %.0f ns by the problem\n", what,
              gemm.config().c_str(), static_cast<long long>(gemm.workspace_bytes()), prepared, found);
  return prepared <= kPromised && found <= kPromised;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DRIVER: a library in place of libcuda.so.1, such as one that does nothing\n",
                 argv[0]);
    return 2;
  }
  ::setenv("HEDDLE_CUDA_DRIVER", argv[1], 1);
  const TempDir cache("heddle-host-cost");
  ::setenv("HEDDLE_CACHE_DIR", cache.path().c_str(), 1);
  ops::GemmProblem plain;
  plain.m = 64, plain.n = 128, plain.k = 256;
  ops::GemmProblem fused = plain;
  fused.m = 4096, fused.n = 4096, fused.k = 4096;
  fused.epilogue = "gelu(x + bias) * 0.5 + residual";
  fused.operands = {{.name = "bias"}, {.name = "residual", .kind = ops::Operand::Kind::kMatrix}};
  ops::GemmProblem deep = plain;
  deep.m = 16, deep.n = 64, deep.k = 16384;
  bool good = measure("plain", plain);
  good = measure("fused", fused) && good;
  good = measure("deep", deep) && good;
  return good ? 0 : 1;
}
