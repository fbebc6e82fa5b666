// A collection with a CUPTI made of functions of this test.
#include "profile/gpu/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

#include "records.h"
#include "tests/error_of.h"

namespace heddle::profile {
namespace {

using testing::HasSubstr;
using Session = GpuCollector::Session;

// What the functions below say and were told.
struct Fake {
  cupti::Result subscribe = cupti::kSuccess, enable = cupti::kSuccess;
  bool subscribed = false;
  cupti::BufferRequested requested = nullptr;
  cupti::BufferCompleted completed = nullptr;
  size_t dropped = 0;
  size_t record_bytes = 216;
};
Fake fake;

cupti::Library fake_library() {
  cupti::Library library{};
  library.path = "a fake";
  library.error_text = [](cupti::Result, const char** text) {
    *text = "a text";
    return cupti::kSuccess;
  };
  library.subscribe_named = [](cupti::Subscriber*, cupti::Callback, void*, cupti::SubscriberParams* params) {
    if (fake.subscribe == cupti::kManySubscribers)
      std::strncpy(params->holder, "CUPTI for Kineto", params->holder_bytes);
    fake.subscribed = fake.subscribe == cupti::kSuccess;
    return fake.subscribe;
  };
  library.unsubscribe = [](cupti::Subscriber) {
    fake.subscribed = false;
    return cupti::kSuccess;
  };
  library.enable_callback = [](uint32_t, cupti::Subscriber, cupti::Domain, uint32_t) { return cupti::kSuccess; };
  library.register_buffers = [](cupti::BufferRequested requested, cupti::BufferCompleted completed) {
    fake.requested = requested;
    fake.completed = completed;
    return cupti::kSuccess;
  };
  library.enable = [](cupti::Activity) { return fake.enable; };
  library.disable = [](cupti::Activity) { return cupti::kSuccess; };
  library.next_record = [](uint8_t* buffer, size_t valid, const uint8_t** record) {
    const uint8_t* const next = *record == nullptr ? buffer : *record + fake.record_bytes;
    if (next + fake.record_bytes > buffer + valid) return cupti::Result{12};
    *record = next;
    return cupti::kSuccess;
  };
  library.flush = [](uint32_t) { return cupti::kSuccess; };
  library.dropped = [](void*, uint32_t, size_t* dropped) {
    *dropped = std::exchange(fake.dropped, 0);
    return cupti::kSuccess;
  };
  library.graph_node_id = [](void* node, uint64_t* id) {
    *id = reinterpret_cast<uint64_t>(node);
    return cupti::kSuccess;
  };
  library.graph_id = [](void* graph, uint32_t* id) {
    *id = static_cast<uint32_t>(reinterpret_cast<uint64_t>(graph));
    return cupti::kSuccess;
  };
  library.executable_id = library.graph_id;
  return library;
}

void call(Session& session, uint32_t correlation, const std::function<void()>& within = {}) {
  cupti::CallData data{};
  data.site = cupti::kEnter;
  data.correlation = correlation;
  session.on_call(data);
  if (within) within();
  data.site = cupti::kExit;
  session.on_call(data);
}

void* handle(uint64_t number) {
  return reinterpret_cast<void*>(number);
}

void deliver(const HandmadeBuffer& records) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most = 0;
  fake.requested(&buffer, &bytes, &most);
  ASSERT_LE(records.bytes().size(), bytes);
  std::copy(records.bytes().begin(), records.bytes().end(), buffer);
  fake.completed(nullptr, 0, buffer, bytes, records.bytes().size());
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  // Sessions outlive their collections.
  Session& begun(GpuCollector::Options options) {
    static auto* sessions = new std::vector<std::unique_ptr<Session>>();
    static const auto* library = new cupti::Library(fake_library());
    sessions->push_back(std::make_unique<Session>(*library, std::move(options)));
    sessions->back()->begin();
    return *sessions->back();
  }
};

thread_local uint64_t context_of_thread = 0;

GpuCollector::Options with_context() {
  return {.context = [] { return context_of_thread; }};
}

TEST_F(SessionTest, ACallsOperationsHaveItsContext) {
  Session& session = begun(with_context());
  context_of_thread = 11;
  call(session, 100);
  // The runtime's call counts, whichever number the record has.
  call(session, 101, [&] {
    context_of_thread = 12;
    call(session, 102);
  });
  call(session, 103);
  deliver(HandmadeBuffer()
              .kernel(50, 60, 102, "b")
              .kernel(10, 20, 100, "a")
              .kernel(30, 40, 101, "b")
              .kernel(70, 80, 103, "c")
              .kernel(90, 95, 9999, "d"));
  const auto operations = session.take();
  ASSERT_EQ(operations.size(), 5u);
  const uint64_t expected[] = {11, 11, 11, 12, 0};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(operations[i].context, expected[i]) << i;
    EXPECT_EQ(operations[i].launched != 0, i < 4);
  }
  EXPECT_EQ(operations[0].start, 10u) << "in order of start";
  EXPECT_TRUE(session.take().empty());
  session.end();
  EXPECT_FALSE(fake.subscribed);
  EXPECT_EQ(session.stats().operations, 5u);
  EXPECT_EQ(session.stats().calls, 4u);
}

