#include "schedule/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "schedule/attention/describe.h"
#include "schedule/attention/form.h"
#include "schedule/attention/masks/constant_mask.h"
#include "schedule/attention/pack_rows.h"
#include "schedule/backend.h"
#include "schedule/config/config_source.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/floor.h"
#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {
namespace {

// The nodes of a group as a group of their own.
ir::Group part_of(const ir::Graph& graph, const std::set<ir::NodeId>& nodes, ir::NodeId anchor,
                  std::vector<ir::ValueId> outputs) {
  ir::Group part{ir::GroupKind::kContraction, {nodes.begin(), nodes.end()}, anchor, {}, std::move(outputs)};
  for (const ir::NodeId id : part.nodes) {
    for (const ir::ValueId v : graph.node(id).inputs) {
      const bool known = std::find(part.inputs.begin(), part.inputs.end(), v) != part.inputs.end();
      if (!known && !nodes.contains(graph.value(v).producer)) part.inputs.push_back(v);
    }
  }
  return part;
}

std::string operand_text(const OperandView& o) {
  std::string text = fmt::format("{}:{}", o.row, o.k);
  for (const auto& [extent, stride] : o.batch) text += fmt::format(",{}:{}", extent, stride);
  return text;
}

// What a tuner's result is for (ConfigSource). Of masks: how many keys rows have, how many of them plain.
std::string problem_text(const AttentionDesc& d) {
  int64_t keys = 0, plain = 0;
  for (const KeyRange& r : d.ranges) keys += r.last - r.first, plain += r.plain_last - r.plain_first;
  size_t expressions = 0;
  visit_exprs(d.scores.pool, {d.scores.stores.at(0).value}, [&](ExprId) { ++expressions; });
  return fmt::format("attention {}{} {}x{}x{}x{}x{} q {} k {} v {}{}{}", to_string(d.type), d.tf32 ? " tf32" : "",
                     d.batch, d.m, d.n, d.depth, d.width, operand_text(d.q), operand_text(d.k), operand_text(d.v),
                     d.scaled ? "" : fmt::format(" scores {} keys {} plain {}", expressions, keys, plain),
                     d.sink ? " sink" : "") +
         (d.pages ? fmt::format(" pages {}", d.pages->keys) : "");
}

class AttentionScheduler {
 public:
  AttentionScheduler(const ir::Graph& graph, const ir::Group& group, const Target& target, ConfigSource* configs)
      : graph_(graph),
        group_(group),
        target_(target),
        backend_(backend_of(target).attention()),
        configs_(configs),
        builder_(graph, part_, target, nullptr) {}

  ScheduledGroup run() {
    backend_.check_target(target_);
    form_ = attention_form(graph_, group_);
    check_types();
    pack_rows(form_);
    describe();
    make_results();
    backend_.check(desc_, {graph_.dtype(form_.weights), graph_.dtype(group_.outputs[0])});
    return finish();
  }
  const AttentionDesc& desc() const { return desc_; }

 private:
  void check_types() {
    if (group_.outputs.size() != 1) refuse_attention("its result is of another type");
    for (const ir::NodeId id : form_.inside) {
      if (graph_.dtype(graph_.node(id).outputs[0]) == DType::kF64) refuse_attention("its softmax is computed in f64");
    }
  }

  void describe() {
    desc_ = describe_attention(
        form_, {[&](ir::ValueId v) { return builder_.input(v); }, [&](ir::ValueId v) { return graph_.dtype(v); },
                [&](ir::ValueId v) { return graph_.constant_of(v); }, backend_.reads_lengths()});
    const auto rounds = [&](ir::NodeId product) {
      const ir::Attrs& attrs = graph_.node(product).attrs;
      return attrs.has("tf32") && attrs.integer("tf32") != 0;
    };
    desc_.tf32 = desc_.type == DType::kF32 && rounds(form_.scores_product) && rounds(form_.values_product);
  }

