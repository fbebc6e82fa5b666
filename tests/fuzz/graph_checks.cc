#include "tests/fuzz/graph_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "ir/analysis/tolerance.h"
#include "ir/reference/eval.h"
#include "ir/text/text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "target/target.h"
#include "tests/fuzz/hostile/plan_set.h"

namespace heddle::fuzz {
namespace {

// Few runs decide most cases; a case that fails is judged again by many before it counts.
constexpr int kRuns = 5, kManyRuns = 60;

// The first output that lies too far from the reference.
std::string compare_outputs(const Case& c, const Reference& reference, const std::vector<ir::Array>& actual) {
  if (actual.size() != reference.outputs.size()) {
    return fmt::format("{} outputs instead of {}", actual.size(), reference.outputs.size());
  }
  for (size_t o = 0; o < actual.size(); ++o) {
    const ir::Array& want = reference.outputs[o];
    const std::string& name = c.graph.outputs()[o].name;
    if (actual[o].dtype != want.dtype || actual[o].shape != want.shape) {
      return fmt::format("output {} is {}, not {}", name, ir::to_string({actual[o].dtype, actual[o].shape}),
                         ir::to_string({want.dtype, want.shape}));
    }
    const ir::Comparison r = ir::compare(want, actual[o], reference.bounds[o], reference.slack[o]);
    if (!r.ok) {
      return fmt::format("output {} element {} is {:.9g}, reference {:.9g}: error {:.3g}, bound {:.3g}", name, r.worst,
                         r.actual, r.expected, r.error, r.bound);
    }
  }
  return {};
}

// Judges a result by few runs of noise, and by many where that fails.
std::string judge(const Case& c, const Reference& reference, const std::vector<ir::Array>& actual) {
  if (compare_outputs(c, reference, actual).empty()) return {};
  return compare_outputs(c, make_reference(c, kManyRuns, 2), actual);
}

std::string check_text(const Case& c) {
  const ir::PrintOptions options{.max_constant_elements = -1, .origins = true};
  const std::string once = ir::print(c.graph, options);
  const std::string twice = ir::print(ir::parse(once), options);
  return once == twice ? "" : "text: print(parse(print(g))) differs from print(g)";
}

std::string check_passes(const Case& c, const Reference& reference) {
  static const Target target = Target::host_cpu();
  std::string failed;
  passes::PipelineOptions options;
  const auto judge_graph = [&](std::string_view pass, const ir::Graph& graph) {
    if (!failed.empty()) return;
    if (graph.inputs().size() != c.graph.inputs().size()) {
      failed = fmt::format("passes: {} changed the parameters", pass);
      return;
    }
    const std::string why = judge(c, reference, ir::evaluate(graph, c.inputs));
    if (!why.empty()) failed = fmt::format("passes: after {}: {}", pass, why);
  };
  const ir::Graph result = passes::run_pipeline(c.graph, {.target = target}, options);
  judge_graph("the pipeline", result);
  if (failed.empty()) return {};
  failed.clear();
  options.observe = [&](const passes::PassReport& report, const ir::Graph& graph) { judge_graph(report.name, graph); };
  passes::run_pipeline(c.graph, {.target = target}, options);
  return failed;
}

std::string check_plan(const Case& c, const Reference& reference, const PlanSet& plans, size_t index, int runs) {
  for (int run = 0; run < runs; ++run) {
    const int threads = 1 + run % 2;
    const std::string why = judge(c, reference, plans.run(index, c.inputs, threads));
    if (!why.empty()) return fmt::format("plan: run {}, on {} threads: {}", run + 1, threads, why);
  }
  return {};
}

// Runs a check; what it throws is a failure, too.
template <typename Check>
std::string guarded(const char* name, const Check& check) {
  try {
    return check();
  } catch (const std::exception& error) {
    return fmt::format("{}-error: {}", name, error.what());
  }
}

// Compiles every plan that was prepared; where the compiler refuses the set, each case on its own.
class PlanStage {
 public:
  PlanStage(const std::vector<Case>& cases, const Checks& checks)
      : cases_(cases),
        checks_(checks),
        all_(checks.fusion, checks.plan ? checks.target : "cpu", checks.use_cache),
        index_(cases.size()),
        alone_(cases.size()) {}

  void prepare(size_t i) { index_[i] = all_.add(cases_[i].graph, checks_.small_machine); }

  void compile() {
    try {
      all_.compile();
    } catch (const Error&) {
      broken_ = true;
    }
  }

  std::string check(size_t i, const Reference& reference, Tally& tally) {
    if (broken_) {
      alone_[i] = std::make_unique<PlanSet>(checks_.fusion, checks_.target, checks_.use_cache);
      index_[i] = alone_[i]->add(cases_[i].graph, checks_.small_machine);
      alone_[i]->compile();
    }
    const PlanSet& plans = broken_ ? *alone_[i] : all_;
    const PlanSet::Steps steps = plans.steps(*index_[i]);
    tally.kernels += steps.kernels;
    tally.references += steps.references;
    return check_plan(cases_[i], reference, plans, *index_[i], checks_.runs);
  }

 private:
  const std::vector<Case>& cases_;
  const Checks& checks_;
  PlanSet all_;
  std::vector<std::optional<size_t>> index_;
  std::vector<std::unique_ptr<PlanSet>> alone_;
  bool broken_ = false;
};

}  // namespace

void check_cases(const std::vector<Case>& cases, const Checks& checks, Tally& tally,
                 const std::function<void(size_t, bool)>& begin, const std::function<void(size_t, std::string)>& fail) {
  PlanStage plans(cases, checks);
  std::vector<std::optional<Reference>> references(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    begin(i, false);
    std::string why = guarded("graph", [&] {
      ir::verify(c.graph);
      references[i] = make_reference(c, kRuns, 1);
      return std::string();
    });
    if (why.empty() && checks.text) why = guarded("text", [&] { return check_text(c); });
    if (why.empty() && checks.passes) why = guarded("passes", [&] { return check_passes(c, *references[i]); });
    if (why.empty() && checks.plan) {
      why = guarded("schedule", [&] {
        plans.prepare(i);
        return std::string();
      });
    }
    if (!why.empty()) {
      references[i].reset();
      fail(i, why);
      continue;
    }
    tally.nodes += static_cast<int64_t>(c.graph.nodes().size());
    for (const auto& slack : references[i]->slack) {
      for (double s : slack) ++(std::isinf(s) ? tally.skipped : tally.judged);
    }
  }
  if (!checks.plan) return;
  plans.compile();
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!references[i]) continue;
    begin(i, true);
    const std::string why = guarded("plan", [&] { return plans.check(i, *references[i], tally); });
    if (!why.empty()) fail(i, why);
  }
}

}  // namespace heddle::fuzz
