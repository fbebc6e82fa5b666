#include "zoo/layers.h"

#include <limits>

namespace heddle::zoo {
namespace {

Fill scaled_normal(double gain, int64_t fan_in) {
  return Fill::normal(0, gain / std::sqrt(static_cast<double>(fan_in)));
}

Value small_bias(GraphBuilder& g, int64_t width) {
  return g.weight("bias", {width}, Fill::normal(0, 0.02));
}

int64_t windows(int64_t extent, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t room = extent + 2 * pad - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

Value pool_node(GraphBuilder& g, std::string_view type, const Value& x, const Pool& p, std::vector<Attribute> extra) {
  extra.insert(extra.begin(), {{"kernel_shape", Ints{p.kernel_h, p.kernel_w}},
                               {"pads", Ints{p.pad_h, p.pad_w, p.pad_h, p.pad_w}},
                               {"strides", Ints{p.stride_h, p.stride_w}}});
  return g.node(type, {x}, extra,
                {x.shape[0], x.shape[1], windows(x.shape[2], p.kernel_h, p.stride_h, p.pad_h),
                 windows(x.shape[3], p.kernel_w, p.stride_w, p.pad_w)});
}

Value decomposed_layer_norm(GraphBuilder& g, const Value& x, const Value& scale, const Value& bias, float epsilon) {
  const Value centred = g.sub(x, g.reduce("ReduceMean", x, -1, true));
  const Value variance = g.reduce("ReduceMean", g.binary("Pow", centred, g.scalar(2.0F)), -1, true);
  const Value deviation = g.unary("Sqrt", g.add(variance, g.scalar(epsilon)));
  return g.add(g.mul(g.div(centred, deviation), scale), bias);
}

// [n,t,d] -> [n,heads,t,d/heads], or [n,heads,d/heads,t] for keys.
Value heads_of(GraphBuilder& g, const Value& x, const Attention& options, bool keys) {
  const int64_t n = x.shape[0], t = x.shape[1], depth = x.shape[2] / options.heads;
  Value split;
  if (options.dynamic_shapes) {
    const Value shape = g.concat(
        {g.unsqueeze(g.extent(x, 0), {0}), g.unsqueeze(g.extent(x, 1), {0}), g.ints({options.heads}), g.ints({depth})},
        0);
    split = g.node("Reshape", {x, shape}, {}, {n, t, options.heads, depth});
  } else {
    split = g.reshape(x, {n, -1, options.heads, depth});
  }
  return g.transpose(split, keys ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3});
}

}  // namespace

Value conv(GraphBuilder& g, std::string_view name, const Value& x, const Conv& o) {
  const auto scope = g.scope(name);
  const int64_t fan_in = x.shape[1] / o.groups * o.kernel * o.kernel;
  std::vector<Value> inputs{
      x, g.weight("weight", {o.out, x.shape[1] / o.groups, o.kernel, o.kernel}, scaled_normal(o.gain, fan_in))};
  if (o.bias) inputs.push_back(small_bias(g, o.out));
  return g.node("Conv", inputs,
                {{"dilations", Ints{1, 1}},
                 {"group", o.groups},
                 {"kernel_shape", Ints{o.kernel, o.kernel}},
                 {"pads", Ints{o.pad, o.pad, o.pad, o.pad}},
                 {"strides", Ints{o.stride, o.stride}}},
                {x.shape[0], o.out, windows(x.shape[2], o.kernel, o.stride, o.pad),
                 windows(x.shape[3], o.kernel, o.stride, o.pad)});
}

Value batch_norm(GraphBuilder& g, std::string_view name, const Value& x, double gain) {
  const auto scope = g.scope(name);
  const Shape channels{x.shape[1]};
  const Value scale = g.weight("weight", channels, Fill::uniform(0.8 * gain, 1.2 * gain));
  const Value bias = g.weight("bias", channels, Fill::normal(0, 0.1 * gain));
  const Value mean = g.weight("running_mean", channels, Fill::normal(0, 0.1));
  const Value variance = g.weight("running_var", channels, Fill::uniform(0.6, 1.6));
  return g.node("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", 1e-5F}, {"momentum", 0.9F}},
                x.shape);
}

