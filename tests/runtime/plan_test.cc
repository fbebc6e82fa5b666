#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>

#include "base/file/file.h"
#include "heddle/error.h"
#include "plans.h"
#include "runtime/cpu_executor.h"
#include "runtime/plan_io.h"

namespace heddle::runtime {
namespace {

std::optional<ErrorCode> code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(PlanFile, RoundTripRunsTheSame) {
  const TempDir dir;
  const std::string path = dir.path() + "/p.plan";
  write_plan(*small_plan(), path);
  EXPECT_TRUE(is_plan_file(path));
  const auto plan = read_plan(path, 2);
  EXPECT_EQ(plan->model, "test");
  EXPECT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(plan->steps[1].label, "step");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plan->constants[0].data()) % kAlignment, 0u);
  const CpuExecutor before(small_plan(), std::make_shared<ThreadPool>(1), nullptr);
  const CpuExecutor after(plan, std::make_shared<ThreadPool>(1), nullptr);
  const Tensor x = floats({8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(values_of(before.run(std::span(&x, 1))[0]), values_of(after.run(std::span(&x, 1))[0]));
  // Equal plans give equal bytes.
  write_plan(*plan, path + "2");
  EXPECT_EQ(MappedFile::open(path)->text(), MappedFile::open(path + "2")->text());
}

TEST(PlanFile, ConstantsThatAreMadeAsTheyAreWritten) {
  const TempDir dir;
  const std::string path = dir.path() + "/p.plan";
  write_plan(*small_plan(), path);
  Plan plan = *small_plan();
  const Tensor content = plan.constants[0];
  const auto place = std::make_shared<char>();
  plan.constants[0] = Tensor::borrow(content.dtype(), content.shape(), place.get(), place);
  const ConstantMakers makers = {
      {place.get(), [&](void* to) { std::memcpy(to, content.data(), content.bytes()); }},
  };
  write_plan(plan, path + "2", Sync::kNo, makers);
  EXPECT_EQ(MappedFile::open(path)->text(), MappedFile::open(path + "2")->text());
  make_constants(plan, makers);
  EXPECT_EQ(values_of(plan.constants[0]), values_of(content));
  const ConstantMakers failing = {{plan.constants[0].data(), [](void*) { throw std::runtime_error("no"); }}};
  EXPECT_THROW(write_plan(plan, path + "3", Sync::kNo, failing), std::runtime_error);
  EXPECT_FALSE(file_exists(path + "3"));
}

TEST(PlanFile, KeepsLoopsTextsAndFixedInputs) {
  const TempDir dir;
  const std::string path = dir.path() + "/p.plan";
  Plan plan = *loop_plan(6);
  plan.fixed.push_back({0, Tensor::of<int64_t>(DType::kI64, {}, {3})});
  plan.texts.push_back({1, "label", Tensor::of_strings({2}, {"one", ""})});
  write_plan(plan, path);
  const auto read = read_plan(path, 1);
  EXPECT_EQ(read->fixed[0].value.values<int64_t>()[0], 3);
  EXPECT_EQ(read->texts[0].value.strings(), (std::vector<std::string>{"one", ""}));
  const auto& loop = std::get<LoopStep>(read->steps[0].action);
  EXPECT_EQ(loop.body->steps.size(), 2u);
  EXPECT_EQ(loop.trip_bound, 6);
}

TEST(PlanFile, EveryChangedBitAndEveryTruncationIsRefused) {
  const TempDir dir;
  const std::string path = dir.path() + "/p.plan";
  write_plan(*loop_plan(6), path);
  const std::string whole(MappedFile::open(path)->text());
  std::mt19937 random(3);
  const auto refused = [&](const std::string& text) {
    write_file(path, text, Sync::kNo);
    return code_of([&] { read_plan(path, 1); }) == ErrorCode::kDamagedArtefact;
  };
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_TRUE(refused(whole.substr(0, size))) << size;
  }
  EXPECT_TRUE(refused(whole + '\0'));
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    const size_t at = i < 64 ? static_cast<size_t>(i) : random() % text.size();
    text[at] = static_cast<char>(text[at] ^ (1 << (random() % 8)));
    // Bytes between the tensors are free; every other one is covered.
    EXPECT_TRUE(refused(text) || whole[at] == '\0') << at;
  }
  EXPECT_FALSE(refused(whole));
}

