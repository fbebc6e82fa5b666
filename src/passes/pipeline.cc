#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/near_miss.h"
#include "base/thread/cancel.h"
#include "ir/analysis/decisions.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/boundaries/narrow_boundaries.h"
#include "passes/boundaries/recompute_boundaries.h"
#include "passes/contraction/align_rows.h"
#include "passes/contraction/conv_phases.h"
#include "passes/contraction/epilogue_reductions.h"
#include "passes/contraction/fold_batch_norm.h"
#include "passes/contraction/gate_dots.h"
#include "passes/contraction/long_dots.h"
#include "passes/contraction/merge_dots.h"
#include "passes/contraction/scale_scores.h"
#include "passes/contraction/small_dots.h"
#include "passes/contraction/space_to_depth.h"
#include "passes/contraction/swap_dots.h"
#include "passes/fusion/clone_cheap_producers.h"
#include "passes/fusion/clone_masks.h"
#include "passes/fusion/join_in_place.h"
#include "passes/layout/dots_of_parts.h"
#include "passes/layout/filters_last.h"
#include "passes/layout/layout.h"
#include "passes/layout/sink_transposes.h"
#include "passes/layout/split_concats.h"
#include "passes/pass.h"
#include "passes/precision.h"
#include "passes/quantized/integer_products.h"
#include "passes/quantized/quantized_weights.h"
#include "passes/quantized/widen_weights.h"
#include "passes/rewrite/keep_roundings.h"
#include "passes/simplify/canonicalize.h"
#include "passes/simplify/centre_means.h"
#include "passes/simplify/constant_masks.h"
#include "passes/simplify/cse.h"
#include "passes/simplify/drop_empty.h"
#include "passes/simplify/fold.h"
#include "passes/simplify/scatter_to_select.h"
#include "passes/simplify/select_early.h"
#include "passes/simplify/sink_constants.h"
#include "passes/simplify/unroll_reductions.h"
#include "passes/simplify/update_in_place.h"

namespace heddle::passes {
namespace {

ir::Graph dce(const ir::Graph& graph, const PassContext&) {
  return ir::drop_dead(graph);
}

bool has_dead(const ir::Graph& graph, const PassContext&) {
  const std::vector<bool> live = ir::live_nodes(graph);
  return std::find(live.begin(), live.end(), false) != live.end();
}

template <ir::Op... kOps>
bool has(const ir::Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return ((node.op == kOps) || ...); });
}

// The same for targets of which a fact is true.
template <bool TargetTraits::*kTrait, ir::Op... kOps>
bool has_where(const ir::Graph& graph, const PassContext& context) {
  return context.target.traits().*kTrait && has<kOps...>(graph, context);
}

bool has_conv_on_tensor_cores(const ir::Graph& graph, const PassContext& context) {
  return context.target.has_tensor_cores() && has<ir::Op::kConv>(graph, context);
}

// GPU kernels split a long k themselves.
bool has_dot_on_cpu(const ir::Graph& graph, const PassContext& context) {
  return !context.target.has_tensor_cores() && has<ir::Op::kDot>(graph, context);
}

// tf32 is a type of tensor cores only.
bool below_f32(const ir::Graph&, const PassContext& context) {
  return context.precision != Precision::kF32 &&
         (context.precision != Precision::kTf32 || context.target.has_tensor_cores());
}

bool stores_16_bits(const ir::Graph&, const PassContext& context) {
  return (context.precision == Precision::kF16 || context.precision == Precision::kBF16) &&
         context.target.has_tensor_cores() && context.group;
}

bool has_long_concat(const ir::Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return node.op == ir::Op::kConcat && node.inputs.size() > kMostConcatParts;
  });
}

bool has_bytes(const ir::Graph& graph, const PassContext& context) {
  return (context.target.multiplies_bytes() || context.target.multiplies_shorts()) &&
         std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const ir::Node& node) {
           const DType type = node.outputs.empty() ? DType::kF32 : graph.dtype(node.outputs[0]);
           return type == DType::kI8 || type == DType::kU8;
         });
}

constexpr Pass kIntegerProducts{"integer_products", "products of dequantised operands, in integers", integer_products,
                                has_bytes};
constexpr Pass kDce{"dce", "drops nodes that no output needs", dce, has_dead};
constexpr Pass kDropEmpty{"drop_empty", "removes what has or combines no elements", drop_empty, has_empty};
constexpr Pass kSinkConstants{"sink_constants", "constant operands of loops and branches, computed in the bodies",
                              sink_constants, has<Op::kLoop, Op::kIf>};
constexpr Pass kCanonicalize{"canonicalize", "removes identities, merges chains, prefers cheaper equals", canonicalize};
constexpr Pass kFold{"fold", "evaluates what depends on constants only", fold, has<Op::kConstant, Op::kIota>};
constexpr Pass kCse{"cse", "joins equal nodes", cse};
constexpr Pass kFoldBatchNorm{"fold_batch_norm", "constants per channel into the weights of contractions",
                              fold_batch_norm, has<Op::kConv, Op::kDot>};
