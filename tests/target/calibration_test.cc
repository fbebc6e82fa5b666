#include "target/calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file/file.h"
#include "base/log.h"

namespace heddle {
namespace {

class Calibration : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("HEDDLE_DEVICES", folder_.path().c_str(), 1);
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::kWarning) warnings_ += message;
    });
  }
  void TearDown() override {
    unsetenv("HEDDLE_DEVICES");
    set_log_sink({});
  }

  TempDir folder_;
  std::string warnings_;
};

TEST_F(Calibration, IsReadAsItWasWritten) {
  EXPECT_FALSE(cuda_calibration("NVIDIA H200"));
  const std::string path = write_calibration("NVIDIA H200", CudaRates{1.9, 4.1, 5.5, 780, 0.7});
  EXPECT_EQ(path, calibration_path("NVIDIA H200"));
  const auto rates = cuda_calibration("NVIDIA H200");
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->memory_tbps, 4.1);
  EXPECT_EQ(rates->boundary_us, 0.7);
  EXPECT_FALSE(cuda_calibration("NVIDIA H100"));
  write_calibration("a/../../CPU @ 3 GHz", CpuRates{3, 64, 10, 2});
  EXPECT_EQ(cpu_calibration("a/../../CPU @ 3 GHz")->copy_gbps, 10);
  EXPECT_EQ(warnings_, "");
}

TEST_F(Calibration, WhatIsDamagedIsNamedAndNotUsed) {
  const std::string path = write_calibration("gpu", CudaRates{1.9, 4.1, 5.5, 780, 0.7});
  const std::string whole(MappedFile::read(path)->text());
  const std::string broken[] = {
      "",
      "{}",
      "[1, 2]",
      whole.substr(0, whole.size() / 2),
      R"({"rates": {"clock_ghz": "fast"}})",
      R"({"rates": {"clock_ghz": 0, "memory_tbps": 1, "l2_tbps": 1, "tensor_tflops": 1, "boundary_us": 1}})",
      R"({"rates": {"clock_ghz": 1e300, "memory_tbps": 1, "l2_tbps": 1, "tensor_tflops": 1, "boundary_us": 1}})"};
  for (const std::string& text : broken) {
    write_file(path, text);
    EXPECT_FALSE(cuda_calibration("gpu")) << text;
  }
  EXPECT_NE(warnings_.find(path), std::string::npos);
  EXPECT_NE(warnings_.find("--calibrate"), std::string::npos);
}

TEST(CalibratedModel, FollowsWhatWasMeasured) {
  const CudaModel known = h200().model;
  const CudaRates rates = h200().rates;
  EXPECT_EQ(fingerprint(calibrated_model("NVIDIA H200", 90, 132, rates)), fingerprint(known));
  EXPECT_EQ(fingerprint(calibrated_model("NVIDIA H200", 90, 132, {})), fingerprint(known));

  CudaRates slow = rates;
  slow.memory_tbps /= 2;
  slow.boundary_us *= 3;
  const CudaModel model = calibrated_model("NVIDIA H200", 90, 132, slow);
  EXPECT_DOUBLE_EQ(model.chip.graph_boundary_us, 3 * known.chip.graph_boundary_us);
  EXPECT_DOUBLE_EQ(model.chip.copy_tbps, known.chip.copy_tbps / 2);
  EXPECT_DOUBLE_EQ(model.unaligned.memory_per_us, known.unaligned.memory_per_us / 2);
  EXPECT_EQ(model.chip.clock_ghz, known.chip.clock_ghz);
  EXPECT_EQ(model.chip.sustained_tflops, known.chip.sustained_tflops);

  // Half the SMs of the same kind: the whole chip multiplies half as much, one SM as much as before.
  CudaRates half = rates;
  half.tensor_tflops /= 2;
  const CudaModel part = calibrated_model("NVIDIA H200", 90, 66, half);
  EXPECT_EQ(part.chip.sms, 66);
  EXPECT_DOUBLE_EQ(part.chip.sustained_tflops, known.chip.sustained_tflops / 2);
  EXPECT_EQ(part.chip.tensor_per_cycle, known.chip.tensor_per_cycle);
}

}  // namespace
}  // namespace heddle
