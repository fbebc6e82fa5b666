#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/near_miss.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/cse.h"
#include "passes/fold.h"
#include "passes/fold_batch_norm.h"
#include "passes/known_scatters.h"
#include "passes/layout.h"
#include "passes/merge_products.h"
#include "passes/partial_reductions.h"
#include "passes/pass.h"
#include "passes/precision.h"
#include "passes/sink_transposes.h"
#include "passes/split_concats.h"
#include "passes/unshare.h"
#include "passes/wide_pixels.h"

namespace heddle::passes {
namespace {

ir::Graph dce(const ir::Graph& graph, const PassContext&) {
  return ir::drop_dead(graph);
}

bool on_gpu(const PassContext& context) {
  return context.target.kind == TargetKind::kCuda;
}

// tf32 is a type of tensor cores only.
bool below_f32(const PassContext& context) {
  return context.precision != Precision::kF32 && (context.precision != Precision::kTf32 || on_gpu(context));
}

constexpr Pass kDce{"dce", "drops nodes that no output needs", dce};
constexpr Pass kCanonicalize{"canonicalize", "removes identities, merges chains, prefers cheaper equals", canonicalize};
constexpr Pass kFold{"fold", "evaluates what depends on constants only", fold};
constexpr Pass kCse{"cse", "joins equal nodes", cse};
constexpr Pass kFoldBatchNorm{"fold_batch_norm", "constants per channel into the weights of contractions",
                              fold_batch_norm};
constexpr Pass kUnshare{"unshare", "a copy of each broadcast for each of its readers", unshare};
constexpr Pass kLayout{"layout", "convolutions and pooling with channels last", layout};
constexpr Pass kMergeProducts{"merge_products", "products of one value with several matrices as one (GPU)",
                              merge_products, on_gpu};
constexpr Pass kPrecision{"precision", "f32 contractions and what is near them in 16 bits (--precision)", precision,
                          below_f32};
constexpr Pass kSinkTransposes{"sink_transposes", "moves transposes to where they cancel", sink_transposes};

constexpr Pass kWidePixels{"wide_pixels", "images of few channels with pixels of whole 16 bytes (GPU)", wide_pixels,
                           on_gpu};

constexpr Pass kKnownScatters{"known_scatters", "scatters with constant indices as selections among loads (GPU)",
                              known_scatters, on_gpu};

constexpr Pass kPartialReductions{"partial_reductions", "reductions of large products, begun in their epilogues (GPU)",
                                  partial_reductions, on_gpu};

constexpr Pass kSplitConcats{"split_concats", "concatenations of many parts in several steps", split_concats};

constexpr Pass kPipeline[] = {
    // Later passes look for canonical forms, with constants folded.
    kDce,
    kCanonicalize,
    kFold,
    kCanonicalize,
    kCse,
    // Contractions.
    kFoldBatchNorm,
    kLayout,
    kSinkTransposes,
    kMergeProducts,
    kPrecision,
    kWidePixels,
    kKnownScatters,
    // What those left behind.
    kCanonicalize,
    kFold,
    kCanonicalize,
    kCse,
    // The graph is as the fusion rules want it.
    kSplitConcats,
    kPartialReductions,
    kUnshare,
};

bool applies(const Pass& pass, const PassContext& context) {
  return pass.applies == nullptr || pass.applies(context);
}

// A pass over a graph and over all bodies in it; bodies keep their signature.
ir::Graph run_everywhere(const Pass& pass, const ir::Graph& graph, const PassContext& context) {
  ir::Graph result = pass.run(graph, context);
  const auto has_body = [](const ir::Node& node) { return node.op == ir::Op::kLoop || node.op == ir::Op::kIf; };
  if (std::none_of(result.nodes().begin(), result.nodes().end(), has_body)) return result;
  return ir::Rewriter(result).run(
      [&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
        if (!has_body(node)) return std::nullopt;
        ir::Attrs attrs = node.attrs;
        for (const auto& [name, attr] : node.attrs) {
          if (const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr)) {
            attrs.set(name, std::make_shared<const ir::Graph>(run_everywhere(pass, **body, context)));
          }
        }
        const ir::NodeId id = r.target().add(node.op, r(node.inputs), std::move(attrs), node.origins);
        return r.target().node(id).outputs;
      });
}

ir::Graph run_and_verify(const Pass& pass, const ir::Graph& graph, const PassContext& context, bool verify) {
  try {
    ir::Graph result = run_everywhere(pass, graph, context);
    if (verify) ir::verify(result);
    return result;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    fail(ErrorCode::kInternal, fmt::format("pass {}", pass.name), error.what(),
         fmt::format("This is a bug in Heddle; disabling the pass {} may avoid it", pass.name));
  }
}

[[noreturn]] void unknown_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : pipeline()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
  }
  fail(ErrorCode::kInvalidArgument, fmt::format("pass \"{}\"", name), "there is no pass of this name",
       did_you_mean(name, names) + fmt::format("The passes are {}", fmt::join(names, ", ")));
}

}  // namespace

std::span<const Pass> pipeline() {
  return kPipeline;
}

const Pass* find_pass(std::string_view name) {
  const auto passes = pipeline();
  const auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; });
  return found == passes.end() ? nullptr : &*found;
}

ir::Graph run_pipeline(const ir::Graph& graph, const PassContext& context, const PipelineOptions& options) {
  for (const std::string& name : options.disabled) {
    if (find_pass(name) == nullptr) unknown_pass(name);
  }
  ir::Graph current = graph;
  for (const Pass& pass : pipeline()) {
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end()) continue;
    if (!applies(pass, context)) continue;
    const double start = wall_seconds();
    current = run_and_verify(pass, current, context, options.verify);
    const double time = wall_seconds() - start;
    if (options.observe) options.observe({pass.name, time}, current);
  }
  return current;
}

ir::Graph run_passes(const ir::Graph& graph, std::span<const std::string> names, const PassContext& context) {
  std::vector<const Pass*> passes;
  for (const std::string& name : names) {
    passes.push_back(find_pass(name));
    if (passes.back() == nullptr) unknown_pass(name);
  }
  ir::Graph current = graph;
  for (const Pass* pass : passes) {
    if (applies(*pass, context)) current = run_and_verify(*pass, current, context, true);
  }
  return current;
}

}  // namespace heddle::passes