TEST_F(SessionTest, ThreadsLaunchAtOnce) {
  Session& session = begun(with_context());
  constexpr uint32_t kThreads = 8, kCalls = 2000;
  std::atomic<uint32_t> correlation{0};
  std::vector<uint64_t> context_of(kThreads * kCalls + 1);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kCalls; ++i) {
        context_of_thread = 1 + t * kCalls + i;
        const uint32_t mine = ++correlation;
        context_of[mine] = context_of_thread;
        call(session, mine);
        if (i % 500 == 0) session.take();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  HandmadeBuffer records;
  for (uint32_t c = 1; c <= kThreads * kCalls; ++c) records.kernel(c, c + 1, c, "k");
  deliver(records);
  const auto operations = session.take();
  ASSERT_EQ(operations.size(), kThreads * kCalls);
  for (const GpuOperation& operation : operations) EXPECT_EQ(operation.context, context_of[operation.correlation]);
  session.end();
}

TEST_F(SessionTest, NodesOfGraphsHaveTheContextThatAddedThem) {
  Session& session = begun(with_context());
  const auto resource = [&](uint32_t id, cupti::GraphData graph) {
    session.on_resource(id, {nullptr, nullptr, &graph});
  };
  // Captured within calls, added by hand, cloned into another graph.
  context_of_thread = 21;
  call(session, 1, [&] { resource(cupti::kNodeCreated, {.node = handle(0x500000001)}); });
  context_of_thread = 22;
  resource(cupti::kNodeCreated, {.node = handle(0x500000002)});
  resource(cupti::kNodeCloned, {.node = handle(0x600000002), .original_node = handle(0x500000002)});
  resource(cupti::kExecutableCreated, {.graph = handle(5), .executable = handle(9)});
  // Some versions announce the executable's nodes where it is made.
  context_of_thread = 29;
  resource(cupti::kNodeCreated, {.node = handle(0x900000002)});
  resource(cupti::kNodeCreated, {.node = handle(0x600000002)});
  context_of_thread = 30;
  call(session, 2);
  deliver(HandmadeBuffer()
              .kernel(10, 20, 2, "a", 0x900000001)
              .kernel(20, 30, 2, "a", 0x900000002)
              .kernel(30, 40, 2, "a", 0x600000002)
              .kernel(40, 50, 2, "a", 0x700000001));
  const auto operations = session.take();
  ASSERT_EQ(operations.size(), 4u);
  const uint64_t expected[] = {21, 22, 22, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(operations[i].captured_context, expected[i]) << i;
    EXPECT_EQ(operations[i].context, 30u);
  }
  session.end();
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(SessionTest, AMillionLaunchesStayWithinTheBound) {
  constexpr uint32_t kLaunches = 1000000, kOfBuffer = 10000;
  constexpr size_t kMost = size_t{200} << 20;
  const size_t before = resident_bytes();
  Session& session = begun(with_context());
  std::vector<GpuOperation> operations;
  size_t most = 0;
  for (uint32_t c = 0; c < kLaunches; ++c) {
    context_of_thread = 1 + c % 7;
    call(session, c + 1);
  }
  for (uint32_t first = 0; first < kLaunches; first += kOfBuffer) {
    HandmadeBuffer records;
    for (uint32_t c = first; c < first + kOfBuffer; ++c) records.kernel(1000 + 10 * c, 1005 + 10 * c, c + 1, "k");
    deliver(records);
    most = std::max(most, resident_bytes());
  }
  operations = session.take();
  most = std::max(most, resident_bytes());
  ASSERT_EQ(operations.size(), kLaunches);
  EXPECT_TRUE(std::all_of(operations.begin(), operations.end(),
                          [](const GpuOperation& o) { return o.context == 1 + (o.correlation - 1) % 7; }));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(most - before, kMost);
#endif
  session.end();
  EXPECT_EQ(session.stats().lost + session.stats().lost_contexts, 0u);
}

TEST_F(SessionTest, WhatIsBeyondTheBoundIsCounted) {
  GpuCollector::Options options = with_context();
  options.most_bytes = 100000;
  Session& session = begun(std::move(options));
  context_of_thread = 1;
  for (uint32_t c = 1; c <= 5000; ++c) call(session, c);
  HandmadeBuffer records;
  for (uint32_t c = 1; c <= 5000; ++c) records.kernel(c, c + 1, c, "k");
  deliver(records);
  const GpuStats stats = session.stats();
  EXPECT_EQ(stats.operations, 75000 / sizeof(GpuOperation));
  EXPECT_EQ(stats.lost, 5000 - stats.operations);
  EXPECT_GT(stats.lost_contexts, 0u);
  EXPECT_EQ(session.take().size(), stats.operations);
  deliver(HandmadeBuffer().kernel(1, 2, 5000, "k"));
  const auto later = session.take();
  ASSERT_EQ(later.size(), 1u) << "there is room again";
  EXPECT_EQ(later[0].context, 1u) << "the latest calls are kept";
  session.end();
}

TEST_F(SessionTest, NothingIsAskedOnceItHasEnded) {
  int asked = 0;
  Session& session = begun({.context = [&] { return ++asked, uint64_t{1}; }});
  call(session, 1);
  fake.dropped = 3;
  deliver(HandmadeBuffer().kernel(10, 20, 1, "k"));
  session.end();
  call(session, 2);
  deliver(HandmadeBuffer().kernel(10, 20, 2, "k"));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(session.take().size(), 1u) << "what had come is still there";
  EXPECT_EQ(session.stats().dropped, 3u);
  session.end();
}

TEST_F(SessionTest, OperationsComeInOrderAcrossBuffers) {
  Session& session = begun({});
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  const uint64_t now = static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
  const uint64_t hour = uint64_t{3600} * 1000000000;
  deliver(HandmadeBuffer().kernel(now - hour, now - hour + 5, 1, "old").kernel(now + hour, now + hour + 5, 3, "young"));
  ASSERT_EQ(session.take().size(), 1u) << "an operation that began before the young one may still come";
  deliver(HandmadeBuffer().kernel(now + hour - 9, now + hour - 5, 2, "late"));
  EXPECT_TRUE(session.take().empty());
  session.flush(true);
  const auto rest = session.take();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(*rest[0].name, "late");
  session.end();
}

TEST_F(SessionTest, AChildOfAForkHasNone) {
  Session& session = begun(with_context());
  call(session, 1);
  deliver(HandmadeBuffer().kernel(10, 20, 1, "k"));
  const pid_t child = ::fork();
  if (child == 0) {
    call(session, 2);
    session.flush(true);
    const bool empty = session.take().empty() && session.stats().operations == 0;
    session.end();
    ::_exit(empty ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(session.take().size(), 1u);
  session.end();
}

TEST_F(SessionTest, RefusalsSayWhatToDo) {
  const auto said = [&](cupti::Result subscribe, cupti::Result enable) {
    fake = {};
    fake.subscribe = subscribe;
    fake.enable = enable;
    const std::string text = test::error_of([&] { begun({}); }).what();
    EXPECT_FALSE(fake.subscribed);
    return text;
  };
  EXPECT_THAT(said(cupti::kManySubscribers, 0), HasSubstr("\"CUPTI for Kineto\" uses CUPTI"));
  EXPECT_THAT(said(cupti::kManySubscribers, 0), HasSubstr("torch.profiler"));
  EXPECT_THAT(said(cupti::kUnknownError, 0), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(said(0, cupti::kInsufficientPrivileges), HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
  EXPECT_THAT(said(0, 7), HasSubstr("a text"));
}

}  // namespace
}  // namespace heddle::profile
