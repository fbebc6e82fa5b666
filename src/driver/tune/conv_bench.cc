#include "driver/tune/conv_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "ir/text/text.h"

namespace heddle::driver {
namespace {

class ConvText {
 public:
  explicit ConvText(const ConvProblem& p) : p_(p), type_(to_string(p.type)) {}

  std::string text() {
    const bool product = p_.rows > 0;
    shape_ = {product ? p_.rows : p_.batch};
    if (!product) shape_.insert(shape_.end(), p_.image.begin(), p_.image.end());
    shape_.push_back(p_.channels);
    const std::string input = fmt::format("%x: {}", typed(shape_));
    value_ = "x";
    if (product) {
      dot("w0", p_.filters);
    } else {
      conv("w0", p_);
    }
    relu();
    if (p_.out > 0) {
      if (product) {
        dot("w1", p_.out);
      } else {
        conv("w1", pointwise());
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
  // The second convolution, of what the first one makes.
  ConvProblem pointwise() const {
    const ConvProblem::Extents zeros(p_.image.size(), 0), ones(p_.image.size(), 1);
    ConvProblem next;
    next.filters = p_.out, next.image.assign(shape_.begin() + 1, shape_.end() - 1);
    next.window = next.stride = next.dilation = ones, next.before = next.after = zeros;
    return next;
  }
  // Of a value with channels last.
  void conv(const std::string& name, const ConvProblem& c) {
    Shape filters = {c.filters, shape_.back() / c.groups};
    filters.insert(filters.end(), c.window.begin(), c.window.end());
    weight(name, filters);
    for (size_t d = 0; d < c.image.size(); ++d) shape_[1 + d] = c.result(d);
    shape_.back() = c.filters;
    const ConvProblem::Extents ones(c.image.size(), 1);
    line(fmt::format(
        "conv(%{}, %{}) {{strides = [{}], low = [{}], high = [{}], dilations = [{}], lhs_dilations = "
        "[{}], groups = {}, layout = \"nhwc\"}}",
        value_, name, fmt::join(c.transposed ? ones : c.stride, ","), fmt::join(c.before, ","), fmt::join(c.after, ","),
        fmt::join(c.dilation, ","), fmt::join(c.transposed ? c.stride : ones, ","), c.groups));
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

// Of some results: the operands of the graph before any pass, and the result.
class ConvReference {
 public:
  ConvReference(const ConvProblem& p, const ir::Graph& given, const GroupProblem& compiled,
                const tune::GroupTrial& trial)
      : p_(p) {
    x_ = trial.values(compiled.graph.inputs()[0].value);
    std::vector<std::vector<double>*> weights{&w0_, &w1_};
    for (const ir::Node& node : given.nodes()) {
      if (node.op != ir::Op::kDot && node.op != ir::Op::kConv) continue;
      *weights[found_++] = operand_values(given, node.inputs[1], trial);
    }
    got_ = trial.values(compiled.result());
  }

  double error() const {
    constexpr int64_t kPlaces = 61;
    const int64_t columns = p_.out > 0 ? p_.out : p_.filters;
    // In f32 the sums themselves err, and those of Winograd's transforms by more.
    const double unit = p_.type == DType::kF16 ? 0x1p-11 : p_.type == DType::kBF16 ? 0x1p-8 : 0x1p-20;
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
      const int64_t taps = element_count(p_.window);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t pixel = pixel_under(place, tap);
        if (pixel < 0) continue;
        for (int64_t f = 0; f < p_.filters; ++f) {
          for (int64_t c = 0; c < inner; ++c) {
            add(f, x_[static_cast<size_t>(pixel * p_.channels + f / per_group * inner + c)],
                w0_[static_cast<size_t>((f * inner + c) * taps + tap)]);
          }
        }
      }
    }
    for (double& v : value) v = std::max(v, 0.0);
  }
  // Of the images, under a tap of the window of a result; -1: a zero.
  int64_t pixel_under(int64_t place, int64_t tap) const {
    int64_t pixel = 0, size = 1;
    for (size_t d = p_.image.size(); d-- > 0;) {
      const int64_t at = place % p_.result(d), step = p_.transposed ? p_.stride[d] : 1;
      const int64_t y = at * (p_.transposed ? 1 : p_.stride[d]) + tap % p_.window[d] * p_.dilation[d] - p_.before[d];
      if (y < 0 || y % step != 0 || y / step >= p_.image[d]) return -1;
      pixel += y / step * size, size *= p_.image[d];
      place /= p_.result(d), tap /= p_.window[d];
    }
    return place * size + pixel;
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

int64_t ConvProblem::results() const {
  if (rows > 0) return rows;
  int64_t count = batch;
  for (size_t d = 0; d < image.size(); ++d) count *= result(d);
  return count;
}

// Of a transposed convolution the zeros between elements do not count: each element of the image meets all taps.
double ConvProblem::operations() const {
  const double inner = static_cast<double>(channels / groups), columns = static_cast<double>(filters);
  const double last = 2 * static_cast<double>(results()) * columns * static_cast<double>(out);
  if (rows > 0) return 2 * static_cast<double>(rows) * columns * inner + last;
  const double places = static_cast<double>(transposed ? batch * element_count(image) : results());
  return 2 * places * columns * inner * static_cast<double>(element_count(window)) + last;
}

GroupProblem conv_problem(const ConvProblem& problem, const Target& target) {
  const std::string text = ConvText(problem).text();
  GroupProblem group =
      problem.out > 0 ? group_problem(ir::parse(text), ir::GroupKind::kBackToBack) : compiled_problem(text, target);
  group.operations = problem.operations();
  group.error = [problem, given = std::make_shared<ir::Graph>(ir::parse(text))](const GroupProblem& compiled,
                                                                                const tune::GroupTrial& trial) {
    return ConvReference(problem, *given, compiled, trial).error();
  };
  return group;
}

}  // namespace heddle::driver
