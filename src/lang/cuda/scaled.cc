#include "lang/cuda/scaled.h"

#include <string>
#include <utility>
#include <vector>

namespace heddle::lang::cuda {
namespace {

using Shape = std::vector<int64_t>;

class Expander {
 public:
  explicit Expander(Kernel& kernel) : kernel_(kernel) {}

  void run(Region& region) {
    std::vector<Op> ops;
    for (Op& op : region.ops) {
      for (Region& inner : op.regions) run(inner);
      if (op.code != OpCode::kDotScaled) {
        ops.push_back(std::move(op));
        continue;
      }
      out_ = &ops;
      frame_ = op.frame;
      ops.push_back(expanded(op));
    }
    region.ops = std::move(ops);
  }

 private:
  static constexpr int64_t kGroup = 32;  // numbers along K that share a scale

  Op expanded(const Op& op) {
    const std::string_view scales = op.attributes.word("scales", "both");
    const bool a_scaled = scales == "both" || scales == "a", b_scaled = scales == "both" || scales == "b";
    const size_t at_b = a_scaled ? 2 : 1;
    const std::string_view a_format = op.attributes.word("a_format"), b_format = op.attributes.word("b_format");
    const Element element = a_format == "f16" || b_format == "f16" ? Element::kF32 : Element::kBF16;
    ValueId a = numbers(op.operands[0], a_format);
    // Of the second operand K is the dimension before the last: as the last one it is like the first operand.
    ValueId b = numbers(turned(op.operands[at_b]), b_format);
    if (a_scaled) a = scaled(a, op.operands[1]);
    if (b_scaled) b = scaled(b, op.operands[at_b + 1]);
    Op dot;
    dot.code = OpCode::kDot;
    dot.frame = op.frame;
    dot.operands = {cast(a, element), turned(cast(b, element)), op.operands.back()};
    dot.results = op.results;
    dot.attributes.set("precision", Attribute::word("tf32"));
    return dot;
  }

  const Type& type(ValueId v) const { return kernel_.type(v); }
  ValueId add(OpCode code, std::vector<ValueId> operands, Type result,
              std::vector<std::pair<std::string, Attribute>> attributes = {}) {
    Op op;
    op.code = code;
    op.frame = frame_;
    op.operands = std::move(operands);
    for (auto& [name, value] : attributes) op.attributes.set(name, std::move(value));
    op.results = {kernel_.add_value(std::move(result))};
    out_->push_back(std::move(op));
    return out_->back().results[0];
  }
  ValueId cast(ValueId v, Element to) {
    return type(v).element == to ? v : add(OpCode::kCast, {v}, type(v).with_element(to));
  }
  ValueId bitcast(ValueId v, Element to) { return add(OpCode::kBitcast, {v}, type(v).with_element(to)); }
  ValueId constant(int64_t value, const Shape& shape) {
    return add(OpCode::kConstant, {}, Type::tile(shape, Element::kI32), {{"value", Attribute::of(value)}});
  }
  ValueId with(OpCode code, ValueId v, int64_t number) {
    return add(code, {v, constant(number, type(v).shape)}, type(v));
  }
  ValueId is_equal(ValueId v, int64_t number) {
    return add(OpCode::kEq, {v, constant(number, type(v).shape)}, type(v).with_element(Element::kI1));
  }
  ValueId select(ValueId condition, ValueId yes, ValueId no) {
    return add(OpCode::kSelect, {condition, yes, no}, type(yes));
  }
  ValueId reshape(ValueId v, Shape shape) {
    return add(OpCode::kReshape, {v}, Type::tile(std::move(shape), type(v).element));
  }
  ValueId turned(ValueId v) {
    Shape shape = type(v).shape, order;
    for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
    std::swap(shape[shape.size() - 2], shape.back());
    std::swap(order[order.size() - 2], order.back());
    return add(OpCode::kPermute, {v}, Type::tile(shape, type(v).element), {{"order", Attribute::of(order)}});
  }

  // As f32, K last.
  ValueId numbers(ValueId v, std::string_view format) {
    if (format == "e2m1") return pairs(v);
    if (format == "e4m3" && type(v).element == Element::kU8) v = bitcast(v, Element::kF8E4M3);
    if (format == "e5m2" && type(v).element == Element::kU8) v = bitcast(v, Element::kF8E5M2);
    return cast(v, Element::kF32);
  }
  // Two numbers of four bits lie in a byte, the first in the low ones.
  ValueId pairs(ValueId v) {
    const ValueId byte = cast(v, Element::kI32);
    const ValueId low = nibble(with(OpCode::kAnd, byte, 15)), high = nibble(with(OpCode::kShr, byte, 4));
    Shape shape = type(low).shape;
    shape.push_back(2);
    const ValueId both = add(OpCode::kJoin, {low, high}, Type::tile(shape, Element::kF32));
    shape.pop_back();
    shape.back() *= 2;
    return reshape(both, shape);
  }
  // Sign, two bits of exponent of bias 1, one of mantissa.
  ValueId nibble(ValueId code) {
    constexpr int64_t kHalf = 0x3f000000, kBias = 126, kMantissa = 22, kExponent = 23, kSign = 28;
    const ValueId mantissa = with(OpCode::kAnd, code, 1);
    const ValueId exponent = with(OpCode::kAnd, with(OpCode::kShr, code, 1), 3);
    const ValueId shifted = with(OpCode::kShl, with(OpCode::kAdd, exponent, kBias), kExponent);
    const ValueId normal = add(OpCode::kOr, {shifted, with(OpCode::kShl, mantissa, kMantissa)}, type(code));
    const ValueId size = select(is_equal(exponent, 0), with(OpCode::kMul, mantissa, kHalf), normal);
    const ValueId sign = with(OpCode::kShl, with(OpCode::kAnd, code, 8), kSign);
    return bitcast(add(OpCode::kOr, {size, sign}, type(code)), Element::kF32);
  }

  // v times 2^(scale - 127), one for each group along K.
  ValueId scaled(ValueId v, ValueId scale) {
    constexpr int64_t kLeast = 0x400000, kNan = 0x7fc00000, kExponent = 23, kMost = 255;
    const ValueId code = cast(scale, Element::kI32);
    const ValueId power = with(OpCode::kShl, code, kExponent);
    const ValueId tiny = select(is_equal(code, 0), constant(kLeast, type(code).shape), power);
    ValueId factor = bitcast(select(is_equal(code, kMost), constant(kNan, type(code).shape), tiny), Element::kF32);
    const Shape shape = type(v).shape;
    if (type(factor).rank() < static_cast<int>(shape.size())) factor = expanded_at(factor, 0, shape[0]);
    factor = expanded_at(factor, type(factor).rank(), kGroup);
    return add(OpCode::kMul, {v, reshape(factor, shape)}, type(v));
  }
  ValueId expanded_at(ValueId v, int axis, int64_t extent) {
    Shape shape = type(v).shape;
    shape.insert(shape.begin() + axis, 1);
    const ValueId one =
        add(OpCode::kExpandDims, {v}, Type::tile(shape, type(v).element), {{"axis", Attribute::of(int64_t{axis})}});
    shape[static_cast<size_t>(axis)] = extent;
    return add(OpCode::kBroadcast, {one}, Type::tile(shape, type(v).element));
  }

  Kernel& kernel_;
  std::vector<Op>* out_ = nullptr;
  int frame_ = -1;
};

}  // namespace

void expand_scaled_products(Kernel& kernel) {
  Expander(kernel).run(kernel.body);
}

}  // namespace heddle::lang::cuda
