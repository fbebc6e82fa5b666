// What `explain --kernels` prints and `compile --emit` writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "../driver/models.h"
#include "command.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Two equal layers and a softmax over their sum.
void write_layers(const std::string& path) {
  zoo::GraphBuilder g("layers", 17);
  zoo::Value x = g.input("tokens", DType::kF32, {8, 64});
  for (const char* name : {"first", "second"}) x = g.relu(zoo::linear(g, name, x, 64));
  g.output(g.softmax(x, -1), "probabilities");
  zoo::write_model(g.finish(), 1, int64_t{1} << 30, path);
}

TEST_F(Cli, ExplainPrintsTheTextsOfKernels) {
  write_layers(path("m.onnx"));
  for (const char* target : {"cpu", "cuda"}) {
    const std::string options = std::string(" m.onnx --target ") + target;
    const Outcome all = heddle("explain --kernels" + options);
    EXPECT_EQ(all.exit_code, 0) << all.err;
    for (const char* said : {"kernel 1: ", "f32[8,64], from tokens\n", "constant, from first.weight",
                             "// used       2 times", "of probabilities", "floor ", "namespace tile = heddle::tile;"}) {
      EXPECT_NE(all.out.find(said), std::string::npos) << said << " in\n" << all.out;
    }
    const Outcome one = heddle("explain --kernels=1" + options);
    EXPECT_TRUE(all.out.starts_with(one.out)) << one.out;
    EXPECT_LT(one.out.size(), all.out.size());
    EXPECT_NE(heddle("explain -v" + options).out.find("    kernel 1"), std::string::npos);
    for (const char* bad : {"0", "99", "1x", "-1"}) {
      expect_error(heddle(std::string("explain --kernels=") + bad + options), 2, "numbered from 1");
    }
  }
}

TEST_F(Cli, CompileWritesTheTextsOfKernels) {
  write_layers(path("m.onnx"));
  EXPECT_EQ(heddle("compile m.onnx --emit texts/cpu").exit_code, 0);
  EXPECT_EQ(heddle("compile m.onnx --emit texts/gpu --target cuda").exit_code, 0);
  const std::vector<std::string> cpu = files_of(path("texts/cpu")), gpu = files_of(path("texts/gpu"));
  ASSERT_FALSE(cpu.empty());
  ASSERT_FALSE(gpu.empty());
  for (const std::string& name : cpu) EXPECT_TRUE(name.ends_with(".cc")) << name;
  for (const std::string& name : gpu) EXPECT_TRUE(name.ends_with(".cu")) << name;
  // A file that nobody edited is written again, any other one stays, and so does everything beside it.
  EXPECT_EQ(heddle("compile m.onnx --emit texts/cpu").exit_code, 0);
  const std::string edited = path("texts/cpu/" + cpu.back()), first = path("texts/cpu/" + cpu.front());
  const std::string text(MappedFile::open(edited)->text());
  write_file(edited, text + "// mine\n");
  fs::remove(first);
  expect_error(heddle("compile m.onnx --emit texts/cpu"), 4, cpu.back() + ": it was edited");
  EXPECT_FALSE(file_exists(first));
  EXPECT_EQ(MappedFile::open(edited)->text(), text + "// mine\n");
  // Together with a plan.
  EXPECT_EQ(heddle("compile m.onnx --emit other -o m.plan").exit_code, 0);
  EXPECT_TRUE(file_exists(path("m.plan")));
  expect_error(heddle("compile m.plan --emit other"), 2, "a plan has machine code and no texts");
  expect_error(heddle("compile m.onnx"), 2, "--emit");
}

class EditedKernels : public Cli {
 protected:
  static constexpr const char* kDoubles = "graph g(%x: f32[4,16]) {\n  %1 = add(%x, %x)\n  return \"y\" = %1\n}\n";

  // Writes the texts of a model and edits the kernel that has `from`, which becomes `to`.
  void edit(const std::string& target, const std::string& from, const std::string& to,
            const std::string& model = kDoubles) {
    write_file(path("m.hir"), model);
    EXPECT_EQ(heddle("compile m.hir --emit texts --target " + target).exit_code, 0);
    for (const std::string& name : files_of(path("texts"))) {
      std::string text(MappedFile::open(path("texts/" + name))->text());
      const size_t at = text.find(from);
      if (at == std::string::npos) continue;
      file_ = name;
      return write_file(path("texts/" + name), text.replace(at, from.size(), to));
    }
    FAIL() << from << " is in no text";
  }
  Outcome run(const std::string& more = "") const { return heddle("run m.hir --seed 3 " + more, kEdited); }

