// `heddle kernel gemm`: one operator on a GPU, its candidates, and the vendor's library beside it.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/file/file.h"
#include "cli/commands/kernel_group.h"
#include "cli/support.h"
#include "driver/options/options.h"
#include "driver/tune/gemm_bench.h"
#include "ops/expression.h"
#include "ops/gemm_kernel.h"
#include "ops/prepared_kernel.h"
#include "schedule/config/config_source.h"

namespace heddle::cli {
namespace {

using driver::GemmBenchResult;
using driver::GemmTiming;

DType parse_type(const std::string& text) {
  const std::string name = text == "tf32"                     ? "f32"
                           : text == "e4m3" || text == "e5m2" ? "f8" + text
                           : text == "int8"                   ? "i8"
                           : text == "uint8"                  ? "u8"
                           : text == "int32"                  ? "i32"
                                                              : text;
  if (const auto type = parse_dtype(name)) return *type;
  const std::vector<std::string_view> known = {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "int8", "uint8"};
  fail(ErrorCode::kInvalidArgument, "--dtype", fmt::format("\"{}\" is no type", text),
       driver::meant_word(text, known) + fmt::format("Types: {}", fmt::join(known, ", ")));
}

// What a product of such operands is usually stored as.
DType default_output(DType in) {
  switch (in) {
    case DType::kF32:
      return DType::kF32;
    case DType::kF64:
      return DType::kF64;
    case DType::kI8:
    case DType::kU8:
      return DType::kI32;
    case DType::kF16:
      return DType::kF16;
    default:
      return DType::kBF16;
  }
}

// Whether an epilogue's text names an operand.
bool names(const std::string& epilogue, const std::string& name) {
  if (epilogue.empty()) return false;
  const ops::Expression e = ops::Expression::parse(epilogue);
  for (size_t i = 0; i <= e.root(); ++i) {
    if (e[i].kind == ops::Expression::Node::Kind::kName && e[i].name == name) return true;
  }
  return false;
}

// NAME[:column|row|matrix|scalar[:TYPE]]
ops::Operand parse_operand(const std::string& text, DType dtype) {
  ops::Operand operand;
  operand.dtype = dtype;
  const size_t colon = text.find(':'), second = text.find(':', std::min(text.size(), colon + 1));
  operand.name = text.substr(0, colon);
  const std::string kind = colon == std::string::npos ? "column" : text.substr(colon + 1, second - colon - 1);
  if (colon != std::string::npos && second != std::string::npos) operand.dtype = parse_type(text.substr(second + 1));
  using Kind = ops::Operand::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"column", Kind::kColumn}, {"row", Kind::kRow}, {"matrix", Kind::kMatrix}, {"scalar", Kind::kScalar}};
  for (const auto& [name, value] : kinds) {
    if (kind == name && !operand.name.empty()) {
      operand.kind = value;
      return operand;
    }
  }
  fail(ErrorCode::kInvalidArgument, "--operand", fmt::format("\"{}\" is not of the form NAME:KIND:TYPE", text),
       "Kinds: column, row, matrix, scalar");
}

ops::GemmProblem problem_of(const KernelArguments& k) {
  ops::GemmProblem p;
  p.in = parse_type(k.dtype);
  p.tf32 = k.dtype == "tf32";
  p.out = k.out.empty() ? default_output(p.in) : parse_type(k.out);
  p.m = k.m, p.n = k.n, p.k = k.k, p.batch = k.batch;
  p.lda = k.lda, p.ldb = k.ldb, p.ldd = k.ldd;
  p.transpose_a = k.layout == "tn" || k.layout == "tt";
  p.transpose_b = k.layout == "nt" || k.layout == "tt";
  p.epilogue = k.epilogue;
  // Operands of the type of D, which the usual names have unless they are described.
  const DType type = p.out == DType::kI32 ? DType::kF32 : p.out;
  for (const std::string& text : k.operands) p.operands.push_back(parse_operand(text, type));
  for (const char* usual : {"bias:column", "row_bias:row", "residual:matrix", "scale:scalar:f32"}) {
    const ops::Operand operand = parse_operand(usual, type);
    const bool given = std::any_of(p.operands.begin(), p.operands.end(),
                                   [&](const ops::Operand& o) { return o.name == operand.name; });
    if (!given && names(p.epilogue, operand.name)) p.operands.push_back(operand);
  }
  return p;
}

