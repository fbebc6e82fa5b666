#include "target/cuda_model.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "target/target.h"

namespace heddle {
namespace {

std::map<std::string, double> numbers_of(const CudaModel& model) {
  std::map<std::string, double> numbers;
  for_each_number(model, [&](std::string_view group, std::string_view name, double value, ScalesWith) {
    numbers[std::string(group) + "." + std::string(name)] = value;
  });
  return numbers;
}

TEST(CudaModel, EveryKnownChipHasEveryNumber) {
  for (const KnownChip* chip : {&h200(), &h100(), &a100(), &l4(), &rtx4090()}) {
    for (const auto& [name, value] : numbers_of(chip->model)) EXPECT_GT(value, 0) << chip->name << " " << name;
    EXPECT_EQ(chip->model.chip.sms, chip->facts.sms) << chip->name;
  }
}

TEST(CudaModel, ADeviceIsFoundByTheBeginningOfItsName) {
  EXPECT_EQ(numbers_of(model_of("NVIDIA A100-SXM4-80GB", 80, {})), numbers_of(a100().model));
  EXPECT_EQ(numbers_of(model_of("NVIDIA H200", 90, {})), numbers_of(h200().model));
  // Another chip, though its name begins alike: as its architecture has it, with more SMs.
  const CudaModel l40 = model_of("NVIDIA L40", 89, {.sms = 142});
  EXPECT_EQ(l40.chip.sms, 142);
  EXPECT_EQ(l40.chip.f64_per_cycle, l4().model.chip.f64_per_cycle);
  EXPECT_GT(l40.chip.sustained_tflops, l4().model.chip.sustained_tflops);
}

TEST(CudaModel, WhatDriversRoundScalesNothing) {
  const CudaModel model = model_of("NVIDIA H200", 90, {.sms = 132, .boost_ghz = 1.965, .memory_tbps = 4.917});
  EXPECT_EQ(numbers_of(model), numbers_of(h200().model));
}

TEST(CudaModel, NumbersFollowTheirFacts) {
  const ChipFacts from = h200().facts;
  ChipFacts to = from;
  to.memory_tbps = from.memory_tbps / 2;
  const auto before = numbers_of(h200().model), after = numbers_of(scaled(h200().model, from, to));
  for_each_number(h200().model, [&](std::string_view group, std::string_view name, double value, ScalesWith follows) {
    const std::string key = std::string(group) + "." + std::string(name);
    EXPECT_EQ(after.at(key), follows == ScalesWith::kMemory ? value / 2 : value) << key;
  });
  to = from;
  to.sms = 66;
  const CudaModel half = scaled(h200().model, from, to);
  EXPECT_EQ(half.chip.sms, 66);
  EXPECT_EQ(half.chip.sustained_tflops, h200().model.chip.sustained_tflops / 2);
  EXPECT_EQ(half.chip.clock_ghz, h200().model.chip.clock_ghz);
}

TEST(CudaModel, KeysOfTheCacheDifferWithEveryNumber) {
  Target target = Target::cuda_h200(1);
  const std::string key = target.model_fingerprint(), machine = target.fingerprint();
  for_each_number(target.cuda.model, [&](std::string_view group, std::string_view name, double& value, ScalesWith) {
    const double kept = value;
    value *= 1.5;
    EXPECT_NE(target.model_fingerprint(), key) << group << "." << name;
    EXPECT_EQ(target.fingerprint(), machine);
    value = kept;
  });
  target.cuda.l2_bytes /= 2;
  EXPECT_NE(target.model_fingerprint(), key);
}

}  // namespace
}  // namespace heddle
