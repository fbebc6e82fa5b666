#include "profile/code/sampler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "heddle/error.h"

namespace heddle::profile::code {
namespace {

double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Until it has used so much of the processor's time, however busy the machine is.
[[gnu::noinline]] void work(double seconds) {
  const double begin = processor_seconds();
  while (processor_seconds() - begin < seconds) {
  }
}

TEST(Sampler, ThreadsThatWorkAreSampledWithTheirContext) {
  std::atomic<int> phase = 0;
  std::thread other([&] {
    phase.wait(0);
    work(0.1);
  });
  Sampler sampler(1'000'000, 10'000);
  sampler.set_context(7);
  phase = 1;
  phase.notify_all();
  other.join();
  sampler.set_context(8);
  work(0.1);
  sampler.stop();
  size_t of_other = 0, of_own = 0;
  for (const Sample& sample : sampler.samples()) {
    EXPECT_NE(sample.pc, 0U);
    of_other += sample.context == 7;
    of_own += sample.context == 8;
  }
  EXPECT_GT(of_other, 3U);
  EXPECT_GT(of_own, 3U);
  EXPECT_EQ(sampler.lost(), 0);
}

TEST(Sampler, WhatComesBehindTheMostIsCounted) {
  Sampler sampler(1'000'000, 2);
  work(0.15);
  sampler.stop();
  EXPECT_EQ(sampler.samples().size(), 2U);
  EXPECT_GT(sampler.lost(), 0);
}

TEST(Sampler, ThereIsOneAtATime) {
  Sampler first(1'000'000, 10);
  EXPECT_THROW(Sampler(1'000'000, 10), Error);
  first.stop();
  EXPECT_NO_THROW(Sampler(1'000'000, 10));
}

}  // namespace
}  // namespace heddle::profile::code
