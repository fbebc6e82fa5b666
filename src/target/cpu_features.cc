#include "target/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#endif

namespace heddle {

#if defined(__x86_64__)
namespace {

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the processor has no such leaf.
Leaf leaf(uint32_t number, uint32_t part = 0) {
  Leaf read;
  __get_cpuid_count(number, part, &read.eax, &read.ebx, &read.ecx, &read.edx);
  return read;
}

// Whether all of these bits are set.
bool has(uint32_t word, std::initializer_list<int> bits) {
  for (const int bit : bits) {
    if ((word >> bit & 1) == 0) return false;
  }
  return true;
}

// The kinds of registers that the system saves when it switches threads.
uint32_t saved_registers() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Asks the system to save the matrix registers of this process's threads, which it does for those that ask only.
bool saves_matrices() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kMatrices = 18;  // of arch_prctl(2)
  return syscall(SYS_arch_prctl, kRequestPermission, kMatrices) == 0;
#else
  return false;
#endif
}

bool is_zen() {
  const Leaf vendor = leaf(0);
  const bool amd =
      vendor.ebx == signature_AMD_ebx && vendor.ecx == signature_AMD_ecx && vendor.edx == signature_AMD_edx;
  const uint32_t signature = leaf(1).eax;
  const uint32_t family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
  return amd && (family == 0x17 || family == 0x19);
}

CpuFeatures read() {
  enum { kFma = 12, kOsxsave = 27, kAvx = 28, kF16c = 29 };                                   // leaf 1, ecx
  enum { kBmi1 = 3, kAvx2 = 5, kBmi2 = 8, kF = 16, kDq = 17, kCd = 28, kBw = 30, kVl = 31 };  // leaf 7, ebx
  enum { kVnni = 11 };                                                                        // leaf 7, ecx
  enum { kAmxBf16 = 22, kAmxTile = 24, kAmxInt8 = 25 };                                       // leaf 7, edx
  enum { kBf16 = 5 };                                                                         // leaf 7.1, eax
  enum { kXmm = 1, kYmm = 2, kMask = 5, kZmmHigh = 6, kZmm16To31 = 7 };                       // XCR0
  enum { kTileConfig = 17, kTileData = 18 };                                                  // XCR0
  CpuFeatures features;
  features.zen = is_zen();
  const Leaf first = leaf(1), seventh = leaf(7);
  if (!has(first.ecx, {kOsxsave})) return features;
  const uint32_t saved = saved_registers();
  features.avx2 =
      has(first.ecx, {kFma, kAvx, kF16c}) && has(seventh.ebx, {kBmi1, kAvx2, kBmi2}) && has(saved, {kXmm, kYmm});
  features.avx512 =
      features.avx2 && has(seventh.ebx, {kF, kDq, kCd, kBw, kVl}) && has(saved, {kMask, kZmmHigh, kZmm16To31});
  features.avx512_vnni = features.avx512 && has(seventh.ecx, {kVnni});
  features.avx512_bf16 = features.avx512 && has(leaf(7, 1).eax, {kBf16});
  features.amx = features.avx512_vnni && features.avx512_bf16 && has(seventh.edx, {kAmxBf16, kAmxTile, kAmxInt8}) &&
                 has(saved, {kTileConfig, kTileData}) && saves_matrices();
  return features;
}

}  // namespace
#endif

const CpuFeatures& cpu_features() {
#if defined(__x86_64__)
  static const CpuFeatures features = read();
#else
  static const CpuFeatures features;
#endif
  return features;
}

}  // namespace heddle