TEST(PlanFile, OtherFilesAreNoPlans) {
  const TempDir dir;
  write_file(dir.path() + "/x", "HDL but no plan, although it is long enough to hold the header of one, is it not?");
  EXPECT_FALSE(is_plan_file(dir.path() + "/x"));
  EXPECT_FALSE(is_plan_file(dir.path() + "/none"));
  EXPECT_EQ(code_of([&] { read_plan(dir.path() + "/x", 1); }), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(code_of([&] { read_plan(dir.path() + "/none", 1); }), ErrorCode::kFile);
}

TEST(PlanFile, KeysAreCheckedWhereTheyAreAsked) {
  const TempDir dir;
  Plan plan = *small_plan();
  plan.key = hash_text("this model");
  write_plan(plan, dir.path() + "/p.plan");
  const auto file = MappedFile::open(dir.path() + "/p.plan");
  EXPECT_EQ(parse_plan(file->bytes(), file, 1, plan.key)->key, plan.key);
  EXPECT_EQ(parse_plan(file->bytes(), file, 0)->key, plan.key);
  EXPECT_EQ(code_of([&] { parse_plan(file->bytes(), file, 1, hash_text("another")); }), ErrorCode::kDamagedArtefact);
}

// y = kernel(x, y) with a pointer, a tensor map and counters.
Plan cuda_plan() {
  PlanWriter w;
  const uint32_t x = w.input("x", DType::kF32, {8, 8});
  const uint32_t y = w.output("y", DType::kF32, {8, 8});
  CudaLaunch launch;
  launch.symbol = "k";
  launch.grid = {4, 2, 1};
  launch.block = 96;
  launch.shared_bytes = 1024;
  launch.cluster = 2;
  launch.cooperative = true;
  launch.maps = {{TensorMapDesc::Element::kBits32, 0, 0, {8, 8, 1}, {32, 256}, {8, 8}, 32}};
  launch.arguments = {std::vector<uint8_t>(24, 7), {1, 2, 3, 4}};
  launch.pointers = {{0, 16, 1}, {0, 8, 2}};
  w.plan.steps.push_back({CudaStep{{launch}, {x, y}, 64}, "step", "", 0});
  w.plan.cubins = {{"machine code", {"k", "k_reduce"}}, {"more", {}}};
  return w.plan;
}

TEST(PlanFile, KeepsLaunchesAndMachineCodeOfGpus) {
  const TempDir dir;
  const std::string path = dir.path() + "/p.plan";
  const Plan plan = cuda_plan();
  validate(plan);
  write_plan(plan, path);
  const auto read = read_plan(path, 1);
  const auto &a = std::get<CudaStep>(plan.steps[0].action), &b = std::get<CudaStep>(read->steps[0].action);
  EXPECT_EQ(b.launches, a.launches);
  EXPECT_EQ(b.operands, a.operands);
  EXPECT_EQ(b.counter_bytes, 64);
  ASSERT_EQ(read->cubins.size(), 2u);
  EXPECT_EQ(read->cubins[0].bytes, "machine code");
  EXPECT_EQ(read->cubins[0].symbols, (std::vector<std::string>{"k", "k_reduce"}));
}

TEST(PlanValidation, RefusesLaunchesThatReachOutsideTheirOperands) {
  const std::vector<std::function<void(CudaStep&, CudaLaunch&)>> changes = {
      [](CudaStep& s, CudaLaunch&) { s.operands[0] = 99; },
      [](CudaStep& s, CudaLaunch&) { s.counter_bytes = -1; },
      [](CudaStep& s, CudaLaunch&) { s.counter_bytes = int64_t{1} << 40; },
      [](CudaStep& s, CudaLaunch&) { s.counter_bytes = 0; },  // which a pointer names
      [](CudaStep&, CudaLaunch& l) { l.grid[0] = 0; },
      [](CudaStep&, CudaLaunch& l) { l.grid[2] = 65536; },
      [](CudaStep&, CudaLaunch& l) { l.block = 1025; },
      [](CudaStep&, CudaLaunch& l) { l.shared_bytes = ~0u; },
      [](CudaStep&, CudaLaunch& l) { l.cluster = 3; },
      [](CudaStep&, CudaLaunch& l) { l.cluster = 0; },
      [](CudaStep&, CudaLaunch& l) { l.arguments[1].resize(40000); },
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].argument = 2; },
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].argument = 1; },  // of 4 bytes
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].offset = 17; },
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].offset = -8; },
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].operand = 3; },
      [](CudaStep&, CudaLaunch& l) { l.pointers[0].operand = -1; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].operand = 2; },  // counters
      [](CudaStep&, CudaLaunch& l) { l.maps[0].element = static_cast<TensorMapDesc::Element>(9); },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].swizzle_bytes = 0; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].offset = 8; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].offset = 16; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].extents[0] = 9; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].extents[1] = 0; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].extents[1] = ~uint64_t{0}; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].extents[2] = 2; },
      [](CudaStep&, CudaLaunch& l) { l.maps[0].strides[0] = uint64_t{1} << 63; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Plan plan = cuda_plan();
    auto& step = std::get<CudaStep>(plan.steps[0].action);
    changes[i](step, step.launches[0]);
    EXPECT_EQ(code_of([&] { validate(plan); }), ErrorCode::kDamagedArtefact) << "change " << i;
  }
}

