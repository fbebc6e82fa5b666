#include "profile/gpu/operation_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "profile/gpu/activity.h"
#include "profile/json.h"
#include "profile/views.h"

namespace heddle::profile {
namespace {

using Kind = GpuOperation::Kind;

GpuOperation kernel(const char* name, uint64_t start, uint64_t end, uint64_t context = 0) {
  GpuOperation operation;
  operation.name = interned(name);
  operation.start = start;
  operation.end = end;
  operation.context = context;
  operation.correlation = 1;
  return operation;
}

// The number of a metric; the test fails where there is none.
size_t metric(const Profile& profile, const std::string& name) {
  const auto& metrics = profile.tree.metrics();
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
  EXPECT_NE(found, metrics.end()) << name;
  return static_cast<size_t>(found - metrics.begin());
}
int64_t total(const Profile& profile, const std::string& name) {
  return profile.tree.total(metric(profile, name));
}
// Own values by path.
std::map<std::string, int64_t> rows(const Profile& profile, const std::string& name) {
  std::map<std::string, int64_t> rows;
  const size_t m = metric(profile, name);
  for (NodeId node = 0; node < profile.tree.size(); ++node) {
    if (profile.tree.own(m)[node] != 0) rows[path_text(profile.tree, node)] = profile.tree.own(m)[node];
  }
  return rows;
}
using Rows = std::map<std::string, int64_t>;

// Contexts 1, 2, ... are the lines of a file.
std::function<NodeId(uint64_t)> lines_of(Profile& profile) {
  return [&profile](uint64_t context) {
    return profile.tree.child(
        0, Frame{"python", "line " + std::to_string(context), "a.py", static_cast<int64_t>(context)});
  };
}

TEST(OperationTree, EachOperationIsBelowTheNodeOfItsContext) {
  Profile profile;
  std::vector<GpuOperation> operations = {kernel("_Z3addPfi", 1000, 1300, 1), kernel("_Z3addPfi", 2000, 2100, 2),
                                          kernel("plain", 3000, 3050, 2), kernel("plain", 0, 0, 2)};
  GpuOperation copy;
  copy.kind = Kind::kCopy;
  copy.direction = GpuOperation::Direction::kHostToDevice;
  copy.pageable = true;
  copy.bytes = 77;
  copy.start = 4000;
  copy.end = 4010;
  copy.context = 3;
  operations.push_back(copy);
  copy.kind = Kind::kMemset;
  operations.push_back(copy);
  copy.kind = Kind::kSync;
  copy.sync = GpuOperation::Sync::kStream;
  operations.push_back(copy);
  copy.sync = GpuOperation::Sync::kStreamWait;
  operations.push_back(copy);
  copy.kind = Kind::kAllocate;
  operations.push_back(copy);
  copy.kind = Kind::kFree;
  operations.push_back(copy);
  add_operations(profile, operations, lines_of(profile));
  EXPECT_EQ(rows(profile, "GKER"),
            (Rows{{"line 1/add(float*, int)", 300}, {"line 2/add(float*, int)", 100}, {"line 2/plain", 50}}));
  EXPECT_EQ(rows(profile, "LAUNCHES"),
            (Rows{{"line 1/add(float*, int)", 1}, {"line 2/add(float*, int)", 1}, {"line 2/plain", 2}}));
  EXPECT_EQ(rows(profile, "GXCOPY:H2D"), (Rows{{"line 3/H2D, pageable", 10}}));
  EXPECT_EQ(rows(profile, "GXCOPY:H2D:B"), (Rows{{"line 3/H2D, pageable", 77}}));
  EXPECT_EQ(rows(profile, "GMSET"), (Rows{{"line 3/memset", 10}}));
  EXPECT_EQ(rows(profile, "GSYNC"), (Rows{{"line 3/wait for a stream", 10}})) << "a stream's wait is not the host's";
  EXPECT_EQ(rows(profile, "GMEM"), (Rows{{"line 3/allocate", 77}}));
  EXPECT_EQ(rows(profile, "GMEM:free"), (Rows{{"line 3/free", 77}}));
  EXPECT_EQ(profile.tree.metrics()[*time_metric(profile.tree)].name, "GBUSY");
  EXPECT_NO_THROW(parse(to_json(profile), "profile"));
}

TEST(OperationTree, AGraphsOperationHasTwoPaths) {
  Profile profile;
  GpuOperation operation = kernel("k", 1000, 1010, 5);
  operation.graph_node = 0x100000002;
  operation.captured_context = 6;
  const std::vector<GpuOperation> operations = {operation, operation};
  add_operations(profile, operations, lines_of(profile));
  EXPECT_EQ(rows(profile, "GKER"), (Rows{{"line 5/captured at/line 6/k", 20}}));
}

TEST(OperationTree, WhatTheTwoPathsOfAGraphHaveInCommonIsThereOnce) {
  Profile profile;
  // 1: main, 2: main/replay, 3: main/model/layer
  const NodeId main = profile.tree.child(0, Frame{"python", "main"});
  const NodeId replay = profile.tree.child(main, Frame{"python", "replay"});
  const NodeId layer = profile.tree.child(profile.tree.child(main, Frame{"python", "model"}), Frame{"python", "layer"});
  const NodeId nodes[] = {0, main, replay, layer};
  std::vector<GpuOperation> operations = {kernel("a", 1000, 1010, 2), kernel("b", 2000, 2010, 2),
                                          kernel("c", 3000, 3010, 2)};
  for (size_t i = 0; i < 3; ++i) {
    operations[i].graph_node = i + 1;
    operations[i].captured_context = 3 - i;
  }
  add_operations(profile, operations, [&](uint64_t context) { return nodes[context]; });
  EXPECT_EQ(rows(profile, "GKER"),
            (Rows{{"main/replay/captured at/model/layer/a", 10}, {"main/replay/b", 10}, {"main/replay/c", 10}}));
}

TEST(OperationTree, EachInstantBelongsToTheKernelThatBeganFirst) {
  Profile profile;
  add_operations(profile,
                 std::vector<GpuOperation>{kernel("a", 100, 200), kernel("b", 120, 150), kernel("c", 180, 300),
                                           kernel("d", 400, 410)},
                 lines_of(profile));
  EXPECT_EQ(rows(profile, "GBUSY"), (Rows{{"a", 100}, {"c", 100}, {"d", 10}}));
  EXPECT_EQ(total(profile, "GKER"), 100 + 30 + 120 + 10);
}

// Instant by instant: the running kernel with the earliest start.
Rows busy_by_instants(const std::vector<GpuOperation>& operations, uint32_t device) {
  Rows rows;
  for (uint64_t t = 1; t < 700; ++t) {
    const GpuOperation* first = nullptr;
    for (const GpuOperation& operation : operations) {
      if (operation.device != device || operation.start > t || operation.end <= t) continue;
      if (first == nullptr || operation.start < first->start) first = &operation;
    }
    if (first != nullptr) ++rows[*first->name];
  }
  return rows;
}

TEST(OperationTree, BusyIsExactOnRandomOverlaps) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<GpuOperation> operations;
    std::vector<uint32_t> starts(500);
    for (uint32_t i = 0; i < starts.size(); ++i) starts[i] = i + 1;
    std::shuffle(starts.begin(), starts.end(), random);  // no two begin at once, which leaves the owner open
    const size_t count = 1 + random() % 40;
    for (size_t i = 0; i < count; ++i) {
      operations.push_back(kernel(("k" + std::to_string(random() % 6)).c_str(), starts[i], starts[i] + random() % 90));
      operations.back().device = random() % 2;
    }
    std::sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    Rows expected = busy_by_instants(operations, 0);
    for (const auto& [name, ns] : busy_by_instants(operations, 1)) expected[name] += ns;
    // The same whether the operations come at once or in pieces.
    Profile whole, pieces;
    add_operations(whole, operations, lines_of(whole));
    OperationTree tree(pieces, lines_of(pieces));
    for (size_t at = 0, next = 0; at < operations.size(); at = next) {
      next = std::min(operations.size(), at + 1 + random() % 7);
      tree.add(std::span(operations).subspan(at, next - at));
    }
    EXPECT_EQ(rows(whole, "GBUSY"), expected);
    EXPECT_EQ(rows(pieces, "GBUSY"), expected);
  }
}