Value max_pool(GraphBuilder& g, const Value& x, const Pool& pool) {
  return pool_node(g, "MaxPool", x, pool, {{"ceil_mode", 0}});
}

Value average_pool(GraphBuilder& g, const Value& x, const Pool& pool) {
  return pool_node(g, "AveragePool", x, pool, {});
}

Value global_average_pool(GraphBuilder& g, const Value& x) {
  return g.node("GlobalAveragePool", {x}, {}, {x.shape[0], x.shape[1], 1, 1});
}

Value flatten(GraphBuilder& g, const Value& x) {
  return g.node("Flatten", {x}, {{"axis", 1}}, {x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]});
}

Value linear(GraphBuilder& g, std::string_view name, const Value& x, int64_t out, double gain, bool bias) {
  const auto scope = g.scope(name);
  const int64_t in = x.shape.back();
  const Fill fill = scaled_normal(gain, in);
  if (x.shape.size() == 2 && bias) return g.gemm(x, g.weight("weight", {out, in}, fill), small_bias(g, out));
  const Value y = g.matmul(x, g.weight("weight", {in, out}, fill));
  return bias ? g.add(small_bias(g, out), y) : y;
}

Value embedding(GraphBuilder& g, std::string_view name, const Value& indices, int64_t rows, int64_t width,
                double deviation) {
  const auto scope = g.scope(name);
  return g.gather(g.weight("weight", {rows, width}, Fill::normal(0, deviation)), indices, 0);
}

Value layer_norm(GraphBuilder& g, std::string_view name, const Value& x, float epsilon) {
  const auto scope = g.scope(name);
  const Value scale = g.weight("weight", {x.shape.back()}, Fill::uniform(0.8, 1.2));
  const Value bias = g.weight("bias", {x.shape.back()}, Fill::normal(0, 0.05));
  if (g.opset() < 17) return decomposed_layer_norm(g, x, scale, bias, epsilon);
  return g.node("LayerNormalization", {x, scale, bias}, {{"axis", -1}, {"epsilon", epsilon}}, x.shape);
}

Value rms_norm(GraphBuilder& g, std::string_view name, const Value& x, float epsilon) {
  const auto scope = g.scope(name);
  const Value mean = g.reduce("ReduceMean", g.binary("Pow", x, g.scalar(2.0F)), -1, true);
  const Value inverse = g.unary("Reciprocal", g.unary("Sqrt", g.add(mean, g.scalar(epsilon))));
  return g.mul(g.weight("weight", {x.shape.back()}, Fill::uniform(0.8, 1.2)), g.mul(x, inverse));
}

Value group_norm(GraphBuilder& g, std::string_view name, const Value& x, int64_t groups) {
  const auto scope = g.scope(name);
  const Value rows = g.reshape(x, {x.shape[0], groups, -1});
  const Value ones = g.weight("norm_scale", {groups}, Fill::constant(1));
  const Value zeros = g.weight("norm_bias", {groups}, Fill::constant(0));
  const Value normed = g.node("InstanceNormalization", {rows, ones, zeros}, {{"epsilon", 1e-5F}}, rows.shape);
  const Value shape = g.node("Shape", {x}, {}, {4}, DType::kI64);
  const Value image = g.node("Reshape", {normed, shape}, {}, x.shape);
  const Value scaled = g.mul(image, g.weight("weight", {x.shape[1], 1, 1}, Fill::uniform(0.8, 1.2)));
  return g.add(scaled, g.weight("bias", {x.shape[1], 1, 1}, Fill::normal(0, 0.05)));
}

