#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "base/file/file.h"
#include "heddle/error.h"
#include "tests/fuzz/attack/campaign.h"
#include "tests/fuzz/hostile/mend.h"
#include "tests/fuzz/hostile/onnx_edits.h"
#include "tests/fuzz/hostile/plan_editor.h"
#include "tests/fuzz/hostile/text_mutator.h"

namespace heddle::fuzz {
namespace {

// What a case does is decided by its seed; its file holds the seed and lines that do not matter.
class Script : public Attack {
 public:
  void make(uint64_t seed, const std::string& folder) override {
    write_bytes(folder + "/case", "a\nb\nseed " + std::to_string(seed) + "\nc\nd\n");
  }
  std::string run(uint64_t seed, const std::string& folder) override {
    if (read_bytes(folder + "/case").find("seed") == std::string::npos) return "without its seed";
    switch (seed) {
      case 2:
        raise(SIGSEGV);
        return "";
      case 3:
        throw Error(ErrorCode::kInternal, "here", "a bug");
      case 4:
        throw std::runtime_error("no Error");
      case 5:
        throw Error(ErrorCode::kInvalidNode, "there", "a rule");
      case 6:
        for (;;) {
        }
      case 7:
        std::printf("hello\n");
        return "ok";
      case 8:
        _exit(0);
      default:
        return "ok";
    }
  }
  std::string main_file() const override { return "case"; }
  size_t parts(const std::string& text) const override {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string without(const std::string& text, size_t begin, size_t end) const override {
    std::string kept;
    size_t line = 0;
    for (const char c : text) {
      if (line < begin || line >= end) kept += c;
      line += c == '\n' ? 1 : 0;
    }
    return kept;
  }
};

std::string kind_of_seed(const Progress& progress, uint64_t seed) {
  for (const Failure& failure : progress.failures) {
    if (failure.seed == seed) return failure.kind;
  }
  return "";
}

TEST(Campaign, TellsCrashesHangsAndBugsFromErrors) {
  const TempDir saved("heddle-fuzz-test");
  Script script;
  testing::internal::CaptureStdout();
  CampaignOptions options;
  options.attack = "script";
  options.count = 12;
  options.batch = 5;
  options.jobs = 2;
  options.timeout = 1;
  options.save = saved.path();
  const Progress progress = run_campaign(script, options);
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_EQ(progress.cases(), 12u);
  EXPECT_EQ(progress.outcomes, (std::map<std::string, uint64_t>{{"ok", 5}, {"HDL103", 1}}));
  EXPECT_EQ(progress.failures.size(), 6u);
  EXPECT_EQ(kind_of_seed(progress, 2).substr(0, 15), "crash: signal #");
  EXPECT_EQ(kind_of_seed(progress, 3).substr(0, 15), "internal error:");
  EXPECT_EQ(kind_of_seed(progress, 4).substr(0, 18), "foreign exception:");
  EXPECT_EQ(kind_of_seed(progress, 6), "hang: # s");
  EXPECT_EQ(kind_of_seed(progress, 7), "output on stdout");
  EXPECT_EQ(kind_of_seed(progress, 8), "crash: exit code #");
  EXPECT_NE(printed.find("script --seed 3 --case"), std::string::npos) << printed;
  // Made small.
  EXPECT_EQ(read_bytes(saved.path() + "/script-3/case"), "seed 3\n");
}

TEST(Campaign, GoesOnWhereItStopped) {
  const TempDir folder("heddle-fuzz-test");
  const auto options = [&](uint64_t count, const char* build) {
    CampaignOptions options;
    options.attack = "script";
    options.seed = 9;
    options.count = count;
    options.batch = 2;
    options.state = folder.path() + "/state.json";
    options.build = build;
    return options;
  };
  Script script;
  run_campaign(script, options(5, "one"));
  Progress stopped = read_progress(folder.path() + "/state.json");
  EXPECT_EQ(stopped.next, 14u);
  EXPECT_TRUE(stopped.unfinished.empty());
  // As a process leaves it that is killed while it works on the seeds 10 to 12.
  stopped.outcomes["ok"] -= 3;
  stopped.unfinished = {{10, 13}};
  write_progress(stopped, options(5, "one"));
  const Progress whole = run_campaign(script, options(8, "two"));
  EXPECT_EQ(whole.cases(), 8u);
  EXPECT_EQ(whole.next, 17u);
  EXPECT_EQ(whole.builds.at("two"), 6u);
}

std::string small_model() {
  const auto tensor_type = [](uint64_t number, const std::string& name) {
    WireMessage shape = {message_field(field::kShapeDim, {int_field(field::kDimValue, 3)})};
    WireMessage tensor = {int_field(field::kElemType, 1), message_field(field::kElemShape, std::move(shape))};
    WireMessage type = {message_field(field::kTypeTensor, std::move(tensor))};
    return message_field(number,
                         {text_field(field::kValueName, name), message_field(field::kValueType, std::move(type))});
  };
  WireMessage node = {text_field(field::kNodeInput, "x"), text_field(field::kNodeInput, "w"),
                      text_field(field::kNodeOutput, "y"), text_field(field::kNodeOp, "Add")};
  WireMessage weight = {int_field(field::kTensorDim, 3), int_field(field::kTensorType, 1),
                        text_field(field::kTensorName, "w"), text_field(field::kTensorRaw, std::string(12, '\0'))};
  WireMessage graph = {message_field(field::kGraphNode, std::move(node)),
                       message_field(field::kGraphInitializer, std::move(weight)), tensor_type(field::kGraphInput, "x"),
                       tensor_type(field::kGraphOutput, "y")};
  WireMessage opset = {int_field(field::kOpsetVersion, 17)};
  std::string bytes;
  encode_wire(
      {message_field(field::kModelOpset, std::move(opset)), message_field(field::kModelGraph, std::move(graph))},
      bytes);
  return bytes;
}

TEST(OnnxEdits, KeepToTheSchemaAndToTheSeed) {
  const std::string bytes = small_model();
  auto original = parse_onnx(bytes);
  ASSERT_TRUE(original);
  std::string again;
  encode_wire(*original, again);
  EXPECT_EQ(again, bytes);
  OnnxPool pool;
  pool.add(*original);
  std::set<std::string> mutants;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::string results[2];
    for (std::string& result : results) {
      Rng rng(seed);
      WireMessage model = *original, donor = *original;
      for (int serial = 0; serial < 3; ++serial) edit_onnx(model, donor, pool, rng, serial);
      encode_wire(model, result);
      EXPECT_TRUE(parse_onnx(result));
    }
    EXPECT_EQ(results[0], results[1]);
    mutants.insert(results[0]);
  }
  EXPECT_GT(mutants.size(), 400u);
}

TEST(TextMutator, IsSeededAndMostlyChangesSomething) {
  const std::string text = "graph(%x: f32[2,3]) {\n  %0 = neg(%x) : f32[2,3]\n  return \"y\" = %0\n}\n";
  int changed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng a(seed), b(seed);
    const std::string mutant = mutate_text(text, text, a);
    EXPECT_EQ(mutant, mutate_text(text, text, b));
    changed += mutant != text;
  }
  EXPECT_GT(changed, 250);
}

}  // namespace
}  // namespace heddle::fuzz
