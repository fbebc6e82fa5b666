#include "passes/contraction/conv_phases.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/divide.h"
#include "ir/reference/scalar.h"
#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

constexpr int64_t kMostConvolutions = 32;  // of one: each is a kernel

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
int64_t ceil_of(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}
int64_t mod(int64_t a, int64_t b) {
  return a - floor_div(a, b) * b;
}

// A spatial dimension of a convolution.
struct Dim {
  int64_t in, kernel, out;
  int64_t stride, dilation, spread, low;
};

Dim dim_of(const Attrs& attrs, const Shape& x, const Shape& w, const Shape& y, size_t d) {
  return {x[1 + d],
          w[2 + d],
          y[1 + d],
          attrs.ints("strides")[d],
          attrs.ints("dilations")[d],
          attrs.ints("lhs_dilations")[d],
          attrs.ints("low")[d]};
}

// All phases of a dimension as channels: result `spread * q + phase - crop`.
struct Merged {
  int64_t window = 1;  // taps of each phase
  int64_t count = 0;   // results of each phase
  int64_t crop = 0;    // results before the first one
  int64_t first = 0;   // the element of the image under the first tap of the first results
  int64_t before = 0;  // zeros before the first tap, for the last phase to begin with a whole tap
};

std::optional<Merged> merge(const Dim& d) {
  if (d.stride != 1 || d.dilation != 1) return std::nullopt;
  const int64_t s = d.spread;
  std::optional<Merged> best;
  // Windows of ceil(kernel / spread) taps do for all phases if these begin at one of some places, the last of which may
  // be the only one that crops nothing.
  const int64_t slack = ceil_of(d.kernel, s) * s - d.kernel + 1;
  for (const int64_t crop : {int64_t{0}, mod(-(d.low + slack), s)}) {
    Merged m;
    m.crop = crop;
    m.first = ceil_of(-crop - d.low, s);
    m.window = floor_div(s - 1 - crop - d.low + d.kernel - 1, s) - m.first + 1;
    m.count = ceil_div(d.out + crop, s);
    m.before = s - 1 - (d.low + crop + m.first * s);
    if (!best || m.window * m.count < best->window * best->count) best = m;
  }
  return best;
}

// One phase of a dimension: results phase, phase + phases, ...
struct Phase {
  int64_t first_tap = 0, taps = 0;
  int64_t first = 0;  // the element of the image under the first tap of the first result; may be negative
};

// What all phases of a dimension have in common.
struct Separate {
  explicit Separate(const Dim& d)
      : phases(d.spread / std::gcd(d.spread, d.stride)),
        count(ceil_div(d.out, phases)),
        stride(d.stride / std::gcd(d.spread, d.stride)),
        dilation(d.dilation / std::gcd(d.spread, d.dilation)),
        tap_step(d.spread / std::gcd(d.spread, d.dilation)) {}
  int64_t phases, count;
  int64_t stride, dilation;
  int64_t tap_step;

  Phase phase(const Dim& d, int64_t which) const {
    for (int64_t tap = 0; tap < std::min(tap_step, d.kernel); ++tap) {
      const int64_t place = which * d.stride + tap * d.dilation - d.low;
      if (mod(place, d.spread) == 0) return {tap, ceil_div(d.kernel - tap, tap_step), floor_div(place, d.spread)};
    }
    return {};
  }
  // Taps of all phases together.
  int64_t taps(const Dim& d) const {
    int64_t all = 0;
    for (int64_t i = 0; i < phases; ++i) all += phase(d, i).taps;
    return all;
  }
  // Phases with taps; the results of others are zero.
  int64_t computed(const Dim& d) const {
    int64_t with_taps = 0;
    for (int64_t i = 0; i < phases; ++i) with_taps += phase(d, i).taps > 0 ? 1 : 0;
    return with_taps;
  }
};

