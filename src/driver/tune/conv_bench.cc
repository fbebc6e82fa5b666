#include "driver/tune/conv_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "heddle/error.h"

namespace heddle::driver {
namespace {

void require_sizes(const ConvProblem& p) {
  const auto refuse = [](const std::string& why) { fail(ErrorCode::kInvalidArgument, "kernel", why); };
  if (std::min({p.batch, p.height, p.width, p.channels, p.filters, p.window, p.stride, p.groups}) < 1 ||
      std::min(p.rows, p.out) < 0) {
    refuse("all sizes have to be at least 1");
  }
  if (p.channels % p.groups != 0 || p.filters % p.groups != 0) {
    refuse(fmt::format("{} groups do not divide {} channels and {} filters", p.groups, p.channels, p.filters));
  }
}

class ConvText {
 public:
  explicit ConvText(const ConvProblem& p) : p_(p), type_(to_string(p.type)) {}

  std::string text() {
    const bool product = p_.rows > 0;
    shape_ = product ? Shape{p_.rows, p_.channels} : Shape{p_.batch, p_.height, p_.width, p_.channels};
    const std::string input = fmt::format("%x: {}", typed(shape_));
    value_ = "x";
    if (product) {
      dot("w0", p_.filters);
    } else {
      conv("w0", p_.filters, p_.window, p_.stride, p_.groups);
    }
    relu();
    if (p_.out > 0) {
      if (product) {
        dot("w1", p_.out);
      } else {
        conv("w1", p_.out, 1, 1, 1);
      }
      relu();
    }
    return fmt::format("graph g({}) {{\n{}  return \"y\" = %{}\n}}", input, text_, value_);
  }

 private:
  std::string typed(const Shape& shape) const { return fmt::format("{}[{}]", type_, fmt::join(shape, ",")); }
  void line(const std::string& text) {
    const std::string name = fmt::format("v{}", count_++);
    text_ += fmt::format("  %{} = {} : {}\n", name, text, typed(shape_));
    value_ = name;
  }
  // Small, of either sign, in no simple order.
  void weight(const std::string& name, const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(static_cast<int>((i * 2654435761u >> 7) % 15) - 7) / 32;
    }
    text_ += fmt::format("  %{} = constant {{value = {}{{{}}}}}\n", name, typed(shape), fmt::join(values, ","));
  }
  void dot(const std::string& name, int64_t columns) {
    weight(name, {shape_[1], columns});
    shape_[1] = columns;
    line(fmt::format("dot(%{}, %{}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}", value_,
                     name));
  }
  void conv(const std::string& name, int64_t filters, int64_t window, int64_t stride, int64_t groups) {
    weight(name, {filters, shape_[3] / groups, window, window});
    const int64_t pad = window / 2, after = window - 1 - pad;
    shape_ = {shape_[0], (shape_[1] - 1) / stride + 1, (shape_[2] - 1) / stride + 1, filters};
    line(
        fmt::format("conv(%{0}, %{1}) {{strides = [{2},{2}], low = [{3},{3}], high = [{4},{4}], dilations = [1,1], "
                    "lhs_dilations = [1,1], groups = {5}, layout = \"nhwc\"}}",
                    value_, name, stride, pad, after, groups));
  }
  void relu() {
    const std::string before = value_;
    const std::string zero = fmt::format("zero{}", count_);
    text_ += fmt::format("  %{} = constant {{value = {}[]{{0}}}}\n", zero, type_);
    line(fmt::format("broadcast(%{}) {{shape = [{}], dims = []}}", zero, fmt::join(shape_, ",")));
    line(fmt::format("max(%{}, %{})", before, value_));
  }

  const ConvProblem& p_;
  const std::string type_;
  Shape shape_;
  std::string value_, text_;
  int count_ = 0;
};

// Of some results: the operands of the graph, and the result.
class ConvReference {
 public:
  ConvReference(const ConvProblem& p, const ir::Graph& graph, const CudaTrial& trial) : p_(p) {
    x_ = trial.values(graph.inputs()[0].value);
    std::vector<std::vector<double>*> weights{&w0_, &w1_};
    for (const ir::Node& node : graph.nodes()) {
      if (node.op != ir::Op::kDot && node.op != ir::Op::kConv) continue;
      *weights[found_++] = operand_values(graph, node.inputs[1], trial);
    }
    got_ = trial.values(graph.outputs()[0].value);
  }