  void make_results() {
    std::set<ir::NodeId> after{form_.values_product};
    for (const ir::NodeId id : group_.nodes) {
      const auto& inputs = graph_.node(id).inputs;
      if (std::any_of(inputs.begin(), inputs.end(),
                      [&](ir::ValueId v) { return after.contains(graph_.value(v).producer); })) {
        after.insert(id);
      }
    }
    part_ = part_of(graph_, after, form_.values_product, group_.outputs);
    for (const auto& [quotient, dividend] : form_.divisions) builder_.set_same(quotient, dividend);
    builder_.make_epilogue(desc_.batch, desc_.m, desc_.width, backend_.lanes(target_), form_.result_at);
    desc_.epilogue = std::move(builder_.desc().epilogue);
    name_result(desc_);
  }

  // Pairs of a row and a key of one batch whose score must be computed; 0, a lower bound, if the number of keys is
  // known only at run time.
  double pairs() const {
    if (desc_.length) return 0;
    if (desc_.ranges.empty()) return static_cast<double>(desc_.m) * static_cast<double>(desc_.n);
    double pairs = 0;
    for (size_t i = 0; i < desc_.ranges.size(); ++i) {
      const int64_t rows = std::min(kCellRows, desc_.m - static_cast<int64_t>(i) * kCellRows);
      pairs += static_cast<double>(rows * (desc_.ranges[i].last - desc_.ranges[i].first));
    }
    return pairs;
  }

  double floor_of(const ScheduledKernel& kernel) const {
    ContractionDesc products;
    products.problem = peak();
    std::vector<double> bytes = operand_traffic(graph_, group_, kernel);
    if (desc_.length) bytes[desc_.k.operand] = bytes[desc_.v.operand] = 0;  // keys may stay unread
    const double moved = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const double operations =
        2 * static_cast<double>(desc_.batch) * pairs() * static_cast<double>(desc_.depth + desc_.width);
    return backend_of(target_).floor_seconds(products, moved, operations, target_);
  }

  Product peak() const {
    Product peak;
    peak.multiply_a = peak.multiply_b = desc_.type;
    peak.tf32 = desc_.tf32;
    return peak;
  }

  ScheduledGroup finish() {
    const Config config =
        choose_config(configs_, {problem_text(desc_)}, [&] { return backend_.candidates(desc_, target_); });
    builder_.desc().problem = peak();
    const std::string label = fmt::format("attention {}x{}x{}x{}{}{}{}{}", desc_.batch, desc_.m, desc_.n, desc_.depth,
                                          desc_.width == desc_.depth ? "" : fmt::format("x{}", desc_.width),
                                          desc_.scaled ? "" : " + scores", desc_.sink ? " + sink" : "",
                                          desc_.pages ? fmt::format(", pages of {} keys", desc_.pages->keys) : "");
    ScheduledGroup result;
    result.notes = {fmt::format("{}: {}", label, config.reason)};
    result.kernels.push_back(builder_.finish(config, label, 0));
    result.kernels[0].floor_seconds = floor_of(result.kernels[0]);
    result.kernels[0].desc.body = std::make_shared<const AttentionDesc>(desc_);
    return result;
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Target& target_;
  const AttentionBackend& backend_;
  ConfigSource* const configs_;
  ir::Group part_{};  // that the builder looks at
  ContractionBuilder builder_;
  AttentionForm form_;
  AttentionDesc desc_;
};

}  // namespace

ScheduledGroup schedule_attention(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                  ConfigSource* configs) {
  return AttentionScheduler(graph, group, target, configs).run();
}

bool can_attend(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason) {
  try {
    AttentionScheduler scheduler(graph, group, target, nullptr);
    const double fused = scheduler.run().kernels.at(0).config.predicted_us;
    const AttentionBackend& backend = backend_of(target).attention();
    const double separate = backend.separate_us(scheduler.desc(), target);
    const auto& pages = scheduler.desc().pages;
    const bool yes = fused < separate;
    *reason = fmt::format(
        "{}{}: {:.1f} us predicted, {:.1f} us as product, softmax and product",
        yes ? fmt::format("scores stay in {}", backend.scores_place()) : std::string("as one kernel it is slower"),
        pages ? fmt::format(", keys are read in pages of {} through their table", pages->keys) : "", fused, separate);
    return yes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
    *reason = error.why();
    return false;
  }
}

}  // namespace heddle::schedule
