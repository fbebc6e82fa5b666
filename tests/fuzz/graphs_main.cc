// heddle_fuzz_graphs: seeded differential fuzz of the compiler; tests/README.md says how to use it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <sstream>

#include "driver/options/options.h"
#include "heddle/error.h"
#include "ir/text/text.h"
#include "passes/pass.h"
#include "target/target.h"
#include "tests/fuzz/attack/isolation.h"
#include "tests/fuzz/graph_checks.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/fuzz/reducer.h"

namespace heddle::fuzz {
namespace {

struct Options {
  uint64_t count = 200, seed = 1, batch = 40;
  std::string ops;
  bool reduce = true, print = false;
  double seconds = 1e9;
  int max_failures = 5, timeout = 300, reduce_budget = 300;
  passes::Precision precision = passes::Precision::kF32;
  Checks checks;
  GeneratorOptions generator;
};

// The case of a seed; with --precision, what that pass makes of it, which is then reference as well as subject.
Case make_case(uint64_t seed, const Options& options) {
  Case c = generate_case(seed, options.generator);
  if (options.precision == passes::Precision::kF32) return c;
  const std::string names[] = {"canonicalize", "precision"};
  c.graph = passes::run_passes(c.graph, names, {Target::host_cpu(), options.precision});
  return c;
}

std::set<ir::Op> parse_ops(const std::string& list) {
  std::set<ir::Op> ops;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto op = ir::parse_op(name);
    if (!op) throw CLI::ValidationError("--ops", "no primitive is called " + name);
    ops.insert(*op);
  }
  return ops;
}

void print_case(const Case& c) {
  fmt::print("{}\n", ir::print(c.graph, {.max_constant_elements = 64, .origins = false}));
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const ir::Array& x = c.inputs[i];
    if (x.size() > 16) continue;
    fmt::print("// {} =", c.graph.inputs()[i].name);
    for (int64_t k = 0; k < x.size(); ++k) {
      x.real() ? fmt::print(" {:.9g}", x.f()[static_cast<size_t>(k)])
               : fmt::print(" {}", x.i()[static_cast<size_t>(k)]);
    }
    fmt::print("\n");
  }
}

// The check that failed: reducing must not slide from one defect to another.
std::string kind_of(const std::string& why) {
  return why.substr(0, why.find(' '));
}

// One case in a process of its own, so that a crash is a result like any other.
std::string check_alone(const Case& c, const Options& options) {
  std::string why;
  const std::string death = run_isolated(
      [&](const auto& send) {
        Tally tally;
        check_cases(
            {c}, options.checks, tally, [](size_t, bool) {}, [&](size_t, const std::string& text) { send(text); });
      },
      [&](const std::string& text) { why = text; }, options.timeout);
  return death.empty() ? why : death;
}

void report(uint64_t seed, const std::string& why, const Options& options) {
  fmt::print("FAILED seed {}: {}\n", seed, why);
  Case c;
  try {
    c = make_case(seed, options);
  } catch (const std::exception&) {  // that is what failed
    return;
  }
  if (!options.reduce) return print_case(c);
  const std::string kind = kind_of(why);
  const Case small = reduce_case(
      std::move(c), [&](const Case& candidate) { return kind_of(check_alone(candidate, options)) == kind; },
      options.reduce_budget);
  fmt::print("reduced: {}\n", check_alone(small, options));
  print_case(small);
  std::fflush(stdout);
}

