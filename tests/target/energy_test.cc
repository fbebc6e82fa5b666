#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file/file.h"
#include "heddle/error.h"
#include "target/energy/energy_counter.h"
#include "target/energy/nvml.h"
#include "target/energy/rapl.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::string why_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    return error.why() + "; " + error.remedy();
  }
  return "no error";
}

void sleep_ms(int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

class Powercap : public testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, uint64_t microjoules, uint64_t range = 1000000) const {
    std::filesystem::create_directories(dir_.path() + "/" + folder);
    write_file(dir_.path() + "/" + folder + "/name", name + "\n", Sync::kNo);
    write_file(dir_.path() + "/" + folder + "/max_energy_range_uj", std::to_string(range) + "\n", Sync::kNo);
    set(folder, microjoules);
  }
  void set(const std::string& folder, uint64_t microjoules) const {
    write_file(energy_file(folder), std::to_string(microjoules) + "\n", Sync::kNo);
  }
  std::string energy_file(const std::string& folder) const { return dir_.path() + "/" + folder + "/energy_uj"; }

  TempDir dir_;
};

TEST_F(Powercap, AddsPackagesAndTheirMemoryOnce) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:0:0", "core", 70);
  zone("intel-rapl:0:1", "dram", 20);
  zone("intel-rapl:1", "package-1", 500);
  zone("intel-rapl:2", "psys", 9000);
  zone("intel-rapl-mmio:0", "package-0", 100);
  const auto counter = rapl_counter(dir_.path());
  EXPECT_EQ(counter->source(), "RAPL of 2 packages");
  const double before = counter->joules();
  for (const char* folder : {"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"}) set(folder, 900000);
  EXPECT_EQ(counter->joules(), before);
  set("intel-rapl:0", 1100), set("intel-rapl:0:1", 30), set("intel-rapl:1", 600);
  EXPECT_NEAR(counter->joules() - before, 1110e-6, 1e-12);
}

TEST_F(Powercap, GoesOnWhereAZoneBeginsAtZeroAgain) {
  zone("intel-rapl:0", "package-0", 999000);
  const auto counter = rapl_counter(dir_.path());
  set("intel-rapl:0", 500);
  EXPECT_NEAR(counter->joules(), 1500e-6, 1e-12);
}

TEST_F(Powercap, SaysWhyThereIsNoCounter) {
  EXPECT_THAT(why_of([&] { rapl_counter(dir_.path() + "/none"); }), HasSubstr("has no RAPL counter"));
  zone("intel-rapl:0", "package-0", 100);
  const auto counter = rapl_counter(dir_.path());
  std::filesystem::remove(energy_file("intel-rapl:0"));
  EXPECT_THAT(why_of([&] { counter->joules(); }), HasSubstr("No such file"));
  set("intel-rapl:0", 100);
  std::filesystem::permissions(energy_file("intel-rapl:0"), std::filesystem::perms::none);
  if (::geteuid() == 0) GTEST_SKIP() << "root reads any file";
  EXPECT_THAT(why_of([&] { rapl_counter(dir_.path()); }), HasSubstr("chmod a+r"));
}

// One process loads one NVML.
TEST(Nvml, CountsTheGpuAtAnAddress) {
  ::setenv("HEDDLE_NVML", HEDDLE_FAKE_NVML, 1);
  EXPECT_THAT(why_of([] { nvml_counter("00000000:07:00.0"); }), HasSubstr("Not Found"));
  EXPECT_THAT(why_of([] { nvml_counter("00000000:02:00.0"); }), HasSubstr("Not Supported"));
  const auto counter = nvml_counter("00000000:01:00.0");
  EXPECT_EQ(counter->source(), "NVML");
  const EnergyFigure figure = measure_energy(*counter, 0.2, [](int64_t runs) { sleep_ms(2 * runs); });
  ASSERT_TRUE(figure.ok()) << figure.why_not;
  EXPECT_GE(figure.seconds, 0.2);
  EXPECT_GE(figure.runs, 20);
  EXPECT_NEAR(figure.watts, 250, 25);
  EXPECT_NEAR(figure.joules, figure.watts * figure.seconds / static_cast<double>(figure.runs), 1e-9);
}

TEST(Energy, FindsTheCounterOfTheCpu) {
  const TempDir dir;
  ::setenv("HEDDLE_POWERCAP", dir.path().c_str(), 1);
  EXPECT_THAT(why_of([] { EnergyCounter::of("cpu-avx512", -1); }), HasSubstr(dir.path()));
  ::unsetenv("HEDDLE_POWERCAP");
  EXPECT_THAT(why_of([] { EnergyCounter::of("hip-gfx942", 0); }), HasSubstr("AMD"));
}

class Steps : public EnergyCounter {
 public:
  Steps() : EnergyCounter("steps") {}
  double joules() override {
    if (fails) throw Error(ErrorCode::kDevice, "energy", "it broke");
    return std::floor(sum);
  }
  double sum = 0;
  bool fails = false;
};

// A run takes a quarter of a joule, the counter shows whole ones.
TEST(Energy, MeasuresFromUpdateToUpdate) {
  Steps counter;
  const EnergyFigure figure = measure_energy(counter, 0, [&](int64_t runs) {
    sleep_ms(20 * runs);
    counter.sum += 0.25 * static_cast<double>(runs);
  });
  ASSERT_TRUE(figure.ok());
  EXPECT_EQ(figure.runs, 40);  // ten updates
  EXPECT_EQ(figure.joules, 0.25);
  EXPECT_NEAR(figure.interval, 0.08, 0.03);
}

TEST(Energy, ACounterThatBreaksIsNoError) {
  Steps counter;
  const EnergyFigure figure = measure_energy(counter, 0, [&](int64_t) {
    sleep_ms(15);
    counter.fails = true;
  });
  EXPECT_EQ(figure.why_not, "it broke");
  EXPECT_EQ(text_of(figure), "not measured: it broke");
  const auto failing = [](int64_t) { throw Error(ErrorCode::kDevice, "GPU 0", "it is lost"); };
  EXPECT_THROW(measure_energy(counter, 0, failing), Error);  // of the runs
}

}  // namespace
}  // namespace heddle