Value res_block(GraphBuilder& g, std::string_view name, const Value& x, const Value* shift, int64_t out) {
  constexpr int64_t kGroups = 32;
  const auto scope = g.scope(name);
  Value y = conv(g, "c1", silu(g, group_norm(g, "n1", x, kGroups)), {.out = out, .pad = 1});
  if (shift != nullptr) y = g.add(y, g.unsqueeze(g.unsqueeze(linear(g, "t", silu(g, *shift), out), {2}), {3}));
  const Value hidden = silu(g, group_norm(g, "n2", y, kGroups));
  const Value branch = conv(g, "c2", hidden, {.out = out, .pad = 1, .gain = kBranch});
  return g.add(x.shape[1] == out ? x : conv(g, "s", x, {.out = out, .kernel = 1, .gain = 1}), branch);
}

Value upsample(GraphBuilder& g, const Value& x) {
  return g.node("Resize", {x, Value{}, g.floats({4}, {1, 1, 2, 2})},
                {{"coordinate_transformation_mode", "asymmetric"}, {"mode", "nearest"}, {"nearest_mode", "floor"}},
                {x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]});
}

Value gelu(GraphBuilder& g, const Value& x) {
  const Value erf = g.unary("Erf", g.div(x, g.scalar(std::numbers::sqrt2_v<float>)));
  return g.mul(g.mul(x, g.add(erf, g.scalar(1.0F))), g.scalar(0.5F));
}

Value gelu_tanh(GraphBuilder& g, const Value& x) {
  const Value cubed = g.mul(g.binary("Pow", x, g.scalar(3.0F)), g.scalar(0.044715F));
  const Value bent = g.unary("Tanh", g.mul(g.add(x, cubed), g.scalar(std::sqrt(2 / std::numbers::pi_v<float>))));
  return g.mul(g.mul(x, g.scalar(0.5F)), g.add(bent, g.scalar(1.0F)));
}

Value silu(GraphBuilder& g, const Value& x) {
  return g.mul(x, g.sigmoid(x));
}

Value split_heads(GraphBuilder& g, const Value& x, int64_t heads) {
  return g.transpose(g.reshape(x, {x.shape[0], -1, heads, x.shape[2] / heads}), {0, 2, 1, 3});
}

Value merge_heads(GraphBuilder& g, const Value& x) {
  return g.reshape(g.transpose(x, {0, 2, 1, 3}), {x.shape[0], -1, x.shape[1] * x.shape[3]});
}

Value causal_mask(GraphBuilder& g, int64_t t, int64_t s) {
  const Value ones = g.node("Expand", {g.scalar(1.0F), g.ints({t, s})}, {}, {t, s});
  const Value lower = g.node("Trilu", {ones}, {{"upper", 0}}, {t, s});
  const Value zero = g.scalar(0.0F);
  return g.node("Where", {g.binary("Equal", lower, zero), g.scalar(-std::numeric_limits<float>::infinity()), zero}, {},
                {t, s});
}

Value scaled_dot_product(GraphBuilder& g, const Value& q, const Value& k, const Value& v, const Attention& options) {
  const auto depth = static_cast<float>(q.shape[3]);
  Value scores;
  if (options.dynamic_shapes) {
    scores = g.div(g.matmul(q, k), g.scalar(std::sqrt(depth)));
  } else {
    const Value root = g.scalar(1.0F / std::sqrt(std::sqrt(depth)));
    scores = g.matmul(g.mul(q, root), g.mul(k, root));
  }
  if (options.causal) scores = g.add(scores, causal_mask(g, q.shape[2], k.shape[3]));
  return merge_heads(g, g.matmul(g.softmax(scores, -1), v));
}

Value attention(GraphBuilder& g, std::string_view name, const Value& x, const Value& memory, const Attention& options) {
  const auto scope = g.scope(name);
  const int64_t width = x.shape[2];
  const Value q = heads_of(g, linear(g, "q", x, width, 1, options.bias), options, false);
  const Value k = heads_of(g, linear(g, "k", memory, width, 1, options.bias), options, true);
  const Value v = heads_of(g, linear(g, "v", memory, width, 1, options.bias), options, false);
  return linear(g, "o", scaled_dot_product(g, q, k, v, options), width, options.gain);
}

}  // namespace heddle::zoo