double products_per_second(const Target& target, DType type, bool tf32) {
  if (!target.has_tensor_cores()) return target.cpu.peak_gflops() * 1e9 / 2 * target.cpu.threads;
  // f32 is three products of tf32, which has half the rate of 16-bit operands.
  const double slower = size_of(type) <= 2 ? 1 : tf32 ? 2 : 6;
  return target.gpu().model.chip.sustained_tflops * 1e12 / 2 / slower;
}

// Whether all that reads a result, through what goes element by element, wants its channels before its pixels.
bool is_stored_channels_first(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users,
                              ValueId value) {
  const auto ports = graph.outputs();
  if (std::any_of(ports.begin(), ports.end(), [&](const auto& port) { return port.value == value; })) return false;
  const std::vector<ir::NodeId>& readers = users[value];
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](ir::NodeId id) {
    const Node& node = graph.node(id);
    if (node.op == Op::kTranspose)
      return node.attrs.ints("perm").back() != static_cast<int64_t>(graph.shape(value).size()) - 1;
    return ir::is_elementwise(node.op) && is_stored_channels_first(graph, users, node.outputs[0]);
  });
}

class Phases {
 public:
  // `channels_first`: how the result is to lie in the end.
  Phases(Emitter& e, const Target& target, const Shape& result, bool channels_first)
      : e_(e), target_(target), result_(result), channels_first_(channels_first) {}

