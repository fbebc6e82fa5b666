#include "driver/verify/self_test.h"

#include <fmt/format.h>

#include <exception>
#include <string_view>

#include "base/clock.h"
#include "base/file/file.h"
#include "driver/verify/verify.h"

namespace heddle::driver {
namespace {

struct TestedKind {
  std::string name, graph;
};

std::string product(std::string_view in, std::string_view out) {
  return fmt::format(
      "graph f(%x: {0}[70,136], %w: {0}[136,72]) {{\n"
      "  %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {1}[70,72]\n"
      "  return \"y\" = %0\n}}\n",
      in, out);
}

std::string two_products() {
  return R"(graph f(%x: f16[300,64], %v: f16[64,64], %w: f16[64,48]) {
  %0 = dot(%x, %v) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
  %1 = tanh(%0)
  %2 = dot(%1, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
  return "y" = %2
}
)";
}

std::string attention(std::string_view type) {
  return fmt::format(R"(graph f(%q: {0}[8,140,64], %k: {0}[8,170,64], %v: {0}[8,170,64]) {{
  %0 = dot(%q, %k) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}}
  %1 = reduce(%0) {{kind = "max", dims = [2]}}
  %2 = broadcast(%1) {{shape = [8, 140, 170], dims = [0, 1]}}
  %3 = sub(%0, %2)
  %4 = exp(%3)
  %5 = reduce(%4) {{kind = "sum", dims = [2]}}
  %6 = broadcast(%5) {{shape = [8, 140, 170], dims = [0, 1]}}
  %7 = div(%4, %6)
  %8 = dot(%7, %v) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}}
  return "y" = %8
}}
)",
                     type);
}

std::string convolution(int64_t channels, int64_t groups) {
  return fmt::format(
      "graph f(%x: f16[2,14,15,{0}], %w: f16[{0},{1},3,3]) {{\n"
      "  %0 = conv(%x, %w) {{strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1], "
      "groups = {2}, layout = \"nhwc\"}}\n  return \"y\" = %0\n}}\n",
      channels, channels / groups, groups);
}

// A recurrence: each step multiplies the state by a matrix.
std::string recurrence() {
  return R"(graph f(%x: f16[4,64], %all: f16[7,4,64]) {
  %many = constant {value = i64[]{7}}
  %true = constant {value = bool[]{1}}
  %w = constant {value = f16[64,64]{0.0625}}
  %s, %y = loop(%many, %true, %x, %all, %w) {states = 1, scans = 1, trip = 7, body = graph(%i: i64[], %c: bool[], %a: f16[4,64], %all: f16[7,4,64], %w: f16[64,64]) {
    %one = gather(%all, %i) {dim = 0}
    %p = dot(%a, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
    %t = add(%p, %one)
    %next = tanh(%t)
    return "c" = %c, "a" = %next, "y" = %next
  }}
  return "s" = %s, "y" = %y
}
)";
}

std::vector<TestedKind> all_kinds() {
  return {
      {"elementwise operators and rows",
       R"(graph f(%x: f32[70,1000]) {
  %0 = exp(%x)
  %1 = reduce(%0) {kind = "sum", dims = [1]}
  %2 = broadcast(%1) {shape = [70, 1000], dims = [0]}
  %3 = div(%0, %2)
  %4 = erf(%3)
  return "y" = %4
}
)"},
      {"sums of columns",
       "graph f(%x: f32[3000,50]) {\n  %0 = reduce(%x) {kind = \"sum\", dims = [0]}\n  return \"y\" = %0\n}\n"},
      {"running sums",
       "graph f(%x: f32[9,5000]) {\n  %0 = scan(%x) {kind = \"sum\", dim = 1, exclusive = 0, reverse = 0}\n"
       "  return \"y\" = %0\n}\n"},
      {"largest elements",
       "graph f(%x: f32[30,2000]) {\n  %0, %1 = topk(%x) {k = 7, dim = 1, largest = 1, sorted = 1}\n"
       "  return \"y\" = %0\n}\n"},
      {"lookups", R"(graph f(%x: f32[300,64]) {
  %i = constant {value = i64[5]{7, 299, 0, 7, 31}}
  %0 = gather(%x, %i) {dim = 0}
  return "y" = %0
}
)"},
      {"products of f32", product("f32", "f32")},
      {"products of halves", product("f16", "f16")},
      {"products of bf16", product("bf16", "bf16")},
      {"products of f64", product("f64", "f64")},
      {"products of bytes", product("i8", "i32")},
      {"two products in a row", two_products()},
      {"convolutions", convolution(32, 1)},
      {"convolutions of single channels", convolution(32, 32)},
      {"pools",
       "graph f(%x: f16[2,14,15,64]) {\n  %0 = window_reduce(%x) {kind = \"max\", window = [1,3,3,1], strides = "
       "[1,2,2,1], low = [0,1,1,0], high = [0,1,1,0], dilations = [1,1,1,1]}\n  return \"y\" = %0\n}\n"},
      {"attention of halves", attention("f16")},
      {"attention of f32", attention("f32")},
      {"recurrences", recurrence()},
  };
}

SelfTestResult result_of(const TestedKind& kind, const std::string& path, const CompileOptions& options) {
  constexpr uint64_t kSeed = 1;
  SelfTestResult result{kind.name, ""};
  const double start = wall_seconds();
  try {
    const VerifyReport report = verify(path, options, {}, kSeed);
    for (const OutputCheck& output : report.outputs) {
      if (output.comparison.error < result.error) continue;
      result.error = output.comparison.error, result.bound = output.comparison.bound + output.sensitivity;
    }
    if (!report.ok) {
      result.why = report.first ? fmt::format("wrong results, first of \"{}\"", report.first->label) : "wrong results";
    }
  } catch (const std::exception& error) {
    result.why = error.what();
  }
  result.seconds = wall_seconds() - start;
  return result;
}

}  // namespace

std::vector<SelfTestResult> run_self_test(const CompileOptions& options,
                                          const std::function<void(const SelfTestResult&)>& done) {
  const TempDir folder("heddle-doctor");
  std::vector<SelfTestResult> results;
  for (const TestedKind& kind : all_kinds()) {
    const std::string path = folder.path() + "/model.hir";
    write_file(path, kind.graph, Sync::kNo);
    results.push_back(result_of(kind, path, options));
    if (done) done(results.back());
  }
  return results;
}

}  // namespace heddle::driver