constexpr Pass kSelectEarly{"select_early", "rows that alone are read, selected before products compute them",
                            select_early, has<Op::kSlice, Op::kGather, Op::kGatherNd>};
constexpr Pass kUnshare{"clone_cheap_producers", "a copy of each broadcast and of packed weights for each reader",
                        clone_cheap_producers,
                        has<Op::kBroadcast, Op::kIota, Op::kGather, Op::kSlice, Op::kDequantize>};
constexpr Pass kConstantMasks{"constant_masks", "large constants of two values as comparisons of positions",
                              constant_masks, has<Op::kConstant>};
constexpr Pass kCloneMasks{"clone_masks", "a copy of each mask for each of the attentions that read it", clone_masks,
                           has<Op::kExp>};
constexpr Pass kLayout{"layout", "convolutions and pooling with channels last", layout,
                       has<Op::kConv, Op::kWindowReduce>};
constexpr Pass kMergeDots{"merge_dots", "products of one value with several matrices as one (GPU)", merge_dots,
                          has_where<&TargetTraits::merges_dots, Op::kDot>};
constexpr Pass kQuantizedWeights{"quantized_weights", "constant weights of few bits, packed, as operands of products",
                                 quantized_weights, has<Op::kDot>};
constexpr Pass kScaleScores{"scale_scores", "constant factors of queries and keys, on their products (GPU)",
                            scale_scores, has_where<&TargetTraits::scales_products, Op::kExp>};
constexpr Pass kPrecision{"precision", "f32 contractions and what is near them in 16 bits, as the precision says",
                          precision, below_f32};
constexpr Pass kSinkTransposes{"sink_transposes", "moves transposes to where they cancel", sink_transposes,
                               has<Op::kTranspose>};

bool has_spread_conv(const ir::Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    if (node.op != ir::Op::kConv) return false;
    const ir::Ints& spreads = node.attrs.ints("lhs_dilations");
    return std::any_of(spreads.begin(), spreads.end(), [](int64_t s) { return s != 1; });
  });
}

constexpr Pass kConvPhases{"conv_phases", "transposed convolutions as dense ones, by phases of their stride",
                           conv_phases, has_spread_conv};

constexpr Pass kSpaceToDepth{"space_to_depth", "images with pixels of whole 16 bytes (GPU)", space_to_depth,
                             has_conv_on_tensor_cores};

constexpr Pass kFiltersLast{"filters_last", "computed filters with the channels last (GPU)", filters_last,
                            has_conv_on_tensor_cores};

constexpr Pass kSwapDots{"swap_dots", "products whose transpose is read, with their operands exchanged", swap_dots,
                         has<Op::kDot>};

constexpr Pass kKnownScatters{"scatter_to_select",
                              "scatters with known indices or one update a row as selections (GPU)", scatter_to_select,
                              has_where<&TargetTraits::selects_for_scatters, Op::kScatterElements, Op::kScatterNd>};

bool has_alias(const ir::Graph& graph, const PassContext&) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [](const ir::Graph::Port& port) { return port.alias != ir::Graph::kNoAlias; });
}

constexpr Pass kUpdateInPlace{"update_in_place", "changed copies of inputs in the memory of those", update_in_place,
                              has_alias};

constexpr Pass kEpilogueReductions{"epilogue_reductions",
                                   "reductions of large products, begun in their epilogues (GPU)", epilogue_reductions,
                                   has_where<&TargetTraits::reduces_in_epilogues, Op::kReduce>};

constexpr Pass kGateDots{"gate_dots", "pairs of products that meet element by element, by turns of columns (GPU)",
                         gate_dots, has_where<&TargetTraits::gates_products, Op::kDot>};

bool has_joined_dot_on_cpu(const ir::Graph& graph, const PassContext& context) {
  return has_dot_on_cpu(graph, context) && has<ir::Op::kConcat>(graph, context);
}

// On a GPU, an attention kernel reads what is concatenated.
constexpr Pass kDotsOfParts{"dots_of_parts", "products with concatenations as products with their parts (CPU)",
                            dots_of_parts, has_joined_dot_on_cpu};

constexpr Pass kLongDots{"long_dots", "products of few results with long sums, in lanes or parts of these (CPU)",
                         long_dots, has_dot_on_cpu};

bool has_dot_on_tensor_cores(const ir::Graph& graph, const PassContext& context) {
  return context.target.has_tensor_cores() && has<ir::Op::kDot>(graph, context);
}

constexpr Pass kSmallDots{"small_dots", "products with a small constant matrix, as memory-bound work (GPU)", small_dots,
                          has_dot_on_tensor_cores};

constexpr Pass kAlignRows{"align_rows", "operands of large products with rows of whole 16 bytes (GPU)", align_rows,
                          has_dot_on_tensor_cores};

constexpr Pass kUnrollReductions{"unroll_reductions",
                                 "reductions of a few terms that are reduced again, as operations on elements (GPU)",
                                 unroll_reductions, has_where<&TargetTraits::reduces_in_epilogues, Op::kReduce>};

constexpr Pass kCentreMeans{"centre_means", "means without the rounding of their sums, for sums of squared deviations",
                            centre_means, has<Op::kReduce>};