  static constexpr const char* kEdited = "HEDDLE_KERNEL_OVERRIDE=texts";
  std::string file_;
};

TEST_F(EditedKernels, RunInPlaceOfGeneratedOnes) {
  edit("cpu", "t0 + t0", "t0 - t0");
  const Outcome generated = heddle("run m.hir --seed 3"), edited = run(), again = heddle("run m.hir --seed 3");
  EXPECT_EQ(edited.exit_code, 0) << edited.err;
  EXPECT_NE(edited.err.find("texts/" + file_ + " is used in place of the generated kernel"), std::string::npos);
  EXPECT_NE(table_of(edited), table_of(generated));
  EXPECT_NE(table_of(edited).find(" 0 "), std::string::npos) << edited.out;
  // Neither cache keeps it for those who did not ask for it, nor the other way round.
  EXPECT_EQ(table_of(again), table_of(generated));
  EXPECT_EQ(table_of(run()), table_of(edited));
  EXPECT_EQ(heddle("verify m.hir", kEdited).exit_code, 1);
  EXPECT_EQ(heddle("verify m.hir").exit_code, 0);
  // What is shown is what Heddle generates.
  EXPECT_NE(heddle("explain m.hir --kernels", kEdited).out.find("t0 + t0"), std::string::npos);
}

// One of two products that store their results where they lie in a concatenation.
TEST_F(EditedKernels, AreTheFirstToDivergeInAConcatenationToo) {
  edit("cpu", "tile::tanh(", "tile::exp(", R"(graph g(%x: f32[8,64]) {
  %a = constant {value = f32[64,64]{0.5}}
  %b = constant {value = f32[64,64]{0.25}}
  %0 = dot(%x, %a) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
  %1 = exp(%0)
  %2 = dot(%x, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
  %3 = tanh(%2)
  %4 = concat(%1, %3) {dim = 0}
  %5 = reduce(%4) {kind = "sum", dims = [1]}
  return "y" = %5, "z" = %4
}
)");
  EXPECT_NE(heddle("explain m.hir -v").out.find("concat takes no kernel"), std::string::npos);
  const Outcome verify = heddle("verify m.hir", kEdited);
  EXPECT_EQ(verify.exit_code, 1) << verify.err;
  EXPECT_NE(verify.out.find("first diverging group: #1 contraction \"gemm 8x64x64 + tanh\"\n"), std::string::npos)
      << verify.out;
}

TEST_F(EditedKernels, WithErrorsAreNamed) {
  edit("cpu", "t0 + t0", "t0 + undeclared");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_NE(outcome.err.find("HDL403 compiler failed: texts/" + file_), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("texts/" + file_ + ":"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("undeclared"), std::string::npos) << outcome.err;
}

TEST_F(EditedKernels, OfOtherModelsAreReported) {
  edit("cpu", "t0 + t0", "t0 - t0");
  fs::rename(path("texts/" + file_), path("texts/stitch_0.cc"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("texts/stitch_0.cc is not used"), std::string::npos) << outcome.err;
}

TEST_F(EditedKernels, ThatNobodyEditedMeanNothing) {
  edit("cpu", "t0 + t0", "t0 + t0");
  EXPECT_EQ(run().err.find("texts/"), std::string::npos);
}

TEST_F(EditedKernels, OfAnotherUserAreRefused) {
  edit("cpu", "t0 + t0", "t0 - t0");
  fs::permissions(path("texts"), fs::perms::group_write, fs::perm_options::add);
  expect_error(run(), 4, "other users may write to it");
  fs::permissions(path("texts"), fs::perms::group_write, fs::perm_options::remove);
  fs::permissions(path("texts/" + file_), fs::perms::others_write, fs::perm_options::add);
  expect_error(run(), 4, "other users may write to it");
  expect_error(heddle("run m.hir", "HEDDLE_KERNEL_OVERRIDE=absent"), 4, "absent");
}

// The names of operators stand in comments of the text: what they say is no code.
TEST_F(Cli, NamesInAModelAreNoCode) {
  write_file(path("m.hir"), R"(graph g(%x: f32[64,768]) {
  %1 = exp(%x) @"n:Exp\n#error injected //"
  %2 = reduce(%1) {kind = "sum", dims = [1]} @"m:Sum\\"
  return "y" = %2
}
)");
  const Outcome run = heddle("run m.hir");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* target : {"cpu", "cuda"}) {
    const std::string text = heddle(std::string("explain m.hir --kernels --target ") + target).out;
    EXPECT_NE(text.find("#error injected"), std::string::npos);
    EXPECT_EQ(text.find("\n#error"), std::string::npos) << text;
    EXPECT_EQ(text.find("\\\n"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace heddle::cli