// What a file with good checksums could still say, changed field by field.
TEST(PlanValidation, RefusesWhatWouldTouchMemoryOutsideItsBuffers) {
  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan& p) { p.buffers[2].offset = 64; },
      [](Plan& p) { p.buffers[2].offset = -64; },
      [](Plan& p) { p.buffers[2].offset = 1; },
      [](Plan& p) { p.buffers[2].bytes = 1 << 20; },
      [](Plan& p) {
        p.buffers[2].shape = {int64_t{1} << 62, 64};
      },
      [](Plan& p) { p.buffers[2].shape = {-8}; },
      [](Plan& p) { p.buffers[2].dtype = static_cast<DType>(99); },
      [](Plan& p) { p.buffers[2].place = static_cast<Place>(9); },
      [](Plan& p) { p.buffers[1].index = 7; },
      [](Plan& p) { p.buffers[0].index = 1; },
      [](Plan& p) { p.buffers[3].index = 5; },
      [](Plan& p) { p.arena_bytes = 8; },
      [](Plan& p) { p.arena_bytes = -1; },
      [](Plan& p) { p.arena_bytes = INT64_MAX; },
      [](Plan& p) { p.outputs[0].buffer = 99; },
      [](Plan& p) { p.inputs[0].shape = {kSize + 1}; },
      [](Plan& p) { p.constants[0] = floats({1}); },
      [](Plan& p) {
        p.fixed.push_back({4, floats({1})});
      },
      [](Plan& p) { std::get<KernelStep>(p.steps[0].action).operands[0] = 99; },
      [](Plan& p) { std::get<KernelStep>(p.steps[0].action).tasks = -1; },
      [](Plan& p) { std::get<KernelStep>(p.steps[0].action).scratch_bytes = -1; },
      [](Plan& p) {
        p.steps[0].action = CopyStep{0, 1};
      },
      [](Plan& p) { p.steps[0].action = LoopStep{}; },
      [](Plan& p) {
        p.steps[0].action = ReferenceStep{"", {0}, {0}};
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Plan plan = *small_plan();
    changes[i](plan);
    EXPECT_EQ(code_of([&] { validate(plan); }), ErrorCode::kDamagedArtefact) << "change " << i;
  }
  const std::vector<std::function<void(LoopStep&)>> loop_changes = {
      [](LoopStep& l) { l.workspace = 0; },
      [](LoopStep& l) { l.states.clear(); },
      [](LoopStep& l) { l.trip_bound = 7; },
      [](LoopStep& l) { l.trip_bound = -1; },
      [](LoopStep& l) { l.final_states[0] = 99; },
      [](LoopStep& l) { l.stacked[0] = l.final_states[0]; },
      [](LoopStep& l) { l.trip = l.condition; },
      [](LoopStep& l) { l.body = nullptr; },
      // Its workspace would have a size that is no number.
      [](LoopStep& l) {
        Plan body = *l.body;
        body.arena_bytes = INT64_MAX;
        l.body = std::make_shared<const Plan>(body);
      },
      [](LoopStep& l) {
        Plan body = *l.body;
        body.buffers[4] = {Place::kArena, 0, 0, DType::kF32, {}, 4, ""};
        body.arena_bytes = 64;
        l.body = std::make_shared<const Plan>(body);
      },
  };
  for (size_t i = 0; i < loop_changes.size(); ++i) {
    Plan plan = *loop_plan(6);
    loop_changes[i](std::get<LoopStep>(plan.steps[0].action));
    EXPECT_EQ(code_of([&] { validate(plan); }), ErrorCode::kDamagedArtefact) << "loop change " << i;
  }
}

