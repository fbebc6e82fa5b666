#include "passes/layout/channels_first.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "ir/analysis/planes.h"

namespace heddle::passes {
namespace {

// Steps of a core that each work on a vector: a multiply-add, or a load and a store.
constexpr double kTransposeSteps = 8;        // a vector of a value whose layout changes between two kernels
constexpr double kStoreTransposedSteps = 2;  // one that an epilogue stores in the other layout,
constexpr double kScatterSteps = 100;        // or lane by lane: of Winograd's form, and of depthwise convolutions
constexpr double kCopySteps = 2;             // one that is copied with its padding

constexpr double kGroupSteps = 150;  // a group of an image beside its multiply-adds

enum Side : uint8_t { kFirst, kLast };
using Steps = std::array<double, 2>;

double count(int64_t n) {
  return static_cast<double>(n);
}
double in_vectors(int64_t elements, double lanes) {
  return std::ceil(count(elements) / lanes);
}

// Of a convolution in either layout.
class ConvSteps {
 public:
  ConvSteps(const ir::Graph& graph, const Node& node, double lanes) : lanes_(lanes) {
    const Shape &x = graph.shape(node.inputs[0]), &w = graph.shape(node.inputs[1]);
    const Shape& y = graph.shape(node.outputs[0]);
    groups_ = node.attrs.integer("groups");
    c_ = w[1], o_ = w[0] / groups_;
    inputs_ = element_count(x), width_ = y.back(), images_ = x[0];
    rows_ = element_count(y) / std::max<int64_t>(w[0] * width_, 1);
    taps_ = element_count(w) / (w[0] * w[1]);
    strides_ = node.attrs.ints("strides"), kernel_ = Shape(w.begin() + 2, w.end());
    const auto zero = [](int64_t pad) { return pad == 0; };
    padded_ = !std::all_of(node.attrs.ints("low").begin(), node.attrs.ints("low").end(), zero) ||
              !std::all_of(node.attrs.ints("high").begin(), node.attrs.ints("high").end(), zero);
    dense_ = std::all_of(strides_.begin(), strides_.end(), [](int64_t s) { return s == 1; });
  }

  double first() const {
    const bool is_line = taps_ == 1 && dense_ && !padded_;
    const double vectors = is_line ? in_vectors(rows_ * width_, lanes_) : count(rows_) * in_vectors(width_, lanes_);
    const double loads = o_ == 1 ? 1.3 : 1;  // bound by loads
    const bool copies = padded_ || strides_.back() > 1;
    const double copied = copies ? kCopySteps * count(inputs_) / lanes_ : 0;
    const double products = loads * vectors * count(groups_ * o_ * taps_ * c_);
    return products + copied + kGroupSteps * count(images_ * groups_);
  }

  // Whether the kernels for channels last store results lane by lane where they are to have them first.
  bool scatters() const { return is_depthwise() || is_winograd(); }

  double last() const {
    const double pixels = count(rows_ * width_), k = count(taps_ * c_);
    if (is_depthwise()) {
      const double parts = count(groups_) < lanes_ || groups_ % static_cast<int64_t>(lanes_) != 0 ? 1.3 : 1;
      return parts * pixels * k * in_vectors(groups_, lanes_);
    }
    // A micro tile of one vector is bound by loads.
    const double vectors = in_vectors(o_, lanes_), direct = pixels * count(groups_) * k * std::max(vectors, 1.5);
    if (!is_winograd()) return direct;
    const double products = 36 * count(c_) * vectors;
    const double transforms = 240 * in_vectors(c_, lanes_) + 220 * vectors;
    return std::min(direct, pixels / 16 * (products + transforms));
  }

 private:
  bool is_depthwise() const { return c_ == 1 && o_ == 1 && groups_ > 1; }
  bool is_winograd() const { return groups_ == 1 && dense_ && kernel_ == Shape{3, 3} && c_ >= 8 && o_ >= 8; }

  double lanes_;
  int64_t groups_, c_, o_, inputs_, images_, width_, rows_, taps_;
  Ints strides_;
  Shape kernel_;
  bool padded_, dense_;
};

// A choice of sides for convolutions and windows, joined by the values that pass between them.
class Choice {
 public:
  Choice(const ir::Graph& graph, const Target& target)
      : graph_(graph), all_(target.traits().convolves_channels_first), lanes_(target.cpu.lanes_f32()) {
    steps_.resize(graph.nodes().size());
    joins_.resize(graph.nodes().size());
    store_steps_.resize(graph.nodes().size(), all_ ? kStoreTransposedSteps : kTransposeSteps);
    sources_.resize(graph.value_count());
    for (NodeId id = 0; id < graph.nodes().size(); ++id) visit(id);
    for (const ir::Graph::Port& output : graph.outputs()) {
      for (const NodeId from : sources_[output.value]) {
        if (from >= kTurned) continue;
        steps_[from][kLast] += store_steps_[from] * vectors(output.value);
      }
    }
  }

  std::vector<bool> best() const {
    std::vector<bool> result(steps_.size(), false);
    if (free_.empty()) return result;
    std::vector<Side> best;
    double least = 0;
    for (const Side start : {kLast, kFirst}) {
      std::vector<Side> sides(steps_.size(), start);
      for (const NodeId id : fixed_) sides[id] = kLast;
      improve(sides);
      const double total = this->total(sides);
      if (best.empty() || total < least) best = std::move(sides), least = total;
    }
    for (const NodeId id : free_) result[id] = best[id] == kFirst;
    return result;
  }

 private:
  static constexpr NodeId kBorder = UINT32_MAX;      // where layouts are those of the model
  static constexpr NodeId kTurned = UINT32_MAX - 1;  // where the model changes them, which goes away with channels last
  struct Join {
    NodeId other;
    double steps;  // where the two are on different sides
  };