TEST(OperationTree, GapsSayWhatTheDeviceWaitedFor) {
  Profile profile;
  std::vector<GpuOperation> operations = {kernel("a", 10000, 11000, 1), kernel("b", 20000, 21000, 2),
                                          kernel("c", 21500, 22000, 3), kernel("d", 30000, 30500, 4)};
  operations[0].launched = 9000;
  operations[1].launched = 18000;  // after a's end
  operations[2].launched = 18500;
  operations[3].launched = 18600;
  add_operations(profile, operations, lines_of(profile));
  EXPECT_EQ(rows(profile, "GIDLE"),
            (Rows{{"line 2/waits for the host", 9000}, {"line 3/between launches", 500}, {"line 4/other", 8000}}));
  EXPECT_EQ(total(profile, "GBUSY") + total(profile, "GIDLE"), 30500 - 10000);
}

TEST(OperationTree, AnAllocationBeforeALaunchIsWhatTheDeviceWaitedFor) {
  Profile profile;
  GpuOperation allocated;
  allocated.kind = GpuOperation::Kind::kAllocate, allocated.bytes = 64, allocated.context = 5;
  // Before b's launch, and while b runs, which c's launch does not wait for.
  std::vector<GpuOperation> operations = {kernel("a", 10000, 11000, 1), allocated, kernel("b", 20000, 22000, 2),
                                          kernel("c", 30000, 31000, 3)};
  operations[0].launched = 9000;
  operations[1].start = operations[1].end = 12000;
  operations[2].launched = 18000;
  operations[3].launched = 29000;
  add_operations(profile, operations, lines_of(profile));
  EXPECT_EQ(rows(profile, "GIDLE"),
            (Rows{{"line 5/waits for an allocation", 9000}, {"line 3/waits for the host", 8000}}));
}

