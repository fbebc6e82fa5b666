#include "base/thread/contention.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace heddle {
namespace {

// Two threads that always want the one processor that they have.
double waiting_of_a_shared_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  const double end = wall_seconds() + 0.1;
  const Contention contention;
  double waiting = 0;
  const auto work = [&](bool tells) {
    ::pthread_setaffinity_np(::pthread_self(), sizeof(one), &one);
    while (wall_seconds() < end) continue;
    if (tells) waiting = contention.waiting();
  };
  std::thread first(work, true), second(work, false);
  first.join(), second.join();
  return waiting;
}

TEST(Contention, CountsTheTimeThatThreadsWaitForAProcessor) {
  if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "the system does not count it";
  EXPECT_GT(waiting_of_a_shared_processor(), 0.25);
  const Contention contention;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // wants no processor
  EXPECT_FALSE(is_busy(contention.waiting()));
}

TEST(Contention, SaysWhyTimesSayLittle) {
  EXPECT_EQ(busy_text(0.02, 1), "");
  EXPECT_NE(busy_text(0.63, 1).find("the machine is busy with other work"), std::string::npos);
  EXPECT_NE(busy_text(0.63, 1).find("63%"), std::string::npos);
  EXPECT_NE(busy_text(0.63, 1 << 20).find("fewer threads"), std::string::npos);
}

}  // namespace
}  // namespace heddle
