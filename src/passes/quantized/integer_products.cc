#include "passes/quantized/integer_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/group.h"
#include "passes/quantized/dequantized.h"
#include "passes/quantized/requantized.h"

namespace heddle::passes {
namespace {

// Products of more terms might not fit 32 bits: of differences of a byte and a zero point.
constexpr int64_t kMostSummed = 32768;

// An operand of a product, and what its dimensions are in it.
struct Side {
  Dequantized operand;
  Ints summed;            // dimensions
  Ints place;             // by dimension, its place in the result; -1 if it is summed
  bool constant = false;  // whether q is one
};

class IntegerProduct {
 public:
  IntegerProduct(ir::Rewriter& rewriter, DequantizedFinder& finder, const Node& node, const Target& target)
      : r_(rewriter), finder_(finder), node_(node), target_(target), b_(finder.builder()) {}

  // Computes the product in integers. Returns nullopt if the product stays in floats or has no dequantised operands.
  std::optional<ValueId> run(QuantisedProducts* products) {
    const bool found = find_sides();
    const std::string obstacle = found ? this->obstacle() : "one operand is not quantised";
    if (products != nullptr && (found || has_scale_[0] || has_scale_[1])) report(*products, found, obstacle);
    if (!obstacle.empty()) return std::nullopt;
    const ValueId sums = by_bytes() ? of_bytes() : of_shorts();
    return scaled(sums);
  }

 private:
  bool is_conv() const { return node_.op == Op::kConv; }
  const Shape& result_shape() const { return r_.source().shape(node_.outputs[0]); }
  DType result_type() const { return r_.source().dtype(node_.outputs[0]); }

  bool find_sides() {
    bool all = true;
    for (size_t i = 0; i < 2; ++i) {
      const auto found = finder_.find(r_(node_.inputs[i]));
      all = all && found;
      if (!found) continue;
      has_scale_[i] = found->scale.has_value();
      sides_[i].operand = *found;
      sides_[i].constant = finder_.is_constant(found->q);
    }
    if (!all) return false;
    if (is_conv()) {
      place_conv();
    } else {
      place_dot();
    }
    return true;
  }

  void place_dot() {
    const auto& attrs = node_.attrs;
    sides_[0].summed = attrs.ints("lhs_contract"), sides_[1].summed = attrs.ints("rhs_contract");
    const Ints* batch[2] = {&attrs.ints("lhs_batch"), &attrs.ints("rhs_batch")};
    auto next = static_cast<int64_t>(batch[0]->size());
    for (size_t i = 0; i < 2; ++i) {
      Side& side = sides_[i];
      side.place.assign(b_.shape(side.operand.q).size(), -1);
      for (size_t d = 0; d < side.place.size(); ++d) {
        const auto dim = static_cast<int64_t>(d);
        const auto at = std::find(batch[i]->begin(), batch[i]->end(), dim);
        const bool summed = std::find(side.summed.begin(), side.summed.end(), dim) != side.summed.end();
        if (at != batch[i]->end()) side.place[d] = at - batch[i]->begin();
        if (at == batch[i]->end() && !summed) side.place[d] = next++;
      }
    }
  }

  void place_conv() {
    const size_t rank = result_shape().size();
    const int64_t features = node_.attrs.text("layout") == "nhwc" ? static_cast<int64_t>(rank) - 1 : 1;
    sides_[0].place.assign(rank, -1), sides_[1].place.assign(rank, -1);
    sides_[0].place[0] = 0, sides_[1].place[0] = features;
    for (size_t d = 1; d < rank; ++d) sides_[1].summed.push_back(static_cast<int64_t>(d));
  }

  int64_t terms() const {
    const Side& side = sides_[1];
    int64_t count = 1;
    for (const int64_t d : side.summed) count *= r_.source().shape(node_.inputs[1])[static_cast<size_t>(d)];
    return count;
  }

  static bool is_per_result(const Side& side, const std::optional<QuantParameter>& p) {
    return !p || p->is_scalar() || side.place[static_cast<size_t>(p->dim)] >= 0;
  }

