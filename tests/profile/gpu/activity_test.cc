#include "profile/gpu/activity.h"

#include <gtest/gtest.h>

#include <random>

#include "records.h"

namespace heddle::profile {
namespace {

using Kind = GpuOperation::Kind;

struct Parsed {
  std::vector<GpuOperation> operations;
  ActivityCounts counts;
};

Parsed parsed(std::span<const uint8_t> bytes, const NextRecord& next) {
  Parsed result;
  parse_activity(bytes, next, result.operations, result.counts);
  return result;
}

Parsed parsed(const HandmadeBuffer& buffer) {
  return parsed(buffer.bytes(), buffer.next());
}

class ActivityTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Layouts, ActivityTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Cupti12" : "Cupti13"; });

TEST_P(ActivityTest, RecordsOfEveryKindAreRead) {
  HandmadeBuffer buffer(GetParam());
  buffer.kernel(100, 250, 5, "_Z3addPf", 0x300000001)
      .copy(1, 1, 3, 4096, 300, 400)
      .peer_copy(64, 410, 420)
      .memset(32, 430, 435)
      .wait(3, 440, 490)
      .memory(1, 1 << 20, 500)
      .memory(2, 1 << 20, 510)
      .overhead(2 << 16, 600, 660)
      .overhead(5 << 16, 700, 900);
  const Parsed p = parsed(buffer);
  ASSERT_EQ(p.operations.size(), 9u);
  const GpuOperation& kernel = p.operations[0];
  EXPECT_EQ(kernel.kind, Kind::kKernel);
  EXPECT_EQ(*kernel.name, "_Z3addPf");
  EXPECT_EQ(kernel.duration(), 150u);
  EXPECT_EQ(kernel.correlation, 5u);
  EXPECT_EQ(kernel.device, 1u);
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.grid, (std::array<uint32_t, 3>{3, 1, 1}));
  EXPECT_EQ(kernel.block, (std::array<uint16_t, 3>{128, 1, 1}));
  EXPECT_EQ(kernel.registers, 40u);
  EXPECT_EQ(kernel.shared_bytes, 2100u);
  EXPECT_EQ(kernel.local_bytes, 16u);
  EXPECT_EQ(kernel.graph_node, 0x300000001u);
  const GpuOperation& copy = p.operations[1];
  EXPECT_EQ(copy.kind, Kind::kCopy);
  EXPECT_EQ(copy.direction, GpuOperation::Direction::kHostToDevice);
  EXPECT_TRUE(copy.pageable);
  EXPECT_EQ(copy.bytes, 4096u);
  EXPECT_EQ(copy.correlation, 55u);
  EXPECT_EQ(copy.graph_node, 0x200000003u);
  EXPECT_EQ(p.operations[2].direction, GpuOperation::Direction::kPeer);
  EXPECT_EQ(p.operations[2].correlation, 56u);
  EXPECT_EQ(p.operations[2].graph_node, 0x200000004u);
  EXPECT_EQ(p.operations[3].kind, Kind::kMemset);
  EXPECT_EQ(p.operations[3].bytes, 32u);
  EXPECT_EQ(p.operations[4].sync, GpuOperation::Sync::kStream);
  EXPECT_EQ(p.operations[4].duration(), 50u);
  EXPECT_EQ(p.operations[5].kind, Kind::kAllocate);
  EXPECT_EQ(p.operations[5].start, 500u);
  EXPECT_EQ(p.operations[6].kind, Kind::kFree);
  EXPECT_EQ(p.counts.overhead_ns, 60u) << "functions that are loaded late cost without CUPTI, too";
  EXPECT_EQ(p.counts.unknown_kinds + p.counts.unknown_times + p.counts.malformed, 0u);
}

TEST_P(ActivityTest, WhatIsUnknownIsCountedAndNotAdded) {
  HandmadeBuffer buffer(GetParam());
  buffer.kernel(0, 0, 1, "a").unknown().kernel(500, 400, 2, "a").kernel(10, 30, 3, nullptr).kernel(0, 30, 4, "a");
  const Parsed p = parsed(buffer);
  ASSERT_EQ(p.operations.size(), 4u);
  uint64_t sum = 0;
  for (const GpuOperation& operation : p.operations) sum += operation.duration();
  EXPECT_EQ(sum, 20u);
  EXPECT_EQ(p.operations[2].name, nullptr);
  EXPECT_EQ(p.counts.unknown_times, 3u);
  EXPECT_EQ(p.counts.unknown_kinds, 1u);
}

TEST_P(ActivityTest, ABufferThatEndsAnywhereGivesItsWholeRecords) {
  HandmadeBuffer buffer(GetParam());
  buffer.kernel(1, 2, 1, "a").memset(3, 4, 5).wait(3, 6, 7).copy(1, 1, 3, 8, 9, 10).memory(1, 11, 12);
  for (size_t length = 0; length <= buffer.bytes().size(); ++length) {
    // A copy of its own, so that a sanitizer sees what reads beyond it.
    const std::vector<uint8_t> part(buffer.bytes().begin(), buffer.bytes().begin() + static_cast<ptrdiff_t>(length));
    const Parsed p = parsed(part, buffer.next());
    size_t whole = 0;
    for (size_t i = 1; i < buffer.starts().size(); ++i) whole += buffer.starts()[i] <= length;
    EXPECT_GE(p.operations.size(), whole);
    EXPECT_LE(p.operations.size(), whole + 1);
    EXPECT_LE(p.counts.malformed, 1u);
  }
}

TEST(Activity, RecordsOutsideOfTheBufferEndTheWalk) {
  HandmadeBuffer buffer;
  buffer.kernel(1, 2, 1, "a").kernel(3, 4, 2, "a");
  const std::vector<uint8_t>& bytes = buffer.bytes();
  for (const ptrdiff_t jump : {ptrdiff_t{-216}, ptrdiff_t{0}, ptrdiff_t{216 * 2}, ptrdiff_t{1} << 40}) {
    const Parsed p = parsed(bytes, [&](std::span<const uint8_t> all, const uint8_t* previous) {
      if (previous == nullptr) return all.data();
      return reinterpret_cast<const uint8_t*>(reinterpret_cast<intptr_t>(previous) + jump);
    });
    EXPECT_EQ(p.operations.size(), 1u) << jump;
    EXPECT_EQ(p.counts.malformed, 1u) << jump;
  }
}

TEST(Activity, AnyBytesAreSurvived) {
  std::mt19937_64 random(7);
  constexpr uint32_t kKinds[] = {1, 2, 17, 22, 38, 49, 1000};  // names of kernels are pointers, which have to be right
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(random() % 400);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    for (size_t at = 0; at + 8 < bytes.size(); at += 8) {
      const uint32_t kind = kKinds[random() % std::size(kKinds)];
      std::memcpy(bytes.data() + at, &kind, sizeof kind);
    }
    const Parsed p = parsed(bytes, [&](std::span<const uint8_t> all, const uint8_t* previous) -> const uint8_t* {
      return previous == nullptr ? (all.empty() ? nullptr : all.data()) : previous + 8 * (1 + random() % 20);
    });
    for (const GpuOperation& operation : p.operations) {
      EXPECT_TRUE(operation.start == 0 ? operation.end == 0 : operation.end >= operation.start);
    }
  }
}

TEST(Activity, NamesAreKeptOnce) {
  const std::string* const once = interned("kernel");
  EXPECT_EQ(once, interned(std::string("kernel")));
  EXPECT_NE(once, interned("kernel2"));
}

}  // namespace
}  // namespace heddle::profile