TEST(Arena, BuffersThatLiveAtOnceDoNotOverlapAndSpaceIsReused) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 40; ++i) {
      const int64_t first = random() % 30;
      lifetimes.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<int64_t>(random() % 6)});
    }
    const ArenaLayout layout = plan_arena(lifetimes);
    std::vector<int64_t> live(40, 0);
    int64_t total = 0;
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      const int64_t end = layout.offsets[i] + lifetimes[i].bytes;
      EXPECT_EQ(layout.offsets[i] % kAlignment, 0);
      EXPECT_LE(end, layout.bytes);
      total += aligned(lifetimes[i].bytes);
      for (int64_t t = lifetimes[i].first; t <= lifetimes[i].last; ++t) {
        live[static_cast<size_t>(t)] += aligned(lifetimes[i].bytes);
      }
      for (size_t j = 0; j < i; ++j) {
        const bool together = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
        const bool overlap = layout.offsets[i] < layout.offsets[j] + lifetimes[j].bytes && layout.offsets[j] < end;
        EXPECT_FALSE(together && overlap && lifetimes[i].bytes > 0 && lifetimes[j].bytes > 0);
      }
    }
    const int64_t least = *std::max_element(live.begin(), live.end());
    EXPECT_GE(layout.bytes, least);
    EXPECT_LE(static_cast<double>(layout.bytes), 1.35 * static_cast<double>(least));
    EXPECT_LT(layout.bytes, total);
  }
  EXPECT_EQ(plan_arena({}).bytes, 0);
}

TEST(Arena, ManyBuffersTakeTimeInProportion) {
  // A chain, and buffers that all live at once: comparing each with each would take minutes.
  constexpr int64_t kCount = 200'000;
  std::vector<Lifetime> chain, together;
  for (int64_t i = 0; i < kCount; ++i) {
    chain.push_back({64, i, i + 1});
    together.push_back({64 * (1 + i % 7), i, kCount});
  }
  EXPECT_EQ(plan_arena(chain).bytes, 128);
  const ArenaLayout layout = plan_arena(together);
  std::vector<std::pair<int64_t, int64_t>> places;
  for (size_t i = 0; i < together.size(); ++i) places.emplace_back(layout.offsets[i], together[i].bytes);
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i].first, places[i - 1].first + places[i - 1].second);
}

}  // namespace
}  // namespace heddle::runtime