nlohmann::json json_of(const GemmBenchResult& r, const KernelArguments& k) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const GemmTiming& t : r.timings) {
    candidates.push_back({{"config", schedule::name_of(t.candidate.config)},
                          {"predicted_us", t.candidate.config.predicted_us},
                          {"us", t.median_us},
                          {"error", std::isfinite(t.error) ? t.error : 1e30},
                          {"compile_s", t.compile_seconds},
                          {"samples", t.samples},
                          {"dropped", t.dropped},
                          {"failure", t.failure}});
  }
  return {{"device", r.device},
          {"m", r.problem.m},
          {"n", r.problem.n},
          {"k", r.problem.k},
          {"batch", r.problem.batch},
          {"dtype", k.dtype},
          {"layout", k.layout},
          {"epilogue", k.epilogue},
          {"us", r.best_us},
          {"library_us", r.library_us},
          {"library_first_us", r.library_first_us},
          {"library_algorithms", r.library_algorithms},
          {"floor_us", r.floor_us},
          {"empty_graph_us", r.empty_graph_us},
          {"best", r.best < 0 ? "" : schedule::name_of(r.timings[static_cast<size_t>(r.best)].candidate.config)},
          {"pick_us", r.pick < 0 ? 0.0 : r.timings[static_cast<size_t>(r.pick)].median_us},
          {"best_quick_us", r.best < 0 ? 0.0 : r.timings[static_cast<size_t>(r.best)].median_us},
          {"verified", r.verified},
          {"candidates", candidates}};
}

void print_result(const GemmBenchResult& r) {
  Table table({"candidate", "predicted", "measured", "of floor", "error/bound", "runs", "compile"});
  for (const GemmTiming& t : r.timings) {
    const bool timed = t.median_us > 0;
    table.add({schedule::name_of(t.candidate.config), fmt::format("{:.1f} us", t.candidate.config.predicted_us),
               timed ? fmt::format("{:.2f} us", t.median_us) : "-",
               timed ? fmt::format("{:.0f}%", 100 * r.floor_us / t.median_us) : "-",
               t.error < 0 ? "-" : fmt::format("{:.3f}", t.error),
               t.samples > 0 ? fmt::format("{}{}", t.samples, t.dropped ? ", dropped" : "") : "-",
               t.from_cache ? "cache" : fmt::format("{:.2f} s", t.compile_seconds)});
  }
  table.print();
  for (const GemmTiming& t : r.timings) {
    if (!t.failure.empty()) print_line(fmt::format("{}: {}", schedule::name_of(t.candidate.config), t.failure));
  }
  if (r.best >= 0) {
    print_line(fmt::format("best {}: {:.2f} us, {:.1f} T operations/s, floor {:.2f} us, empty graph {:.2f} us",
                           schedule::name_of(r.timings[static_cast<size_t>(r.best)].candidate.config), r.best_us,
                           r.operations / r.best_us / 1e6, r.floor_us, r.empty_graph_us));
  }
  if (r.library_us > 0) {
    print_line(fmt::format("cuBLASLt: {:.2f} us best of {}, first {:.2f} us; ratio {:.3f}", r.library_us,
                           r.library_algorithms, r.library_first_us, r.library_us / r.best_us));
  } else if (!r.library_why.empty()) {
    print_line("cuBLASLt: " + r.library_why);
  }
}