  std::optional<ValueId> run(ValueId x, ValueId w, const Attrs& attrs) {
    const size_t spatial = e_.shape(x).size() - 2;
    groups_ = attrs.integer("groups");
    if (attrs.text("layout") != "nhwc" || element_count(result_) == 0 || e_.count(x) == 0 || e_.count(w) == 0) {
      return std::nullopt;
    }
    std::vector<Dim> dims;
    for (size_t d = 0; d < spatial; ++d) dims.push_back(dim_of(attrs, e_.shape(x), e_.shape(w), result_, d));
    if (std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.spread == 1; })) return std::nullopt;
    // A kernel interleaves phases of the innermost dimension that are neighbouring channels.
    const int64_t innermost = attrs.ints("lhs_dilations").back();
    inner_phases_ = target_.traits().interleaves_columns && channels_first_ && innermost > 1 &&
                    2 * target_.cpu.lanes_f32() % innermost == 0;
    // Depthwise kernels read each element once; as phases in channels it would be a product of very few terms.
    const bool depthwise = groups_ > 1 && e_.shape(w)[1] == 1 && e_.shape(w)[0] == groups_ && !inner_phases_;
    auto apart = fastest(dims, w, x, attrs, !depthwise);
    if (!apart && depthwise) apart = fastest(dims, w, x, attrs, true);
    if (!apart) return std::nullopt;
    apart_ = *apart;
    return convolution(x, w, attrs, result_);
  }

 private:
  // For each dimension, whether its phases are convolutions of their own. Those of the other dimensions become
  // channels, which `may_merge` allows.
  std::optional<std::vector<bool>> fastest(const std::vector<Dim>& dims, ValueId w, ValueId x, const Attrs& attrs,
                                           bool may_merge) {
    const Shape& filters = e_.shape(w);
    const bool tf32 = attrs.has("tf32") && attrs.integer("tf32") != 0;
    const double rate = products_per_second(target_, e_.dtype(x), tf32);
    std::optional<std::vector<bool>> best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned set = 0; set < 1u << dims.size(); ++set) {
      double products = static_cast<double>(result_[0] * filters[0] * filters[1]), kernels = 1;
      double computed = 1;  // share of the result
      int64_t merged_phases = 1;
      std::vector<bool> apart(dims.size());
      bool possible = true;
      for (size_t i = 0; i < dims.size() && possible; ++i) {
        const Dim& d = dims[i];
        apart[i] = (set >> i & 1) != 0;
        if (d.spread == 1) {
          possible = !apart[i];
          products *= static_cast<double>(d.out * d.kernel);
        } else if (apart[i]) {
          const Separate s(d);
          possible = s.phases <= kMostConvolutions;
          if (possible) {
            products *= static_cast<double>(s.count * s.taps(d));
            kernels *= static_cast<double>(s.computed(d));
            computed *= static_cast<double>(s.computed(d)) / static_cast<double>(s.phases);
          }
        } else {
          const auto m = merge(d);
          possible = m && may_merge;
          if (possible)
            products *=
                static_cast<double>(m->count * (leaves_out_zeros(dims, i, w) ? d.kernel : d.spread * m->window));
          merged_phases *= d.spread;
        }
      }
      if (!possible || kernels > kMostConvolutions) continue;
      const double seconds = products * in_vain(filters, merged_phases) / rate +
                             store_seconds(e_.dtype(x), set != 0 ? computed : 0) +
                             (set != 0 ? (kernels + 1) * launch_seconds() : 0);
      if (seconds < least) least = seconds, best = apart;
    }
    return best;
  }
  // How many times the columns of a group its vectors have: kernels of a CPU compute whole ones.
  double in_vain(const Shape& filters, int64_t phases) const {
    if (target_.has_tensor_cores() || (phases == 1 && filters[1] == 1)) return 1;
    const int64_t columns = filters[0] / groups_ * phases, lanes = target_.cpu.lanes_f32();
    return static_cast<double>(ceil_div(columns, lanes) * lanes) / static_cast<double>(columns);
  }
  // Whether the phases of a dimension that became channels have panels of filters of their own: kernels of a CPU leave
  // out the taps that are zero in all of a panel.
  bool leaves_out_zeros(const std::vector<Dim>& dims, size_t dim, ValueId w) {
    if (target_.has_tensor_cores() || !e_.is_constant(w)) return false;
    int64_t columns = e_.shape(w)[0] / groups_;
    for (size_t d = dim + 1; d < dims.size(); ++d) columns *= dims[d].spread;
    return columns >= 2 * target_.cpu.lanes_f32();
  }
  // Interleaving phases that are apart reads them, `apart` being their share of the result, and writes the result once
  // more. If the result has its channels first, a CPU stores each element alone, in a cache line of its own, unless a
  // kernel interleaves the phases.
  double store_seconds(DType type, double apart) const {
    constexpr double kLine = 64;
    const bool is_scattered = !target_.has_tensor_cores() && channels_first_ && (apart > 0 || !inner_phases_);
    const auto size = static_cast<double>(size_of(type));
    const double bytes = (apart > 0 ? (1 + apart) * size : 0) + (is_scattered ? kLine : 0);
    return static_cast<double>(element_count(result_)) * bytes / target_.copy_bytes_per_second();
  }
  double launch_seconds() const {
    return target_.has_tensor_cores() ? target_.gpu().model.chip.graph_boundary_us * 1e-6
                                      : target_.cpu.barrier_us * 1e-6;
  }

  // The convolution with a result of the shape `y`; some dimensions may have been done.
  ValueId convolution(ValueId x, ValueId w, const Attrs& attrs, const Shape& y) {
    for (size_t d = 0; d < apart_.size(); ++d) {
      if (apart_[d] && attrs.ints("lhs_dilations")[d] != 1) return separate(x, w, attrs, y, d);
    }
    return merged(x, w, attrs, y);
  }

  ValueId separate(ValueId x, ValueId w, const Attrs& attrs, const Shape& y, size_t d) {
    const Dim dim = dim_of(attrs, e_.shape(x), e_.shape(w), y, d);
    const Separate s(dim);
    Shape of_phase = y;
    of_phase[1 + d] = s.count;
    Shape with_phase = of_phase;
    with_phase.insert(with_phase.begin() + 2 + static_cast<int64_t>(d), 1);
    std::vector<ValueId> parts;
    for (int64_t i = 0; i < s.phases; ++i) {
      const Phase phase = s.phase(dim, i);
      const int64_t reach = phase.first + (s.count - 1) * s.stride + (phase.taps - 1) * s.dilation + 1;
      ValueId part;
      if (phase.taps == 0 || phase.first >= dim.in || reach <= 0) {
        part = e_.broadcast(e_.constant(ir::splat(result_type(x, attrs), {}, 0)), of_phase, {});
      } else {
        Ints starts(e_.shape(w).size(), 0), steps(starts.size(), 1);
        starts[2 + d] = phase.first_tap, steps[2 + d] = s.tap_step;
        const ValueId filters = e_.slice(w, starts, e_.shape(w), steps);
        Attrs changed = attrs;
        set(changed, "strides", d, s.stride), set(changed, "dilations", d, s.dilation);
        const ValueId image = placed(x, changed, d, {phase.first, reach, phase.taps == 1});
        part = convolution(image, filters, changed, of_phase);
      }
      parts.push_back(e_.reshape(part, with_phase));
    }
    const ValueId all =
        parts.size() == 1 ? parts[0] : e_.emit(Op::kConcat, parts, {{"dim", static_cast<int64_t>(2 + d)}});
    Shape together = of_phase;
    together[1 + d] *= s.phases;
    return cut(e_.reshape(all, together), Ints(y.size(), 0), y);
  }

  ValueId merged(ValueId x, ValueId w, const Attrs& attrs, const Shape& y) {
    const size_t spatial = y.size() - 2;
    Attrs changed = attrs;
    std::vector<Merged> phases(spatial);
    Ints spreads = attrs.ints("lhs_dilations"), crops(y.size(), 0);
    if (std::all_of(spreads.begin(), spreads.end(), [](int64_t s) { return s == 1; }))
      return e_.emit(Op::kConv, {x, w}, attrs);
    for (size_t d = 0; d < spatial; ++d) {
      if (spreads[d] == 1) continue;
      const Dim dim = dim_of(attrs, e_.shape(x), e_.shape(w), y, d);
      phases[d] = *merge(dim);
      crops[1 + d] = phases[d].crop;
      const Merged& m = phases[d];
      x = placed(x, changed, d, {m.first, m.first + m.count + m.window - 1, m.window == 1});
    }
    const ValueId wide = e_.emit(Op::kConv, {x, filters_of_phases(w, phases, spreads)}, changed);
    return cut(interleaved(wide, spreads), crops, y);
  }

  // The elements of a dimension that windows reach.
  struct Reach {
    int64_t first, end;
    bool pointwise;  // windows of one tap
  };
  // Sets the padding of a dimension. What lies in front of the first window is cut off, since kernels want no negative
  // padding, and so is what lies after the last window of one tap: kernels want a plain product.
  ValueId placed(ValueId x, Attrs& attrs, size_t d, const Reach& reach) {
    const int64_t in = e_.shape(x)[1 + d];
    const bool cuts = reach.first > 0 || reach.pointwise;
    set(attrs, "lhs_dilations", d, 1);
    set(attrs, "low", d, std::max<int64_t>(-reach.first, 0));
    set(attrs, "high", d, cuts ? std::max<int64_t>(reach.end - in, 0) : reach.end - in);
    Ints starts(e_.shape(x).size(), 0), limits = e_.shape(x);
    starts[1 + d] = std::max<int64_t>(reach.first, 0);
    if (cuts) limits[1 + d] = std::min(reach.end, in);
    return e_.slice(x, starts, limits, Ints(starts.size(), 1));
  }

  // [groups * o, c, kernel...] -> [groups * phases... * o, c, window...]; the last phases behind o where they are to be
  // interleaved.
  ValueId filters_of_phases(ValueId w, const std::vector<Merged>& phases, const Ints& spreads) {
    const Shape shape = e_.shape(w);
    Ints low(shape.size(), 0), high(shape.size(), 0), turned, of_phases, of_windows;
    Shape split = {groups_, shape[0] / groups_, shape[1]}, result = {shape[0], shape[1]};
    for (size_t d = 0; d < phases.size(); ++d) {
      const int64_t taps = spreads[d] == 1 ? shape[2 + d] : phases[d].window;
      if (spreads[d] != 1) {
        low[2 + d] = phases[d].before;
        high[2 + d] = taps * spreads[d] - shape[2 + d] - phases[d].before;
      }
      of_windows.push_back(static_cast<int64_t>(split.size())), of_phases.push_back(of_windows.back() + 1);
      split.push_back(taps), split.push_back(spreads[d]);
      if (spreads[d] != 1) turned.push_back(of_phases.back());
      result[0] *= spreads[d], result.push_back(taps);
    }
    Ints perm = {0};
    perm.insert(perm.end(), of_phases.begin(), of_phases.end() - (has_inner(spreads) ? 1 : 0));
    perm.push_back(1);
    if (has_inner(spreads)) perm.push_back(of_phases.back());
    perm.push_back(2);
    perm.insert(perm.end(), of_windows.begin(), of_windows.end());
    const ValueId zero = e_.constant(ir::splat(e_.dtype(w), {}, 0));
    const ValueId whole =
        e_.emit(Op::kPad, {w, zero}, {{"low", low}, {"high", high}, {"mode", std::string("constant")}});
    const ValueId taps = e_.emit(Op::kReverse, {e_.reshape(whole, split)}, {{"dims", turned}});
    return e_.reshape(e_.transpose(taps, perm), result);
  }

  // Whether phases of the innermost dimension are behind the channels.
  bool has_inner(const Ints& spreads) const { return inner_phases_ && spreads.back() > 1; }

  // [N, q..., groups * phases... * o] -> [N, q * phases..., groups * o]
  ValueId interleaved(ValueId wide, const Ints& spreads) {
    const Shape shape = e_.shape(wide);
    const auto spatial = static_cast<int64_t>(spreads.size());
    Shape split(shape.begin(), shape.end() - 1), result = {shape[0]};
    split.push_back(groups_);
    int64_t features = shape.back();
    Ints perm = {0};
    for (int64_t d = 0; d < spatial; ++d) {
      split.push_back(spreads[at(d)]);
      result.push_back(shape[at(1 + d)] * spreads[at(d)]);
      features /= spreads[at(d)];
      perm.push_back(1 + d), perm.push_back(2 + spatial + d);
    }
    split.push_back(features / groups_);
    result.push_back(features);
    perm.push_back(1 + spatial), perm.push_back(2 + 2 * spatial);
    if (has_inner(spreads)) {
      std::swap(split[at(1 + 2 * spatial)], split[at(2 + 2 * spatial)]);
      std::swap(perm[at(2 * spatial)], perm[at(2 * spatial + 2)]);
    }
    return e_.reshape(e_.transpose(e_.reshape(wide, split), perm), result);
  }

  // The elements from `starts` on in the shape of a result.
  ValueId cut(ValueId v, const Ints& starts, const Shape& result) {
    Ints limits = starts;
    for (size_t d = 0; d < limits.size(); ++d) limits[d] += result[d];
    return e_.slice(v, starts, limits, Ints(starts.size(), 1));
  }

  DType result_type(ValueId x, const Attrs& attrs) {
    if (attrs.has("out")) return attrs.dtype("out");
    const DType type = e_.dtype(x);
    return type == DType::kI8 || type == DType::kU8 ? DType::kI32 : type;
  }

  static void set(Attrs& attrs, const char* name, size_t d, int64_t value) {
    Ints all = attrs.ints(name);
    all[d] = value;
    attrs.set(name, all);
  }

  Emitter& e_;
  const Target& target_;
  const Shape result_;
  const bool channels_first_;
  bool inner_phases_ = false;
  int64_t groups_ = 1;
  std::vector<bool> apart_;
};

}  // namespace

ir::Graph conv_phases(const ir::Graph& graph, const PassContext& context) {
  ir::Rewriter rewriter(graph);
  Emitter e(rewriter, canonical_rules());
  const auto users = ir::users(graph);
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kConv) return std::nullopt;
    const std::vector<ValueId> in = r(node.inputs);
    const bool channels_first = is_stored_channels_first(graph, users, node.outputs[0]);
    const auto result =
        Phases(e, context.target, graph.shape(node.outputs[0]), channels_first).run(in[0], in[1], node.attrs);
    if (!result) return std::nullopt;
    return std::vector{*result};
  });
}

}  // namespace heddle::passes
