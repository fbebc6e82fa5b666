#include "target/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace heddle {
namespace {

// The words after the first "flags:" of /proc/cpuinfo.
std::set<std::string> flags_of_kernel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(CpuFeatures, AreThoseThatTheKernelLists) {
  const std::set<std::string> flags = flags_of_kernel();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags";
  const auto all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!flags.contains(name)) return false;
    }
    return true;
  };
  const bool avx2 = all({"avx2", "fma", "f16c", "bmi1", "bmi2"});
  const bool avx512 = avx2 && all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  EXPECT_EQ(cpu_features().avx2, avx2);
  EXPECT_EQ(cpu_features().avx512, avx512);
  EXPECT_EQ(cpu_features().avx512_vnni, avx512 && all({"avx512_vnni"}));
  EXPECT_EQ(cpu_features().avx512_bf16, avx512 && all({"avx512_bf16"}));
  // The system may refuse to save matrix registers.
  if (cpu_features().amx) EXPECT_TRUE(avx512 && all({"amx_tile", "amx_bf16", "amx_int8"}));
}

}  // namespace
}  // namespace heddle