  // Why the product of two dequantised operands stays in floats; empty if it does not.
  std::string obstacle() {
    const bool integers = result_type() == DType::kI32;
    if (!integers && result_type() != DType::kF32) return fmt::format("its result is {}", to_string(result_type()));
    if (!integers && terms() > kMostSummed) return fmt::format("32 bits do not hold sums of {} products", terms());
    if (sides_[0].constant && sides_[1].constant) return "both operands are constant";
    for (const Side& side : sides_) {
      if (!is_per_result(side, side.operand.scale)) return "a scale changes along the sum";
      if (integers && side.operand.scale) return "its result is i32";
    }
    // Filters are packed ahead.
    if (is_conv() && (!sides_[1].constant || node_.attrs.has("filters"))) return "its filters are not constant";
    if (!by_bytes() && !target_.multiplies_shorts()) {
      return is_conv() ? "its form needs integers of 16 bits" : "a zero point changes along the sum";
    }
    return "";
  }

  void report(QuantisedProducts& products, bool of_two, const std::string& obstacle) {
    using Form = QuantisedProduct::Form;
    QuantisedProduct product{.what = ir::text_of_node(r_.source(), node_), .of_two = of_two};
    if (!obstacle.empty()) {
      product.reason = obstacle;
    } else {
      product.form = Form::kIntegers, product.bits = by_bytes() ? 8 : 16;
      for (const Side& side : sides_) {
        if (side.constant) product.saved_bytes += element_count(b_.shape(side.operand.q)) * (32 - product.bits) / 8;
      }
    }
    add_product(products, std::move(product));
  }

  bool pads() const {
    const auto is_zero = [](int64_t n) { return n == 0; };
    const Ints &low = node_.attrs.ints("low"), &high = node_.attrs.ints("high");
    return !std::all_of(low.begin(), low.end(), is_zero) || !std::all_of(high.begin(), high.end(), is_zero);
  }

  // Whether zero points can be corrections of the sums.
  bool by_bytes() {
    if (!target_.multiplies_bytes()) return false;
    for (const Side& side : sides_) {
      if (!is_per_result(side, side.operand.zero)) return false;
    }
    if (!is_conv()) return true;
    if (!filters_are_centred()) return false;
    const auto negative = [](const Ints& list) { return *std::min_element(list.begin(), list.end()) < 0; };
    const Ints& spread = node_.attrs.ints("lhs_dilations");
    const bool spreads = std::any_of(spread.begin(), spread.end(), [](int64_t s) { return s != 1; });
    return !spreads && !negative(node_.attrs.ints("low")) && !negative(node_.attrs.ints("high"));
  }

  // True if filters have no zero point as signed bytes. The correction for a zero point would be a sum over each
  // window.
  bool filters_are_centred() {
    const Dequantized& filters = sides_[1].operand;
    if (b_.dtype(filters.q) == DType::kI8) return !filters.zero;
    return filters.zero && finder_.equal(filters.zero, QuantParameter{b_.scalar(DType::kI32, 128), -1});
  }

  // q as another type of byte, with its zero point.
  Dequantized as_type(const Dequantized& from, DType to) {
    if (b_.dtype(from.q) == to) return from;
    const double shift = to == DType::kU8 ? 128 : -128;
    Dequantized result = from;
    result.q = b_.cast(b_.binary(Op::kAdd, b_.cast(from.q, DType::kI32), shift), to);
    if (!from.zero) {
      result.zero = {b_.scalar(DType::kI32, shift), -1};
      return result;
    }
    const QuantParameter opposite{b_.scalar(DType::kI32, -shift), -1};
    if (finder_.equal(from.zero, opposite)) {
      result.zero.reset();
    } else {
      result.zero->value = b_.binary(Op::kAdd, from.zero->value, shift);
    }
    return result;
  }

  ValueId spread(const QuantParameter& p, const Shape& shape, int64_t dim) {
    return b_.broadcast(p.value, shape, p.is_scalar() ? Ints{} : Ints{dim});
  }

  // A parameter in the shape of the result.
  ValueId spread(const Side& side, const QuantParameter& p) {
    return spread(p, result_shape(), p.is_scalar() ? 0 : side.place[static_cast<size_t>(p.dim)]);
  }

  ValueId of_bytes() {
    if (!target_.multiplies_signed()) sides_[0].operand = as_type(sides_[0].operand, DType::kU8);
    sides_[1].operand = as_type(sides_[1].operand, DType::kI8);
    const std::optional<QuantParameter>& zero = sides_[0].operand.zero;
    Attrs attrs;
    for (const auto& [name, value] : node_.attrs) {
      if (name != "out") attrs.set(name, value);
    }
    ValueId x = sides_[0].operand.q;
    if (is_conv() && pads() && zero) x = padded(x, *zero, attrs);
    ValueId sums = r_.emit(node_.op, {x, sides_[1].operand.q}, std::move(attrs));
    for (size_t i = 0; i < 2; ++i) {
      const Side &side = sides_[i], &other = sides_[1 - i];
      if (side.operand.zero) sums = corrected(sums, side, other, i == 0);
    }
    return sums;
  }