// Without a GPU: what would be tried on the chip of --sm, why others cannot run, and whether it compiles.
int list_candidates(const std::vector<ops::GemmProblem>& problems, const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  const CudaTarget target = chip_target(k);
  struct Row {
    schedule::CudaCandidate candidate;
    std::string unit;
    size_t problem = 0;
  };
  std::vector<Row> rows;
  std::set<std::string> units;
  for (size_t index = 0; index < problems.size(); ++index) {
    const ops::ResolvedGemm gemm = ops::resolve(problems[index]);
    for (schedule::CudaCandidate& c :
         k.all ? ops::all_candidates(gemm, target) : ops::worthwhile(gemm, target, k.most, k.family)) {
      if (!k.family.empty() && family_of(c.config) != k.family) continue;
      Row& row = rows.emplace_back(Row{std::move(c), {}});
      row.problem = index;
      if (k.predict || !row.candidate.rejected.empty() || gemm.is_empty()) continue;
      row.unit = ops::make_kernel(gemm.desc, row.candidate.config, target).unit;
      units.insert(row.unit);
    }
  }
  const auto compiled = compile_units(units, target, arguments.options.use_cache);
  Table table({"candidate", "predicted", "what"});
  nlohmann::json list = nlohmann::json::array();
  int failures = 0;
  for (const auto& [c, unit, problem] : rows) {
    const auto found = compiled.find(unit);
    const std::string what = found != compiled.end() ? found->second.what : c.rejected;
    if (found != compiled.end() && found->second.failed) ++failures;
    const std::string name = schedule::name_of(c.config);
    table.add({name, c.rejected.empty() ? fmt::format("{:.1f} us", c.config.predicted_us) : "-", what});
    list.push_back({{"problem", problem},
                    {"config", name},
                    {"predicted_us", c.config.predicted_us},
                    {"rejected", c.rejected},
                    {"what", what}});
  }
  if (arguments.json) {
    print_json({{"candidates", std::move(list)}, {"failures", failures}});
  } else {
    table.print();
    print_line(fmt::format("{} units, {} candidates that cannot be compiled", compiled.size(), failures));
  }
  return failures == 0 ? 0 : 1;
}

driver::GemmBenchOptions options_of(const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  driver::GemmBenchOptions options;
  options.device = k.device;
  options.most = k.all ? 0 : k.most;
  options.family = k.family;
  options.verify = k.verify;
  options.use_cache = arguments.options.use_cache;
  options.seed = arguments.seed + 1;
  return options;
}

// "DTYPE M N K [EPILOGUE]"; empty lines and those that begin with # are passed over.
std::vector<KernelArguments> read_list(const KernelArguments& common) {
  std::vector<KernelArguments> list;
  std::istringstream lines{std::string(MappedFile::read(common.list)->text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    KernelArguments& k = list.emplace_back(common);
    std::istringstream words(line);
    if (!(words >> k.dtype >> k.m >> k.n >> k.k)) {
      fail(ErrorCode::kInvalidArgument, common.list, fmt::format("\"{}\" is not of the form DTYPE M N K", line));
    }
    std::getline(words >> std::ws, k.epilogue);
  }
  return list;
}

// Many problems in one process: compiled all at once, then timed one after another.
int bench_list(const Arguments& arguments) {
  const driver::GemmBenchOptions options = options_of(arguments);
  const std::vector<KernelArguments> list = read_list(arguments.kernel);
  std::vector<ops::GemmProblem> problems;
  for (const KernelArguments& k : list) problems.push_back(problem_of(k));
  if (arguments.kernel.compile_only || arguments.kernel.predict) return list_candidates(problems, arguments);
  if (options.use_cache) driver::compile_ahead(problems, options);
  bool verified = true;
  for (size_t i = 0; i < list.size(); ++i) {
    nlohmann::json row;
    try {
      const GemmBenchResult result = driver::bench_gemm(problems[i], options);
      row = json_of(result, list[i]);
      verified = verified && result.verified;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kDevice) throw;
      row = {{"m", list[i].m},         {"n", list[i].n},    {"k", list[i].k},
             {"dtype", list[i].dtype}, {"verified", false}, {"epilogue", list[i].epilogue},
             {"failure", error.what()}};
      verified = false;
    }
    print_json_line(row);
    flush_output();
  }
  return options.verify && !verified ? 1 : 0;
}

}  // namespace

int kernel_command(const Arguments& arguments) {
  const KernelArguments& k = arguments.kernel;
  if (!k.list.empty()) return bench_list(arguments);
  const ops::GemmProblem problem = problem_of(k);
  if (k.compile_only || k.predict) return list_candidates({problem}, arguments);
  const driver::GemmBenchOptions options = options_of(arguments);
  const GemmBenchResult result = driver::bench_gemm(problem, options);
  if (arguments.json) {
    print_json_line(json_of(result, k));
  } else {
    print_result(result);
  }
  return options.verify && !result.verified ? 1 : 0;
}

}  // namespace heddle::cli