  double error() const {
    constexpr int64_t kPlaces = 61;
    const int64_t columns = p_.out > 0 ? p_.out : p_.filters;
    const double unit = p_.type == DType::kF16 ? 0x1p-11 : 0x1p-8;
    double error = 0;
    for (const int64_t place : sampled(p_.results(), kPlaces)) {
      // Each rounding errs by half a unit of the sum of magnitudes at most.
      std::vector<double> value, size;
      first(place, value, size);
      if (p_.out > 0) second(value, size);
      for (int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<size_t>(c);
        error = larger_error(error, got_[static_cast<size_t>(place * columns) + at], value[at],
                             2 * unit * std::max(size[at], 0.01));
      }
    }
    return error;
  }

 private:
  void first(int64_t place, std::vector<double>& value, std::vector<double>& size) const {
    const int64_t inner = p_.channels / p_.groups, per_group = p_.filters / p_.groups;
    value.assign(static_cast<size_t>(p_.filters), 0), size = value;
    const auto add = [&](int64_t filter, double x, double w) {
      value[static_cast<size_t>(filter)] += x * w, size[static_cast<size_t>(filter)] += std::abs(x * w);
    };
    if (p_.rows > 0) {
      for (int64_t k = 0; k < p_.channels; ++k) {
        const double x = x_[static_cast<size_t>(place * p_.channels + k)];
        for (int64_t f = 0; f < p_.filters; ++f) add(f, x, w0_[static_cast<size_t>(k * p_.filters + f)]);
      }
    } else {
      const int64_t image = place / (p_.out_height() * p_.out_width());
      const int64_t row = place / p_.out_width() % p_.out_height() * p_.stride - p_.window / 2;
      const int64_t column = place % p_.out_width() * p_.stride - p_.window / 2;
      for (int64_t tap = 0; tap < p_.window * p_.window; ++tap) {
        const int64_t y = row + tap / p_.window, x = column + tap % p_.window;
        if (y < 0 || y >= p_.height || x < 0 || x >= p_.width) continue;
        const int64_t pixel = ((image * p_.height + y) * p_.width + x) * p_.channels;
        for (int64_t f = 0; f < p_.filters; ++f) {
          for (int64_t c = 0; c < inner; ++c) {
            add(f, x_[static_cast<size_t>(pixel + f / per_group * inner + c)],
                w0_[static_cast<size_t>((f * inner + c) * p_.window * p_.window + tap)]);
          }
        }
      }
    }
    for (double& v : value) v = std::max(v, 0.0);
  }
  void second(std::vector<double>& value, std::vector<double>& size) const {
    std::vector<double> sums(static_cast<size_t>(p_.out)), sizes = sums;
    for (int64_t c = 0; c < p_.filters; ++c) {
      for (int64_t o = 0; o < p_.out; ++o) {
        const double w = w1_[static_cast<size_t>(p_.rows > 0 ? c * p_.out + o : o * p_.filters + c)];
        sums[static_cast<size_t>(o)] += value[static_cast<size_t>(c)] * w;
        sizes[static_cast<size_t>(o)] += size[static_cast<size_t>(c)] * std::abs(w);
      }
    }
    for (double& v : sums) v = std::max(v, 0.0);
    value = std::move(sums), size = std::move(sizes);
  }

  const ConvProblem& p_;
  size_t found_ = 0;
  std::vector<double> x_, w0_, w1_, got_;
};

}  // namespace

double ConvProblem::operations() const {
  const double depth =
      rows > 0 ? static_cast<double>(channels) : static_cast<double>(channels / groups * window * window);
  return 2 * static_cast<double>(results()) * static_cast<double>(filters) * (depth + static_cast<double>(out));
}

GroupProblem conv_problem(const ConvProblem& problem) {
  require_sizes(problem);
  GroupProblem group = group_problem(ConvText(problem).text(),
                                     problem.out > 0 ? ir::GroupKind::kBackToBack : ir::GroupKind::kContraction);
  group.operations = problem.operations();
  group.error = [problem](const ir::Graph& graph, const CudaTrial& trial) {
    return ConvReference(problem, graph, trial).error();
  };
  return group;
}

}  // namespace heddle::driver