TEST(OperationTree, TheHostWaitsForCopiesToPageableMemory) {
  Profile profile;
  GpuOperation pageable;
  pageable.kind = GpuOperation::Kind::kCopy, pageable.direction = GpuOperation::Direction::kDeviceToHost;
  pageable.pageable = true, pageable.context = 2;
  pageable.launched = 10500, pageable.start = 19000, pageable.end = 20000;
  GpuOperation locked = pageable;
  locked.pageable = false, locked.start = 29000, locked.end = 30000;
  const std::vector<GpuOperation> operations = {kernel("a", 10000, 19000, 1), pageable, locked};
  add_operations(profile, operations, lines_of(profile));
  EXPECT_EQ(rows(profile, "GSYNC"), (Rows{{"line 2/D2H, pageable", 8500}}));
}

TEST(OperationTree, TheTimelineIsBoundedAndItsSlicesDoNotOverlap) {
  Profile profile;
  std::vector<GpuOperation> operations;
  for (uint64_t i = 0; i < 100; ++i) operations.push_back(kernel("k", 1000 + 10 * i, 1000 + 10 * i + 15));
  OperationTree tree(profile, lines_of(profile), {.slices = 60});
  tree.add(operations);
  EXPECT_EQ(profile.timeline.slices.size(), 60u);
  EXPECT_EQ(tree.slices_left_out(), 40u);
  std::map<uint32_t, int64_t> ends;
  for (const Timeline::Slice& slice : profile.timeline.slices) {
    EXPECT_GE(slice.start, ends[slice.track]);
    ends[slice.track] = slice.start + slice.duration;
  }
  EXPECT_EQ(profile.timeline.tracks.size(), 2u);
}

}  // namespace
}  // namespace heddle::profile