// Checks the seeds [begin, end) in a child process. Returns the seed after the last one that was settled.
uint64_t run_batch(uint64_t begin, uint64_t end, const Options& options, Tally& tally,
                   std::vector<std::pair<uint64_t, std::string>>& failures) {
  uint64_t current = begin;
  bool running = false;  // compiled code, as opposed to preparing it
  const auto work = [&](const auto& send) {
    std::vector<Case> cases;
    std::vector<uint64_t> seeds;
    for (uint64_t seed = begin; seed < end; ++seed) {
      send(fmt::format("begin {}", seed));
      try {
        cases.push_back(make_case(seed, options));
        seeds.push_back(seed);
        if (options.print) print_case(cases.back());
      } catch (const std::exception& error) {
        send(fmt::format("fail {} generator-error: {}", seed, error.what()));
      }
    }
    Tally done;
    check_cases(
        cases, options.checks, done,
        [&](size_t i, bool runs) { send(fmt::format("{} {}", runs ? "run" : "begin", seeds[i])); },
        [&](size_t i, const std::string& why) { send(fmt::format("fail {} {}", seeds[i], why)); });
    send(fmt::format("done {} {} {} {} {}", done.nodes, done.judged, done.skipped, done.kernels, done.references));
    std::fflush(stdout);
  };
  const auto receive = [&](const std::string& line) {
    std::istringstream stream(line);
    std::string what;
    stream >> what;
    if (what == "begin" || what == "run") {
      running = what == "run";
      stream >> current;
    } else if (what == "fail") {
      uint64_t seed = 0;
      stream >> seed >> std::ws;
      std::string why;
      std::getline(stream, why);
      failures.emplace_back(seed, why);
    } else {
      Tally t;
      stream >> t.nodes >> t.judged >> t.skipped >> t.kernels >> t.references;
      tally.nodes += t.nodes, tally.judged += t.judged, tally.skipped += t.skipped;
      tally.kernels += t.kernels, tally.references += t.references;
    }
  };
  const std::string death = run_isolated(work, receive, options.timeout);
  if (death.empty()) return end;
  // Later seeds are done again; earlier ones too, unless the child was already running plans one by one.
  std::erase_if(failures, [&](const auto& failure) { return failure.first > current || !running; });
  if (!running && current > begin) run_batch(begin, current, options, tally, failures);
  failures.emplace_back(current, death);
  return current + 1;
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  int failed = 0;
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const uint64_t end = options.seed + options.count;
  uint64_t seed = options.seed;
  while (seed < end && failed < options.max_failures && passed() < options.seconds) {
    std::vector<std::pair<uint64_t, std::string>> failures;
    seed = run_batch(seed, std::min(end, seed + options.batch), options, tally, failures);
    for (const auto& [bad, why] : failures) {
      if (failed++ < options.max_failures) report(bad, why, options);
    }
  }
  fmt::print("{} graphs, {} nodes, {} kernels, {} reference steps, {:.1f} s; ", seed - options.seed, tally.nodes,
             tally.kernels, tally.references, passed());
  fmt::print("{} elements compared, {} left to rounding; {} failures\n", tally.judged, tally.skipped, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  using heddle::fuzz::Options;
  using heddle::passes::FusionPolicy;
  Options options;
  CLI::App app("Random graphs: the textual form, the passes and the compiled plan against the float64 reference");
  app.add_option("--count", options.count, "graphs to try");
  app.add_option("--seed", options.seed, "seed of the first graph; the next ones count up");
  app.add_option("--batch", options.batch, "graphs whose kernels are compiled together")->check(CLI::Range(1, 1000));
  app.add_option("--ops", options.ops, "only these primitives (and the plumbing they need): add,reduce,...");
  app.add_option("--max-nodes", options.generator.max_nodes, "steps of the generator")->check(CLI::Range(2, 500));
  app.add_option("--max-failures", options.max_failures, "stop after so many");
  app.add_option("--seconds", options.seconds, "begin no batch of graphs after this time");
  app.add_option("--timeout", options.timeout, "seconds without progress that count as a hang");
  app.add_option("--reduce-budget", options.reduce_budget, "attempts to make a failing graph smaller");
  const std::map<std::string, FusionPolicy> policies = {
      {"none", FusionPolicy::kNone}, {"basic", FusionPolicy::kBasic}, {"stitch", FusionPolicy::kStitch}};
  app.add_option("--fusion", options.checks.fusion, "none, basic or stitch")
      ->transform(CLI::CheckedTransformer(policies));
  app.add_flag("--memory-bound", options.generator.memory_bound, "only what stitch groups have, with larger extents");
  app.add_flag("--quantised", options.generator.quantised, "quantised networks: bytes, and weights of few bits");
  app.add_option("--target", options.checks.target,
                 "cpu, cuda, cuda:N, hip or hip:N (HEDDLE_CUDA_DRIVER, HEDDLE_HIP_DRIVER: on the emulator)");
  app.add_flag("--small-machine", options.checks.small_machine, "schedule for four threads, tiny caches, slow memory");
  using heddle::passes::Precision;
  const std::map<std::string, Precision> precisions = {
      {"f32", Precision::kF32}, {"f16", Precision::kF16}, {"bf16", Precision::kBF16}};
  app.add_option("--precision", options.precision, "f32, f16 or bf16")->transform(CLI::CheckedTransformer(precisions));
  app.add_flag("!--no-reduce", options.reduce, "print failing graphs as they are");
  app.add_flag("--print", options.print, "print every graph");
  app.add_flag("!--no-passes", options.checks.passes, "leave the pass pipeline out");
  app.add_flag("--cache", options.checks.use_cache,
               "take kernels from the cache of HEDDLE_CACHE_DIR, and keep them there");
  app.add_option("--runs", options.checks.runs, "of each plan, with memory of its own")->check(CLI::Range(1, 1000000));
  app.add_flag("!--no-plan", options.checks.plan, "leave the compiled plan out");
  CLI11_PARSE(app, argc, argv);
  try {
    options.generator.ops = heddle::fuzz::parse_ops(options.ops);
    heddle::driver::device_of(options.checks.target);
  } catch (const CLI::Error& error) {
    return app.exit(error);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  if (options.generator.memory_bound) options.generator.max_elements = 30000;
  return heddle::fuzz::run(options);
}