  double vectors(ValueId value) const { return count(element_count(graph_.shape(value))) / lanes_; }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::kParameter) {
      sources_[node.outputs[0]] = {kBorder};
    } else if (node.op == Op::kConv && node.attrs.text("layout") == "nchw") {
      decide_conv(id);
    } else if (node.op == Op::kWindowReduce && is_spatial(node.attrs)) {
      constexpr size_t kMostRank = 4;
      (all_ || node.attrs.ints("window").size() <= kMostRank ? free_ : fixed_).push_back(id);
      join_sources(node.inputs[0], id, kTransposeSteps);
      sources_[node.outputs[0]] = {id};
    } else if (ir::is_elementwise(node.op) || ir::class_of(node.op) == ir::OpClass::kLayout || node.op == Op::kGather) {
      pass_on(node);
    }
  }

  void decide_conv(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (!all_) {
      (ir::filters_planes(graph_, node) ? free_ : fixed_).push_back(id);
      join_sources(x, id, kTransposeSteps);
      sources_[y] = {id};
      return;
    }
    const Ints& spread = node.attrs.ints("lhs_dilations");
    const bool plain = std::all_of(spread.begin(), spread.end(), [](int64_t s) { return s == 1; });
    // A long sum, or many channels, is a matter of other kernels, unless these would compute most lanes in vain.
    constexpr int64_t kLongest = 1024, kLongestOfFew = 8192;
    const Shape& w = graph_.shape(node.inputs[1]);
    const bool is_narrow = 2 * count(w[0] / node.attrs.integer("groups")) <= lanes_;
    const bool able = plain && graph_.dtype(x) == DType::kF32 && graph_.dtype(node.inputs[1]) == DType::kF32 &&
                      element_count(w) <= (is_narrow ? kLongestOfFew : kLongest) * w[0] &&
                      element_count(graph_.shape(y)) > 0;
    (able ? free_ : fixed_).push_back(id);
    if (able) {
      const ConvSteps steps(graph_, node, lanes_);
      steps_[id] = {steps.first(), steps.last()};
      if (steps.scatters()) store_steps_[id] = kScatterSteps;
    }
    // A kernel that copies its image reads few channels in either layout.
    constexpr int64_t kFew = 4;
    const bool reads_either = node.attrs.integer("groups") == 1 && graph_.shape(x)[1] <= kFew;
    join_sources(x, id, reads_either && sources_[x] == std::set<NodeId>{kBorder} ? 0 : kTransposeSteps);
    sources_[y] = {id};
  }

  void join(NodeId a, NodeId b, double steps) {
    if (a == b) return;
    if (a >= kTurned) std::swap(a, b);
    if (a >= kTurned) return;
    if (b >= kTurned) {
      steps_[a][b == kBorder ? kLast : kFirst] += steps;
      return;
    }
    joins_[a].push_back({b, steps});
    joins_[b].push_back({a, steps});
  }
  void join_sources(ValueId value, NodeId reader, double steps) {
    for (const NodeId from : sources_[value]) join(from, reader, steps * vectors(value));
  }

  // Operands of one node have one layout.
  void pass_on(const Node& node) {
    if (node.op == Op::kTranspose && !all_) {
      for (const NodeId from : sources_[node.inputs[0]]) join(from, kTurned, kTransposeSteps * vectors(node.inputs[0]));
      sources_[node.outputs[0]] = {kTurned};
    }
    if (node.op == Op::kTranspose || node.op == Op::kBroadcast) return;
    std::set<NodeId> all;
    for (const ValueId v : node.inputs) {
      constexpr size_t kMost = 8;
      for (const NodeId from : sources_[v]) {
        for (const NodeId other : all) join(from, other, kTransposeSteps * vectors(v));
        if (all.size() < kMost) all.insert(from);
      }
    }
    for (const ValueId v : node.outputs) sources_[v] = all;
  }

  void improve(std::vector<Side>& sides) const {
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      bool changed = false;
      for (const NodeId id : free_) {
        Steps steps = steps_[id];
        for (const Join& join : joins_[id]) steps[sides[join.other] == kFirst ? kLast : kFirst] += join.steps;
        const Side side = steps[kFirst] < steps[kLast] ? kFirst : kLast;
        changed = changed || side != sides[id];
        sides[id] = side;
      }
      if (!changed) return;
    }
  }

  double total(const std::vector<Side>& sides) const {
    double sum = 0;
    for (const std::vector<NodeId>* ids : {&free_, &fixed_}) {
      for (const NodeId id : *ids) {
        sum += steps_[id][sides[id]];
        for (const Join& join : joins_[id]) sum += sides[join.other] != sides[id] ? join.steps / 2 : 0;
      }
    }
    return sum;
  }

  const ir::Graph& graph_;
  const bool all_;  // convolutions can have channels first, else depthwise ones, whose steps are alike
  const double lanes_;
  std::vector<NodeId> free_, fixed_;
  std::vector<Steps> steps_;               // by node
  std::vector<double> store_steps_;        // by node, a vector of results in the other layout
  std::vector<std::vector<Join>> joins_;   // by node
  std::vector<std::set<NodeId>> sources_;  // by value
};

}  // namespace

bool is_spatial(const ir::Attrs& attrs) {
  const Ints& window = attrs.ints("window");
  return window.size() >= 3 && window[0] == 1 && window[1] == 1 && attrs.ints("strides")[1] == 1 &&
         attrs.ints("low")[1] == 0 && attrs.ints("high")[1] == 0;
}

std::vector<bool> better_channels_first(const ir::Graph& graph, const Target& target) {
  return Choice(graph, target).best();
}

}  // namespace heddle::passes
