// Products of bytes whose sums an epilogue rounds to bytes, or turns into floats. All scales are powers of two, so that
// f32 computes exactly what the reference computes. Only tables, which are rounded from better values, are exact with
// any function.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_contraction/testing.h"

namespace heddle::testing {
namespace {

struct Form {
  std::string in = "u8", out = "u8", residual = {};  // residual: the type of a matrix that is added; empty: none
  int64_t m = 19, n = 48, k = 64;
  int zero = 0;
  bool table = false;  // the bytes are dequantised, an error function follows, and its results are rounded to bytes
};

std::string quantised_text(const Form& f) {
  const std::string shape = fmt::format("[{},{}]", f.m, f.n);
  const bool bytes = f.out == "u8" || f.out == "i8";
  std::string text = fmt::format("graph g(%x: {}[{},{}]{}) {{\n", f.in, f.m, f.k,
                                 f.residual.empty() ? "" : fmt::format(", %r: {}{}", f.residual, shape));
  int next = 0;
  const auto add = [&](const std::string& line) {
    text += fmt::format("  %{} = {}\n", next, line);
    return fmt::format("%{}", next++);
  };
  const auto number = [&](double value) {
    const std::string scalar = add(fmt::format("constant {{value = f32[]{{{}}}}}", value));
    return add(fmt::format("broadcast({}) {{shape = {}, dims = []}}", scalar, shape));
  };
  const std::string w = add(fmt::format("constant {{value = i8[{},{}]{{1}}}}", f.n, f.k));
  const std::string columns =
      add(fmt::format("cast({}) {{to = f32}}", add(fmt::format("constant {{value = i8[{}]{{1}}}}", f.n))));
  const std::string sums = add(fmt::format(
      "dot(%x, {}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}} : i32{}", w, shape));
  std::string y = add(fmt::format("mul({}, {})", add(fmt::format("cast({}) {{to = f32}}", sums)), number(1.0 / 256)));
  const std::string column = add(fmt::format("broadcast({}) {{shape = {}, dims = [1]}}", columns, shape));
  y = add(fmt::format("add({}, {})", y, add(fmt::format("mul({}, {})", column, number(0.25)))));
  if (!f.residual.empty()) {
    const std::string r = f.residual == "f32" ? "%r" : add("cast(%r) {to = f32}");
    y = add(fmt::format("add({}, {})", y, add(fmt::format("mul({}, {})", r, number(0.25)))));
  }
  const auto round_to_bytes = [&] {
    y = add(fmt::format("add({}, {})", add(fmt::format("round({})", y)), number(f.zero)));
    if (f.table) return;  // the cast saturates
    y = add(fmt::format("max({}, {})", y, number(f.out == "u8" ? 0 : -128)));
    y = add(fmt::format("min({}, {})", y, number(f.out == "u8" ? 255 : 127)));
  };
  if (bytes) round_to_bytes();
  if (f.out != "f32") y = add(fmt::format("cast({}) {{to = {}}}", y, f.out));
  if (f.table) {
    y = add(fmt::format("sub({}, {})", add(fmt::format("cast({}) {{to = f32}}", y)), number(f.zero)));
    y = add(fmt::format("erf({})", add(fmt::format("mul({}, {})", y, number(1.0 / 64)))));
    y = add(fmt::format("mul({}, {})", y, number(90)));
    round_to_bytes();
    y = add(fmt::format("cast({}) {{to = {}}}", y, f.out));
  }
  return text + fmt::format("  return \"y\" = {}\n}}\n", y);
}

TEST(CudaQuantised, Results) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 11);
  const auto add = [&](const Form& f, const std::string& family, unsigned skip) {
    const double tolerance = f.out == "f16" ? 1e-3 : 1e-5;
    batch.add(fmt::format("{} {} {}x{}x{} {} + {}", family, f.in, f.m, f.n, f.k, f.out, f.residual), quantised_text(f),
              {.tolerance = tolerance, .family = family, .skip = skip});
  };
  const std::vector<std::pair<std::string, std::string>> results = {
      {"u8", ""}, {"u8", "u8"}, {"i8", "i8"}, {"u8", "i8"}, {"u8", "f16"}, {"f16", ""}, {"f16", "f16"}, {"f32", "u8"}};
  for (const auto& [out, residual] : results) {
    add({.out = out, .residual = residual, .m = 19, .n = 272, .k = 64, .zero = out == "u8" ? 131 : -5}, "wgmma", 0);
    for (int i = 0; i < 3; ++i) {
      const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
      Form f{.in = random() % 2 == 0 ? "u8" : "i8", .out = out, .residual = residual};
      f.m = extent(290), f.n = i == 0 ? extent(290) : 16 * (extent(17) + 1);
      f.k = 16 * extent(30);
      f.zero = out == "i8" ? static_cast<int>(random() % 256) - 128 : static_cast<int>(random() % 256);
      add(f, i == 0 ? "" : i == 1 ? "wgmma" : "cluster_splitk", random() % 199);
    }
  }
  for (const char* const out : {"u8", "i8"}) {
    for (const int zero : {0, 100}) {
      add({.out = out, .m = 70, .n = 144, .k = 64, .zero = zero, .table = true}, "wgmma", random() % 199);
      add({.out = out, .residual = out, .m = 21, .n = 50, .k = 48, .zero = zero, .table = true}, "", 0);
    }
  }
  compile_and_run(batch, CudaBatch::Compiled::kKinds);
}

}  // namespace
}  // namespace heddle::testing