  // An image whose padding holds the zero point.
  ValueId padded(ValueId x, const QuantParameter& zero, Attrs& attrs) {
    const bool last = attrs.text("layout") == "nhwc";
    Ints low = {0}, high = {0};
    if (!last) low.push_back(0), high.push_back(0);
    for (const int64_t n : attrs.ints("low")) low.push_back(n);
    for (const int64_t n : attrs.ints("high")) high.push_back(n);
    if (last) low.push_back(0), high.push_back(0);
    const Ints none(attrs.ints("low").size(), 0);
    attrs.set("low", none), attrs.set("high", none);
    return b_.pad(x, b_.cast(zero.value, b_.dtype(x)), low, high);
  }

  // sums - zero * (the sums of the other operand's elements), which are less its own zero point for the first operand
  // only: the product of both zero points counts once.
  ValueId corrected(ValueId sums, const Side& side, const Side& other, bool centred) {
    const Shape shape = b_.shape(other.operand.q);
    ValueId elements = b_.cast(other.operand.q, DType::kI32);
    if (centred && other.operand.zero)
      elements = b_.sub(elements, spread(*other.operand.zero, shape, other.operand.zero->dim));
    const ValueId lines = b_.reduce("sum", elements, other.summed);
    Ints dims;
    for (const int64_t place : other.place) {
      if (place >= 0) dims.push_back(place);
    }
    const QuantParameter& zero = *side.operand.zero;
    if (zero.is_scalar()) {
      const ValueId small = b_.mul(lines, b_.broadcast(zero.value, b_.shape(lines), {}));
      return b_.sub(sums, b_.broadcast(small, result_shape(), dims));
    }
    return b_.sub(sums, b_.mul(b_.broadcast(lines, result_shape(), dims), spread(side, zero)));
  }

  ValueId of_shorts() {
    Attrs attrs = node_.attrs;
    attrs.set("out", DType::kI32);
    constexpr int64_t kBytes = 255;
    if (is_conv() && finder_.is_centred(sides_[0].operand)) attrs.set("image_range", kBytes);
    return r_.emit(node_.op, {centred(b_, sides_[0].operand), centred(b_, sides_[1].operand)}, std::move(attrs));
  }

  ValueId scaled(ValueId sums) {
    if (result_type() == DType::kI32) return sums;
    ValueId y = b_.cast(sums, DType::kF32);
    std::optional<QuantParameter> first = sides_[0].operand.scale, second = sides_[1].operand.scale;
    const auto known = [&](const auto& p) { return p && finder_.is_constant(p->value); };
    if (known(first) && known(second) && first->is_scalar()) {
      // One factor, which is computed ahead.
      second->value = b_.mul(second->value, b_.broadcast(first->value, b_.shape(second->value), {}));
      first.reset();
    }
    if (first) y = b_.mul(y, spread(sides_[0], *first));
    if (second) y = b_.mul(y, spread(sides_[1], *second));
    return y;
  }

  ir::Rewriter& r_;
  DequantizedFinder& finder_;
  const Node& node_;
  const Target& target_;
  ir::Builder b_;
  Side sides_[2];
  bool has_scale_[2] = {false, false};
};

}  // namespace

ir::Graph integer_products(const ir::Graph& graph, const PassContext& context) {
  ir::Rewriter rewriter(graph);
  DequantizedFinder finder(rewriter);
  return rewriter.run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    std::optional<ValueId> result;
    if (node.op == Op::kDot || node.op == Op::kConv)
      result = IntegerProduct(r, finder, node, context.target).run(context.quantised);
    if (node.op == Op::kCast) result = requantized(finder, r, node, context.target);
    if (node.op == Op::kMul && context.target.multiplies_shorts() && !context.target.multiplies_bytes()) {
      result = dequantized_from_shorts(finder, r, node);
    }
    if (!result) return std::nullopt;
    return std::vector{*result};
  });
}

}  // namespace heddle::passes