constexpr Pass kSplitConcats{"split_concats", "concatenations of many parts in several steps", split_concats,
                             has_long_concat};

constexpr Pass kNarrowBoundaries{"narrow_boundaries", "f32 values between kernels in 16 bits (GPU)", narrow_boundaries,
                                 stores_16_bits};

bool has_groups_on_gpu(const ir::Graph& graph, const PassContext& context) {
  return context.group && has_dot_on_tensor_cores(graph, context);
}

bool has_packed_weights_on_gpu(const ir::Graph& graph, const PassContext& context) {
  return has_groups_on_gpu(graph, context) && has<ir::Op::kDequantize>(graph, context);
}

constexpr Pass kWidenWeights{"widen_weights", "weights of few bits that products read as floats (GPU)", widen_weights,
                             has_packed_weights_on_gpu};

constexpr Pass kRecomputeBoundaries{"recompute_boundaries",
                                    "values that a kernel computes again from what it reads (GPU)",
                                    recompute_boundaries, has_groups_on_gpu};

bool has_decision(const ir::Graph& graph, const PassContext&) {
  const std::vector<bool> feeds = ir::feed_decisions(graph);
  return std::find(feeds.begin(), feeds.end(), true) != feeds.end();
}

// Last, since passes that rewrite products would lose its marks.
constexpr Pass kKeepRoundings{"keep_roundings", "products that a rounding to integers depends on keep their own",
                              keep_roundings, has_decision};

bool has_stored_concat(const ir::Graph& graph, const PassContext& context) {
  return context.placement_obstacle && has<ir::Op::kConcat>(graph, context);
}

constexpr Pass kJoinInPlace{"join_in_place", "concatenations whose parts are made where they lie", join_in_place,
                            has_stored_concat};

constexpr Pass kPipeline[] = {
    // Later passes look for canonical forms, with constants folded.
    kDce,
    kDropEmpty,
    kSinkConstants,     // passes over bodies then see them
    kIntegerProducts,   // before weights are dequantised
    kQuantizedWeights,  // before constants are folded into wider types
    kCanonicalize,
    kFold,
    kCanonicalize,
    kCse,
    kSelectEarly,  // products that are merged have more readers
    // Contractions.
    kFoldBatchNorm,
    kLayout,
    kSinkTransposes,
    kMergeDots,
    kScaleScores,
    kUpdateInPlace,  // before outputs are casts
    kPrecision,
    kConvPhases,
    kSpaceToDepth,
    kFiltersLast,
    kSwapDots,
    kKnownScatters,
    kDotsOfParts,
    kLongDots,
    kSmallDots,
    kUnrollReductions,
    // What those left behind.
    kCanonicalize,
    kFold,
    kCanonicalize,
    kCse,
    // The graph is as the fusion rules want it.
    kCentreMeans,
    kSplitConcats,
    kGateDots,
    kEpilogueReductions,
    kAlignRows,
    kConstantMasks,  // what folding has left
    kCloneMasks,
    kUnshare,
    kWidenWeights,
    kRecomputeBoundaries,  // the groups are those of the plan
    kNarrowBoundaries,
    kKeepRoundings,
    kJoinInPlace,
};

// A pass over a graph and over all bodies in it; bodies keep their signature. `ran` becomes true where it applies to
// any.
ir::Graph run_everywhere(const Pass& pass, ir::Graph graph, const PassContext& context, bool& ran) {
  if (pass.applies == nullptr || pass.applies(graph, context)) {
    graph = pass.run(graph, context);
    ran = true;
  }
  const auto has_body = [](const ir::Node& node) { return node.op == ir::Op::kLoop || node.op == ir::Op::kIf; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), has_body)) return graph;
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
    if (!has_body(node)) return std::nullopt;
    ir::Attrs attrs = node.attrs;
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&attr)) {
        attrs.set(name, std::make_shared<const ir::Graph>(run_everywhere(pass, **body, context, ran)));
      }
    }
    const ir::NodeId id = r.target().add(node.op, r(node.inputs), std::move(attrs), node.origins);
    return r.target().node(id).outputs;
  });
}

// Returns whether the pass applied.
bool run_and_verify(const Pass& pass, ir::Graph& graph, const PassContext& context, bool verify) {
  try {
    bool ran = false;
    graph = run_everywhere(pass, std::move(graph), context, ran);
    if (ran && verify) ir::verify(graph);
    return ran;
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
    check_cancelled();
    const double start = wall_seconds();
    const bool ran = run_and_verify(pass, current, context, options.verify);
    const double time = wall_seconds() - start;
    if (ran && options.observe) options.observe({pass.name, time}, current);
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
  for (const Pass* pass : passes) run_and_verify(*pass, current, context, true);
  return current;
}

QuantisedProducts find_quantised_products(const ir::Graph& graph, PassContext context) {
  QuantisedProducts found;
  context.quantised = &found;
  ir::Graph current = graph;
  for (const Pass& pass : pipeline()) {
    run_and_verify(pass, current, context, false);
    if (pass.run == quantized_weights) break;
  }
  return found;
}

}  // namespace heddle::passes
