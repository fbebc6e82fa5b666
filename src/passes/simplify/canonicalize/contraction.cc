#include <algorithm>
#include <limits>

#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

Ints mapped(const Ints& dims, const Ints& map) {
  Ints result;
  for (int64_t d : dims) result.push_back(map[at(d)]);
  return result;
}

// Dimensions of an operand of a dot that are neither batch nor contracting.
Ints free_dims(size_t rank, const Ints& batch, const Ints& contract) {
  Ints result;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
    if (index_of(batch, d) < 0 && index_of(contract, d) < 0) result.push_back(d);
  }
  return result;
}

// A dot names its dimensions, so a transpose that keeps the free ones in order only renames them.
Result dot_transpose(const Match& m) {
  for (size_t side = 0; side < 2; ++side) {
    if (!m.e.is(m.in[side], Op::kTranspose)) continue;
    const std::string batch = side == 0 ? "lhs_batch" : "rhs_batch";
    const std::string contract = side == 0 ? "lhs_contract" : "rhs_contract";
    const Node& node = m.e.def(m.in[side]);
    const Ints& perm = node.attrs.ints("perm");
    const Ints free = mapped(free_dims(perm.size(), m.attrs.ints(batch), m.attrs.ints(contract)), perm);
    if (!std::is_sorted(free.begin(), free.end())) continue;
    Attrs attrs = m.attrs;
    attrs.set(batch, mapped(m.attrs.ints(batch), perm));
    attrs.set(contract, mapped(m.attrs.ints(contract), perm));
    std::vector<ValueId> operands = m.in;
    operands[side] = node.inputs[0];
    return m.e.emit(Op::kDot, operands, attrs);
  }
  return {};
}

// The dimensions that a reshape merges into its first one, without those of extent 1, while it keeps the others; empty
// if that is not all it does.
Shape merged_in_front(const Match& m, ValueId v) {
  if (!m.e.is(v, Op::kReshape) || m.e.shape(v).empty()) return {};
  const Shape &inner = m.e.shape(m.e.def(v).inputs[0]), &outer = m.e.shape(v);
  if (inner.size() <= outer.size()) return {};
  const auto rest = inner.end() - static_cast<int64_t>(outer.size()) + 1;
  if (!std::equal(outer.begin() + 1, outer.end(), rest)) return {};
  Shape merged(inner.begin(), rest);
  std::erase(merged, 1);
  return merged;
}

// Batches that both operands merge into one dimension, as PyTorch's bmm wants them, stay dimensions: operands that are
// views of larger tensors keep their strides.
Result dot_batches(const Match& m) {
  if (m.attrs.ints("lhs_batch") != Ints{0} || m.attrs.ints("rhs_batch") != Ints{0}) return {};
  const Shape batches = merged_in_front(m, m.in[0]);
  if (batches.size() < 2 || batches != merged_in_front(m, m.in[1])) return {};
  const auto unmerged = [&](ValueId v) {
    Shape shape = batches;
    shape.insert(shape.end(), m.e.shape(v).begin() + 1, m.e.shape(v).end());
    return m.e.reshape(m.e.def(v).inputs[0], shape);
  };
  const auto more = static_cast<int64_t>(batches.size()) - 1;
  Attrs attrs = m.attrs;
  for (const char* batch : {"lhs_batch", "rhs_batch"}) attrs.set(batch, counting(batches.size()));
  for (const char* contract : {"lhs_contract", "rhs_contract"}) {
    Ints dims = m.attrs.ints(contract);
    for (int64_t& d : dims) d += more;
    attrs.set(contract, dims);
  }
  const ValueId made = m.e.emit(Op::kDot, {unmerged(m.in[0]), unmerged(m.in[1])}, std::move(attrs));
  Shape shape = {m.e.shape(m.in[0])[0]};
  shape.insert(shape.end(), m.e.shape(made).begin() + more + 1, m.e.shape(made).end());
  return m.e.reshape(made, shape);
}

// dot(x * c, y) = dot(x, y) * c, where x is a slice: behind the dot the product is part of its epilogue, in front of it
// it would be a kernel. (A product behind another contraction is part of that one's epilogue, or of its weights.) Sums
// are scaled before they are rounded to 16 bits.
Result dot_scale(const Match& m) {
  const DType type = m.e.dtype(m.in[0]);
  const bool is_narrow = type == DType::kF16 || type == DType::kBF16;
  if ((type != DType::kF32 && !is_narrow) || m.attrs.has("out")) return {};
  double factor = 1;
  std::vector<ValueId> operands = m.in;
  for (ValueId& operand : operands) {
    std::vector<ValueId> views;  // reshapes and transposes between the product and the dot
    ValueId v = operand;
    while (m.e.is(v, Op::kReshape) || m.e.is(v, Op::kTranspose)) {
      views.push_back(v);
      v = m.e.def(v).inputs[0];
    }
    if (!m.e.is(v, Op::kMul) || !m.e.is(m.e.def(v).inputs[0], Op::kSlice)) continue;
    const auto found = m.e.splat(m.e.def(v).inputs[1]);
    if (!found) continue;
    factor *= *found;
    operand = m.e.def(v).inputs[0];
    for (size_t i = views.size(); i-- > 0;) {
      operand = m.e.emit(m.e.def(views[i]).op, {operand}, m.e.def(views[i]).attrs);
    }
  }
  if (operands == m.in) return {};
  Attrs attrs = m.attrs;
  if (is_narrow) attrs.set("out", DType::kF32);
  const ValueId product = m.e.emit(Op::kDot, operands, std::move(attrs));
  const ValueId scaled = m.e.binary(Op::kMul, product, m.e.full_like(product, factor));
  return is_narrow ? m.e.emit(Op::kCast, {scaled}, {{"to", type}}) : scaled;
}

