#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "profile/gpu/collector.h"
#include "profile/gpu/cupti_library.h"
#include "records.h"
#include "target/cuda_driver.h"
#include "tests/error_of.h"

namespace heddle::profile {
namespace {

using testing::HasSubstr;

// What start() says with this value of HEDDLE_CUPTI.
std::string said(const char* named) {
  named == nullptr ? ::unsetenv("HEDDLE_CUPTI") : ::setenv("HEDDLE_CUPTI", named, 1);
  const Error error = test::error_of([] { GpuCollector::start({}); });
  ::unsetenv("HEDDLE_CUPTI");
  EXPECT_EQ(error.code(), ErrorCode::kDevice);
  EXPECT_NE(error.remedy(), "");
  return error.what();
}

// In an order: the last one loads a library, which stays.
TEST(CuptiLibrary, WhatCannotBeLoadedIsNamed) {
  EXPECT_THAT(said("/nonsense/libcupti.so"), HasSubstr("HEDDLE_CUPTI names /nonsense/libcupti.so"));
  EXPECT_THAT(said("libm.so.6"), HasSubstr("libm.so.6 has no cupti"));
  if (CudaDriver::find() != nullptr) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(said(nullptr), HasSubstr("driver"));
#ifdef HEDDLE_TOOLKIT_CUPTI
  const std::string text = said(HEDDLE_TOOLKIT_CUPTI);
  EXPECT_THAT(text, HasSubstr("999"));
  EXPECT_THAT(text, HasSubstr("no NVIDIA driver"));
  // NVIDIA's own walk finds the records where the collector's tests put them.
  const cupti::Library& library = cupti::library();
  if (library.number < 130000) return;
  HandmadeBuffer records;
  records.kernel(1, 2, 3, "a").copy(1, 1, 3, 4, 5, 6).peer_copy(7, 8, 9).memset(1, 2, 3).wait(3, 4, 5);
  records.memory(1, 2, 3).overhead(1 << 16, 4, 5).kernel(6, 7, 8, "b");
  std::vector<uint8_t> bytes = records.bytes();
  std::vector<size_t> starts;
  for (const uint8_t* record = nullptr; library.next_record(bytes.data(), bytes.size(), &record) == cupti::kSuccess;) {
    starts.push_back(static_cast<size_t>(record - bytes.data()));
  }
  EXPECT_EQ(starts, records.starts());
#endif
}

}  // namespace
}  // namespace heddle::profile
