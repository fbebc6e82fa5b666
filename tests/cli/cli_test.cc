#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "../driver/models.h"
#include "base/file/file.h"
#include "cli/npy.h"
#include "command.h"
#include "heddle/error.h"
#include "tests/error_of.h"

namespace heddle::cli {
namespace {

using test::error_of;

TEST_F(Cli, RunWritesOutputsAndPrintsATable) {
  test::write_mlp(path("m.onnx"));
  Tensor x(DType::kF32, {2, 8});
  write_npy(path("x.npy"), x);
  const Outcome run = heddle("run m.onnx --input x=x.npy --output-dir out.d --threads 2");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("probabilities"), std::string::npos);
  EXPECT_EQ(run.err, "");
  const Tensor y = read_npy(path("out.d/probabilities.npy"));
  EXPECT_EQ(y.shape(), (Shape{2, 4}));
  const Outcome json = heddle("run m.onnx --input x=x.npy --json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["outputs"][0]["shape"], (std::vector<int>{2, 4}));
  const Outcome a = heddle("run m.onnx --seed 1"), b = heddle("run m.onnx --seed 1"), c = heddle("run m.onnx --seed 2");
  EXPECT_EQ(table_of(a), table_of(b));
  EXPECT_NE(table_of(a), table_of(c));
  EXPECT_NE(a.out.find("ran once in "), std::string::npos) << a.out;
}

TEST_F(Cli, DoctorTestsEveryKindOfKernelAndSaysWhatIsMissing) {
  const std::string none = "HEDDLE_CUDA_DRIVER=/nonexistent HEDDLE_HIP_DRIVER=/nonexistent";
  const Outcome doctor = heddle("doctor -o report.json", none);
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out << doctor.err;
  EXPECT_NE(doctor.out.find("missing: "), std::string::npos) << doctor.out;
  const auto report = nlohmann::json::parse(MappedFile::read(path("report.json"))->text());
  EXPECT_EQ(report["failed"], 0);
  EXPECT_GE(report["tests"]["cpu"].size(), 15U);
  for (const auto& found : report["requirements"]) {
    EXPECT_NE(found["found"] == "", found["missing"] == "") << found;
    if (found["what"] == "GPU") EXPECT_NE(found["missing"], "") << found;
  }
  expect_error(heddle("doctor --target hip:0", none), 4, "hip:0");
}

TEST_F(Cli, TuneMeasuresAndLaterCommandsUseIt) {
  test::write_mlp(path("m.onnx"), 40);
  const Outcome tune = heddle("tune m.onnx --threads 1 --seconds 3 --candidates 2");
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_NE(tune.out.find("model's pick"), std::string::npos) << tune.out;
  EXPECT_NE(tune.err.find("1 of 2: gemm"), std::string::npos) << tune.err;  // no terminal: a line each
  const auto json = nlohmann::json::parse(heddle("tune m.onnx --threads 1 --json").out);
  EXPECT_EQ(json["problems"][0]["state"], "known");
  EXPECT_EQ(json["failed"], 0);
  EXPECT_NE(heddle("explain m.onnx --threads 1 -v").out.find("tuned: "), std::string::npos);
  EXPECT_EQ(heddle("explain m.onnx --threads 1 -v --untuned").out.find("tuned: "), std::string::npos);
  EXPECT_GE(nlohmann::json::parse(heddle("cache info --json").out)["tuned"]["records"], 1);
  EXPECT_NE(heddle("cache clear").out.find("tuned problems"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(heddle("cache info --json").out)["tuned"]["records"], 0);
  expect_error(heddle("tune m.onnx --seconds 0"), 2, "--seconds");
  const Outcome former = heddle("tune m.onnx --threads 1 --budget 3");
  EXPECT_EQ(former.exit_code, 0);
  EXPECT_NE(former.err.find("--budget is --seconds now"), std::string::npos) << former.err;
  EXPECT_EQ(heddle("tune --help").out.find("--budget"), std::string::npos);
  EXPECT_EQ(heddle("compile m.onnx -o m.plan").exit_code, 0);
  expect_error(heddle("tune m.plan"), 2, "a plan no longer knows");
}

TEST_F(Cli, CompileVerifyExplainBench) {
  test::write_mlp(path("m.onnx"));
  EXPECT_EQ(heddle("compile m.onnx -o m.plan").exit_code, 0);
  const Outcome plan = heddle("run m.plan", "PATH=/nonexistent");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(table_of(plan), table_of(heddle("run m.onnx")));

  const Outcome verify = heddle("verify m.onnx --json");
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_EQ(nlohmann::json::parse(verify.out)["ok"], true);

  // The clock would be measured anew by each process, and predictions with it.
  const std::string devices = "HEDDLE_DEVICES=" + path("devices");
  EXPECT_EQ(heddle("devices --calibrate --target cpu", devices).exit_code, 0);
  const Outcome explain = heddle("explain m.onnx --svg m.svg", devices);
  EXPECT_EQ(explain.exit_code, 0) << explain.err;
  EXPECT_LE(std::count(explain.out.begin(), explain.out.end(), '\n'), 11) << explain.out;  // ten lines and the picture
  for (const char* said : {"fused ", "time ", "held back by ", "memory ", "try "}) {
    EXPECT_NE(explain.out.find(said), std::string::npos) << said;
  }
  const Outcome details = heddle("explain m.onnx -v", devices);
  EXPECT_TRUE(details.out.starts_with(explain.out.substr(0, explain.out.find("picture")))) << details.out;
  EXPECT_NE(details.out.find("Groups"), std::string::npos);
  EXPECT_TRUE(MappedFile::open(path("m.svg"))->text().starts_with("<svg"));
  EXPECT_FALSE(nlohmann::json::parse(heddle("explain m.onnx --json").out)["groups"].empty());

  const auto bench = nlohmann::json::parse(heddle("bench m.onnx --seconds 0.05 --json --no-cache").out);
  for (const char* key : {"p50_ms", "p10_ms", "p90_ms", "compile_s", "cached_s", "peak_bytes", "floor_ms"}) {
    EXPECT_TRUE(bench.contains(key)) << key;
  }
  EXPECT_LT(bench["cached_s"].get<double>(), 0.5);
}

// Compiling is most of what a user waits for: what one command compiled the next ones take.
TEST_F(Cli, CommandsShareWhatOneCompiled) {
  test::write_mlp(path("m.onnx"));
  write_file(path("cxx"),
             "#!/bin/sh\ncase \"$*\" in *-c*) echo \"$*\" >> " + path("calls") + ";; esac\nexec c++ \"$@\"\n");
  ASSERT_EQ(::chmod(path("cxx").c_str(), 0755), 0);
  const std::string compiler = "HEDDLE_CXX=" + path("cxx");
  write_file(path("calls"), "");
  EXPECT_EQ(heddle("run m.onnx --threads 1", compiler).exit_code, 0);
  EXPECT_NE(MappedFile::read(path("calls"))->text(), "");
  write_file(path("calls"), "");
  for (const char* command : {"profile m.onnx --seconds 0.01", "bench m.onnx --seconds 0.01", "verify m.onnx",
                              "explain m.onnx --measure", "compile m.onnx -o m.plan"}) {
    const Outcome outcome = heddle(std::string(command) + " --threads 1", compiler);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(MappedFile::read(path("calls"))->text(), "") << command;
  }
}

// Who writes into one plan, or damages it, touches no other and nothing in the cache.
TEST_F(Cli, APlanThatCompileWritesIsAFileOfItsOwn) {
  test::write_mlp(path("a.onnx"), 2, 1);
  test::write_mlp(path("b.onnx"), 2, 99);
  EXPECT_EQ(heddle("compile a.onnx -o a.plan").exit_code, 0);
  EXPECT_EQ(heddle("compile a.onnx -o a2.plan").exit_code, 0);
  EXPECT_EQ(heddle("compile b.onnx -o b.plan").exit_code, 0);
  const std::string a = table_of(heddle("run a.onnx")), b = table_of(heddle("run b.onnx"));
  ASSERT_NE(a, b);
  ASSERT_EQ(std::system(("cp " + path("b.plan") + " " + path("a.plan")).c_str()), 0);
  EXPECT_EQ(table_of(heddle("run a.onnx")), a);
  EXPECT_EQ(table_of(heddle("run a2.plan")), a);
  EXPECT_EQ(table_of(heddle("run a.plan")), b);
  ASSERT_EQ(::truncate(path("a.plan").c_str(), 100), 0);
  expect_error(heddle("run a.plan"), 4, "HDL405");
  EXPECT_EQ(heddle("run b.plan").exit_code, 0);
}

TEST_F(Cli, UsageErrorsExitWithTwo) {
  for (const char* arguments :
       {"", "frobnicate", "run", "run m.onnx --precision", "cache forget", "zoo resnet18 --batch x"}) {
    const Outcome outcome = heddle(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_TRUE(outcome.err.starts_with("heddle: error: ")) << outcome.err;
  }
  EXPECT_EQ(heddle("--help").exit_code, 0);
  EXPECT_NE(heddle("--version").out.find("heddle "), std::string::npos);
}

TEST_F(Cli, BadInputExitsWithTwoAndNamesIt) {
  test::write_mlp(path("m.onnx"));
  write_file(path("text.onnx"), "this is no model, as anybody can see");
  write_file(path("empty.onnx"), "");
  write_npy(path("short.npy"), Tensor(DType::kF32, {2, 7}));
  write_npy(path("ints.npy"), Tensor(DType::kI32, {2, 8}));
  write_file(path("no.npy"), "not numpy");
  expect_error(heddle("run text.onnx"), 2, "text.onnx");
  expect_error(heddle("run empty.onnx"), 2, "empty.onnx");
  expect_error(heddle("run m.onnx --input x=short.npy"), 2, "x");
  expect_error(heddle("run m.onnx --input x=ints.npy"), 2, "i32");
  expect_error(heddle("run m.onnx --input x=no.npy"), 2, "no.npy");
  expect_error(heddle("run m.onnx --input y=short.npy"), 2, "y");
  expect_error(heddle("run m.onnx --input x"), 2, "--input");
  expect_error(heddle("run m.onnx --shape x=1,two"), 2, "x=1,two");
  expect_error(heddle("run m.onnx --shape x=1,"), 2, "x=1,");
  expect_error(heddle("run m.onnx --precision f12"), 2, "f12");
  expect_error(heddle("zoo no-such-model"), 2, "no-such-model");
  write_file(path("bad.hir"), "graph {");
  expect_error(heddle("opt bad.hir --passes fold"), 2, "HDL104");
}

TEST_F(Cli, TheMachineExitsWithFour) {
  test::write_mlp(path("m.onnx"));
  expect_error(heddle("run none.onnx"), 4, "none.onnx");
  expect_error(heddle("run m.onnx", "PATH=/nonexistent"), 4, "g++");
  expect_error(heddle("run m.onnx", "HEDDLE_CXX=/bin/false"), 4, "HDL403");
  expect_error(heddle("run m.onnx --target cuda"), 4, "cuda");
  test::write_huge(path("huge.onnx"));
  expect_error(heddle("run huge.onnx"), 4, "HDL404");
  EXPECT_EQ(heddle("compile m.onnx -o m.plan").exit_code, 0);
  std::string plan(MappedFile::open(path("m.plan"))->text());
  plan[plan.size() / 2] = static_cast<char>(plan[plan.size() / 2] ^ 1);
  plan[100] = static_cast<char>(plan[100] ^ 1);
  write_file(path("m.plan"), plan);
  expect_error(heddle("run m.plan"), 4, "HDL405");
}

TEST_F(Cli, DevicesAreCalibrated) {
  const std::string folder = "HEDDLE_DEVICES=" + path("devices");
  const auto measured = nlohmann::json::parse(heddle("devices --calibrate --target cpu --json", folder).out);
  const nlohmann::json& cpu = measured.at("calibrated").at(0);
  EXPECT_GT(cpu.at("rates").at("copy_gbps"), 0);
  // What a user writes there is what is read: twice the clock is twice the peak.
  const auto peak = [&] {
    return nlohmann::json::parse(heddle("devices --json", folder).out)["devices"][0]["peak_gflops_per_core"]
        .get<double>();
  };
  const double before = peak();
  const std::string file = cpu.at("file");
  auto json = nlohmann::json::parse(MappedFile::read(file)->text());
  json["rates"]["ghz"] = 2 * cpu.at("rates").at("ghz").get<double>();
  write_file(file, json.dump());
  EXPECT_NEAR(peak(), 2 * before, 1e-6 * before);
  expect_error(heddle("devices --calibrate --target cuda:77", folder), 4, "cuda:77");
}

TEST_F(Cli, ToolsWithoutAModel) {
  EXPECT_NE(heddle("devices").out.find("cpu"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(heddle("devices --json").out).contains("devices"));
  EXPECT_NE(heddle("zoo").out.find("bert-base"), std::string::npos);
  EXPECT_NE(heddle("opt --list").out.find("fold"), std::string::npos);
  test::write_mlp(path("m.onnx"));
  heddle("run m.onnx");
  EXPECT_GT(nlohmann::json::parse(heddle("cache info --json").out)["entries"], 0);
  EXPECT_EQ(heddle("cache clear").exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(heddle("cache info --json").out)["entries"], 0);
  write_file(path("a.hir"),
             "graph g(%x: f32[4]) {\n  %0 = neg(%x) {} : f32[4]\n  %1 = neg(%x) {} : f32[4]\n"
             "  %2 = add(%0, %1) {} : f32[4]\n  return \"y\" = %2\n}\n");
  const Outcome opt = heddle("opt a.hir --passes cse");
  EXPECT_EQ(opt.exit_code, 0) << opt.err;
  EXPECT_EQ(opt.out.find("neg"), opt.out.rfind("neg")) << opt.out;
}

TEST_F(Cli, NpyRoundTripsEveryType) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16,
                      DType::kI8, DType::kU64, DType::kU32, DType::kU16, DType::kU8, DType::kBool, DType::kF8E4M3}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 3, 1}}) {
      Tensor tensor(dtype, shape);
      auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
      for (size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = static_cast<uint8_t>(i % 2);
      write_npy(path("t.npy"), tensor);
      const Tensor back = as_dtype(read_npy(path("t.npy")), dtype);
      EXPECT_EQ(back.dtype(), dtype) << to_string(dtype);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(std::memcmp(back.data(), tensor.data(), tensor.bytes()), 0);
    }
  }
}

TEST_F(Cli, NpyRefusesWhatItIsNot) {
  write_npy(path("t.npy"), Tensor(DType::kF32, {2, 3}));
  const std::string whole(MappedFile::open(path("t.npy"))->text());
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(path("u.npy"), whole.substr(0, size), Sync::kNo);
    EXPECT_EQ(error_of([&] { read_npy(path("u.npy")); }).code(), ErrorCode::kInvalidInput) << size;
  }
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    write_file(path("u.npy"), text, Sync::kNo);
    return error_of([&] { read_npy(path("u.npy")); });
  };
  EXPECT_NE(replaced("False", "True ").why().find("Fortran"), std::string::npos);
  EXPECT_NE(replaced("<f4", ">f4").why().find(">f4"), std::string::npos);
  EXPECT_NE(replaced("<f4", "|O8").why().find("|O8"), std::string::npos);
  EXPECT_EQ(replaced("(2,3,)", "(2,4,)").code(), ErrorCode::kInvalidInput);
  EXPECT_EQ(replaced("(2,3,)", "(-2,3)").code(), ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace heddle::cli