bool add_to(int64_t& sum, int64_t value) {
  return !__builtin_add_overflow(sum, value, &sum);
}

// Zeros around the operand of a convolution are its padding.
Result conv_pad(const Match& m) {
  if (!m.e.is(m.in[0], Op::kPad)) return {};
  const Node& pad = m.e.def(m.in[0]);
  if (pad.attrs.text("mode") != "constant" || m.e.splat(pad.inputs[1]) != 0) return {};
  const size_t rank = m.e.shape(m.in[0]).size();
  const size_t first = m.attrs.text("layout") == "nhwc" ? 1 : 2;
  const Ints &low = pad.attrs.ints("low"), &high = pad.attrs.ints("high"), &holes = m.attrs.ints("lhs_dilations");
  Attrs attrs = m.attrs;
  Ints new_low = m.attrs.ints("low"), new_high = m.attrs.ints("high");
  for (size_t d = 0; d < rank; ++d) {
    if (low[d] == 0 && high[d] == 0) continue;
    if (d < first || d >= first + new_low.size() || holes[d - first] != 1) return {};
    if (!add_to(new_low[d - first], low[d]) || !add_to(new_high[d - first], high[d])) return {};
  }
  attrs.set("low", new_low);
  attrs.set("high", new_high);
  return m.e.emit(Op::kConv, {pad.inputs[0], m.in[1]}, attrs);
}

// A convolution with one output pixel and several input pixels is a product that sums over channels and pixels. The
// gradient of 1x1 filters has this form.
Result conv_of_one_pixel(const Match& m) {
  const bool last = m.attrs.text("layout") == "nhwc";
  const Shape x = m.e.shape(m.in[0]), w = m.e.shape(m.in[1]);
  if (m.attrs.integer("groups") != 1 || m.attrs.has("filters") || m.e.count(m.in[0]) * m.e.count(m.in[1]) == 0)
    return {};
  Shape limits = x, result(x.size(), 1);
  Ints strides(x.size(), 1), of_image = {last ? static_cast<int64_t>(x.size()) - 1 : 1}, of_filters = {1};
  int64_t pixels = 1;
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    const size_t at = d + (last ? 1 : 2);
    const int64_t low = m.attrs.ints("low")[d], high = m.attrs.ints("high")[d], step = m.attrs.ints("dilations")[d];
    const int64_t reach = (w[d + 2] - 1) * step + 1;
    const bool has_one = x[at] + high < reach + m.attrs.ints("strides")[d];
    if (low != 0 || reach > x[at] || !has_one || m.attrs.ints("lhs_dilations")[d] != 1) return {};
    limits[at] = reach, strides[at] = step, pixels *= w[d + 2];
    of_image.push_back(static_cast<int64_t>(at)), of_filters.push_back(static_cast<int64_t>(d) + 2);
  }
  if (pixels == 1) return {};
  Attrs attrs = {
      {"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", of_image}, {"rhs_contract", of_filters}};
  if (m.attrs.has("out")) attrs.set("out", m.attrs.dtype("out"));
  if (m.attrs.has("tf32")) attrs.set("tf32", m.attrs.integer("tf32"));
  const ValueId image = m.e.slice(m.in[0], Ints(x.size(), 0), limits, strides);
  result[0] = x[0], result[last ? x.size() - 1 : 1] = w[0];
  return m.e.reshape(m.e.emit(Op::kDot, {image, m.in[1]}, attrs), result);
}

// The identity of a window reduction, where a pad may hold it.
bool is_identity(const std::string& kind, DType dtype, double value) {
  if (kind == "sum") return value == 0;
  if (kind == "prod") return value == 1;
  if (!is_float(dtype)) return false;
  return value == (kind == "max" ? -1 : 1) * std::numeric_limits<double>::infinity();
}
Result window_pad(const Match& m) {
  if (!m.e.is(m.in[0], Op::kPad)) return {};
  const Node& pad = m.e.def(m.in[0]);
  const auto value = m.e.splat(pad.inputs[1]);
  if (pad.attrs.text("mode") != "constant" || !value ||
      !is_identity(m.attrs.text("kind"), m.e.dtype(m.in[0]), *value)) {
    return {};
  }
  Attrs attrs = m.attrs;
  Ints low = m.attrs.ints("low"), high = m.attrs.ints("high");
  for (size_t d = 0; d < low.size(); ++d) {
    if (!add_to(low[d], pad.attrs.ints("low")[d]) || !add_to(high[d], pad.attrs.ints("high")[d])) return {};
  }
  attrs.set("low", low);
  attrs.set("high", high);
  return m.e.emit(Op::kWindowReduce, {pad.inputs[0]}, attrs);
}

}  // namespace

std::span<const Rule> contraction_rules() {
  static constexpr Rule kRules[] = {
      {Op::kDot, "dot_transpose", dot_transpose},
      {Op::kDot, "dot_batches", dot_batches},
      {Op::kDot, "dot_scale", dot_scale},
      {Op::kConv, "conv_pad", conv_pad},
      {Op::kConv, "conv_of_one_pixel", conv_of_one_pixel},
      {Op::kWindowReduce, "window_pad", window_pad},
  };
  return kRules;
}

}  // namespace heddle::passes
