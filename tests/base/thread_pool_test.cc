#include "base/thread/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/thread/cancel.h"
#include "heddle/error.h"

namespace heddle {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  for (int64_t tasks : {0, 1, 2, 7, 64, 1009}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(tasks));
    pool.run(tasks, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
  }
}

TEST_P(ThreadPoolTest, WorkerIndexIsExclusiveWithinOneRun) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> occupants(static_cast<size_t>(pool.threads()));
  for (int round = 0; round < 200; ++round) {
    pool.run(64, [&](int64_t, int64_t, int worker) {
      ASSERT_LT(worker, pool.threads());
      EXPECT_EQ(occupants[static_cast<size_t>(worker)].fetch_add(1), 0);
      occupants[static_cast<size_t>(worker)].fetch_sub(1);
    });
  }
}

TEST_P(ThreadPoolTest, NestedRunsComplete) {
  ThreadPool pool(GetParam());
  std::atomic<int> count = 0;
  pool.run(8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      pool.run(10, [&](int64_t b, int64_t e, int) { count += static_cast<int>(e - b); });
    }
  });
  EXPECT_EQ(count.load(), 80);
}

TEST_P(ThreadPoolTest, SeveralCallersAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        pool.run(33, [&](int64_t b, int64_t e, int) { sum += e - b; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 300 * 33);
}

TEST_P(ThreadPoolTest, ExceptionReachesTheCallerAndThePoolSurvives) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.run(100,
                        [](int64_t begin, int64_t, int) {
                          if (begin >= 0) throw std::runtime_error("task");
                        }),
               std::runtime_error);
  std::atomic<int> count = 0;
  pool.run(10, [&](int64_t b, int64_t e, int) { count += static_cast<int>(e - b); });
  EXPECT_EQ(count.load(), 10);
}

TEST_P(ThreadPoolTest, GrainBoundsTheRanges) {
  ThreadPool pool(GetParam());
  pool.run(
      100, [](int64_t begin, int64_t end, int) { EXPECT_TRUE(end - begin >= 16 || end == 100); }, 16);
}

TEST_P(ThreadPoolTest, WorkersBeginWithTheSameShareInEveryJob) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> begun = 0;
    // Nobody is free to take another's share before all have begun.
    pool.run(pool.threads(), [&](int64_t begin, int64_t end, int worker) {
      ++begun;
      while (begun.load() < pool.threads()) std::this_thread::yield();
      EXPECT_EQ(begin, worker);
      EXPECT_EQ(end, begin + 1);
    });
  }
}

TEST_P(ThreadPoolTest, WakesWorkersThatSleep) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // beyond the spin
    std::atomic<int> count = 0;
    pool.run(50, [&](int64_t b, int64_t e, int) { count += static_cast<int>(e - b); });
    EXPECT_EQ(count.load(), 50);
  }
}

TEST_P(ThreadPoolTest, JobsThatAreCancelledEndAndThePoolSurvives) {
  ThreadPool pool(GetParam());
  Cancellation cancellation;
  const auto sum = [&](int64_t tasks, int64_t cancelled_at) {
    std::atomic<int64_t> done = 0;
    pool.run(tasks, [&](int64_t begin, int64_t end, int) {
      each_part(begin, end, 1, [&](int64_t from, int64_t to) {
        if ((done += to - from) == cancelled_at) cancellation.cancel();
      });
    });
    return done.load();
  };
  {
    const CancelScope scope(&cancellation);
    EXPECT_EQ(sum(1000, -1), 1000);
    EXPECT_THROW(sum(1 << 20, 100), Cancelled);
    EXPECT_THROW(sum(10, -1), Cancelled);
  }
  EXPECT_EQ(sum(1000, 10), 1000);  // nobody's any more
}

// Only the thread of the scope asks, also while it waits for others.
TEST_P(ThreadPoolTest, TheCallerIsAskedNowAndThen) {
  ThreadPool pool(GetParam());
  struct Asking : Cancellation {
    bool asked() override {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      return ++count == 2;
    }
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> count = 0;
  } cancellation;
  const CancelScope scope(&cancellation);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(pool.run(10000,
                        [](int64_t begin, int64_t end, int) {
                          each_part(begin, end, 1, [](int64_t, int64_t) {
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                          });
                        }),
               Cancelled);
  EXPECT_EQ(cancellation.count.load(), 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

// Each thread takes some megabytes of address space for its stack.
TEST(ThreadPoolDeath, ThreadsThatDoNotStartAreAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the address space";
#endif
  EXPECT_EXIT(
      {
        struct rlimit limit = {};
        limit.rlim_cur = limit.rlim_max = rlim_t{512} << 20;
        ::setrlimit(RLIMIT_AS, &limit);
        try {
          ThreadPool pool(1000);
        } catch (const Error& error) {
          std::fprintf(stderr, "%s", error.what());
          std::_Exit(error.code() == ErrorCode::kOutOfMemory ? 3 : 4);
        }
        std::_Exit(5);
      },
      testing::ExitedWithCode(3), "1000 threads.* of 999.*CompileOptions::threads");
}

TEST(ThreadPool, ForkAndJoinIsCheap) {
  ThreadPool pool(2);
  double best = 1;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) pool.run(4, [](int64_t, int64_t, int) {});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / 500);
  }
  RecordProperty("nanoseconds", static_cast<int>(best * 1e9));
  EXPECT_LT(best, 100e-6);  // a wide bound: the machine may be shared, sanitizers may be on
}

}  // namespace
}  // namespace heddle
