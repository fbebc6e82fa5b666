#include <limits>

#include "corpus.h"

namespace heddle::hostile {
namespace {

using onnx::testing::int_attr;
using onnx::testing::ints_attr;
using onnx::testing::kFloat;
using onnx::testing::kInt32;
using onnx::testing::kInt64;
using onnx::testing::kInt8;
using onnx::testing::kString;
using onnx::testing::kUint8;
using onnx::testing::ModelWriter;
using onnx::testing::pbf_writer;
using onnx::testing::raw_tensor;
using onnx::testing::tensor_type;
using onnx::testing::value_info;

constexpr int64_t kHuge = int64_t{1} << 62;

std::string node(const std::string& op, const std::vector<onnx::testing::Dim>& dims,
                 const std::vector<std::string>& attributes = {}) {
  return one_node(op, {"x"}, dims, attributes).bytes();
}

// The operator reads x and these vectors.
std::string with_longs(const std::string& op, const Shape& dims, const std::vector<std::vector<int64_t>>& vectors,
                       const std::vector<std::string>& attributes = {}) {
  std::vector<std::string> inputs = {"x"}, initializers;
  for (size_t i = 0; i < vectors.size(); ++i) {
    inputs.push_back("v" + std::to_string(i));
    initializers.push_back(longs(inputs.back(), vectors[i]));
  }
  return one_node(op, inputs, {dims.begin(), dims.end()}, attributes, initializers).bytes();
}

std::string conv(const Shape& filter, const std::vector<std::string>& attributes = {}) {
  return one_node("Conv", {"x", "w"}, {1, 3, 8, 8}, attributes, {floats("w", filter)}).bytes();
}

std::string input_of_type(const std::string& op, int type, const std::vector<std::string>& attributes = {}) {
  ModelWriter m = one_node(op, {"x"}, {2, 3}, attributes);
  m.inputs = {value_info("x", tensor_type(type, {2, 3}))};
  return m.bytes();
}

std::string sequence_input(const std::string& op) {
  std::string sequence, type;
  pbf_writer(sequence).add_message(1, tensor_type(kFloat, {2}));
  pbf_writer(type).add_message(4, sequence);
  ModelWriter m = one_node(op, {"x"}, {2});
  m.inputs = {value_info("x", type)};
  return m.bytes();
}

std::string map_input() {
  std::string map, type;
  pbf_writer(map).add_int32(1, kInt64);
  pbf_writer(type).add_message(5, map);
  ModelWriter m = one_node("Relu", {"x"}, {2});
  m.inputs = {value_info("x", type)};
  return m.bytes();
}

std::string optional_without_type() {
  std::string type;
  pbf_writer(type).add_message(9, std::string());
  ModelWriter m = one_node("Relu", {"x"}, {2});
  m.inputs = {value_info("x", type)};
  return m.bytes();
}

std::string quantised(int scale_elements, int zero_type, int zero_elements) {
  const auto count = static_cast<size_t>(zero_elements) * (zero_type == kInt32 || zero_type == kFloat ? 4 : 1);
  return one_node("QuantizeLinear", {"x", "s", "z"}, {2, 3}, {int_attr("axis", 1)},
                  {floats("s", {scale_elements}),
                   raw_tensor<uint8_t>("z", zero_type, {zero_elements}, std::vector<uint8_t>(count))})
      .bytes();
}

std::string resize(const std::vector<float>& scales) {
  return one_node("Resize", {"x", "", "s"}, {1, 1, 4, 4}, {},
                  {raw_tensor<float>("s", kFloat, {static_cast<int64_t>(scales.size())}, scales)})
      .bytes();
}

std::string einsum(const std::string& equation, size_t operands, const std::vector<onnx::testing::Dim>& dims) {
  return one_node("Einsum", std::vector<std::string>(operands, "x"), dims, {text_attr("equation", equation)}).bytes();
}

std::string gather(int64_t index) {
  return one_node("Gather", {"x", "i"}, {2, 3}, {}, {longs("i", {index})}).bytes();
}

// The shape of the output comes from what Gather finds in a constant.
std::string shape_from_gather(int64_t index) {
  ModelWriter m = one_node("Expand", {"x", "s"}, {1}, {}, {longs("t", {4, 5}), longs("i", {index})});
  m.nodes.insert(m.nodes.begin(), {"Gather", {"t", "i"}, {"s"}, {}, "", ""});
  return m.bytes();
}

void add_attributes(Corpus& corpus) {
  const auto add = [&](const char* name, std::function<std::string()> bytes, const char* says = "") {
    corpus.push_back({std::string("attribute/") + name, std::move(bytes), kInvalid, says});
  };
  add(
      "missing",
      [] {
        return node("Concat", {2, 3});
      },
      "'axis' is missing");
  add(
      "of-another-type",
      [] {
        return node("Concat", {2, 3}, {text_attr("axis", "0")});
      },
      "not an integer");
  add(
      "list-in-place-of-a-number",
      [] {
        return node("Concat", {2, 3}, {ints_attr("axis", {0})});
      },
      "not an integer");
  add(
      "real-in-place-of-a-number",
      [] {
        return node("Softmax", {2, 3}, {float_attr("axis", 1)});
      },
      "not an integer");
  add(
      "axis-outside",
      [] {
        return node("Concat", {2, 3}, {int_attr("axis", 2)});
      },
      "axis 2");
  add(
      "axis-huge",
      [] {
        return node("Softmax", {2, 3}, {int_attr("axis", kHuge)});
      },
      "axis");
  add(
      "axis-smallest",
      [] {
        return node("Softmax", {2, 3}, {int_attr("axis", INT64_MIN)});
      },
      "axis");
  add(
      "axis-of-a-scalar", [] { return node("Softmax", {}, {int_attr("axis", 0)}); }, "axis");
  add(
      "axis-twice",
      [] {
        return node("ReduceMax", {2, 3}, {ints_attr("axes", {0, 0})});
      },
      "twice");
  add(
      "axis-twice-by-sign",
      [] {
        return node("ReduceMax", {2, 3}, {ints_attr("axes", {0, -2})});
      },
      "twice");
  add("permutation-too-short", [] { return node("Transpose", {2, 3}, {ints_attr("perm", {0})}); });
  add("permutation-twice", [] { return node("Transpose", {2, 3}, {ints_attr("perm", {0, 0})}); });
  add("permutation-outside", [] { return node("Transpose", {2, 3}, {ints_attr("perm", {0, 7})}); });
  add("group-0", [] { return conv({4, 3, 3, 3}, {int_attr("group", 0)}); });
  add("group-negative", [] { return conv({4, 3, 3, 3}, {int_attr("group", -1)}); });
  add("group-that-does-not-divide", [] { return conv({4, 3, 3, 3}, {int_attr("group", 2)}); });
  add("stride-0", [] { return conv({4, 3, 3, 3}, {ints_attr("strides", {0, 1})}); });
  add("stride-negative", [] { return conv({4, 3, 3, 3}, {ints_attr("strides", {-1, 1})}); });
  add("strides-of-another-rank", [] { return conv({4, 3, 3, 3}, {ints_attr("strides", {1})}); });
  add("dilation-0", [] { return conv({4, 3, 3, 3}, {ints_attr("dilations", {0, 1})}); });
  add("pads-of-another-rank", [] { return conv({4, 3, 3, 3}, {ints_attr("pads", {1})}); });
  add("pads-huge", [] { return conv({4, 3, 3, 3}, {ints_attr("pads", {kHuge, kHuge, kHuge, kHuge})}); });
  add("auto-pad-unknown", [] { return conv({4, 3, 3, 3}, {text_attr("auto_pad", "SOMEHOW")}); });
  add("depth-to-space-0", [] { return node("DepthToSpace", {1, 4, 2, 2}, {int_attr("blocksize", 0)}); });
  add("depth-to-space-huge", [] { return node("DepthToSpace", {1, 4, 2, 2}, {int_attr("blocksize", kHuge)}); });
  add("lstm-without-units", [] {
    return one_node("LSTM", {"x", "w", "w"}, {1, 1, 1}, {int_attr("hidden_size", 0)}, {floats("w", {1, 4, 1})}).bytes();
  });
}

void add_shapes(Corpus& corpus) {
  const auto add = [&](const char* name, std::function<std::string()> bytes, const char* says = "") {
    corpus.push_back({std::string("shape/") + name, std::move(bytes), kInvalid, says});
  };
  add("window-larger-than-the-picture", [] { return conv({4, 3, 9, 9}); });
  add("filter-of-another-depth", [] { return conv({4, 2, 3, 3}); });
  add("filter-of-another-rank", [] { return conv({4, 3, 3}); });
  add("filter-of-no-rank", [] { return conv({1}); });
  add("product-that-does-not-fit", [] {
    return one_node("MatMul", {"x", "w"}, {2, 3}, {}, {floats("w", {4, 5})}).bytes();
  });
  add("sum-that-does-not-fit", [] { return one_node("Add", {"x", "w"}, {2, 3}, {}, {floats("w", {4})}).bytes(); });
  add("split-into-0", [] { return with_longs("Split", {2, 3}, {{0}}); });
  add("split-negative", [] { return with_longs("Split", {2, 3}, {{-2, 4}}); });
  add("split-that-overflows", [] { return with_longs("Split", {2, 3}, {{kHuge, kHuge, kHuge, kHuge}}); });
  add("squeeze-of-more-than-1", [] { return with_longs("Squeeze", {2, 3}, {{0}}); });
  add("squeeze-outside", [] { return with_longs("Squeeze", {2, 3}, {{5}}); });
  add("unsqueeze-twice", [] { return with_longs("Unsqueeze", {2, 3}, {{0, 0}}); });
  add("unsqueeze-outside", [] { return with_longs("Unsqueeze", {2, 3}, {{99}}); });
  add("slice-without-a-step", [] { return with_longs("Slice", {2, 3}, {{0}, {1}, {0}, {0}}); });
  add("slice-axis-outside", [] { return with_longs("Slice", {2, 3}, {{0}, {1}, {9}}); });
  add("slice-lists-differ", [] { return with_longs("Slice", {2, 3}, {{0, 0}, {1}, {0}}); });
  add("resize-0", [] { return resize({1, 1, 0, 0}); });
  add("resize-negative", [] { return resize({1, 1, -1, 1}); });
  add("resize-huge", [] { return resize({1, 1, 1e30F, 1e30F}); });
  add("resize-infinite", [] { return resize({1, 1, std::numeric_limits<float>::infinity(), 1}); });
  add("resize-of-another-rank", [] { return resize({2}); });
  add("top-k-negative", [] { return with_longs("TopK", {2, 3}, {{-1}}); });
  add("top-k-of-more", [] { return with_longs("TopK", {2, 3}, {{4}}); });
  add("top-k-huge", [] { return with_longs("TopK", {2, 3}, {{kHuge}}); });
  add("einsum-empty", [] { return einsum("", 1, {2, 3}); });
  add("einsum-of-another-rank", [] { return einsum("ijk->i", 1, {2, 3}); });
  add("einsum-of-another-count", [] { return einsum("ij,jk->ik", 1, {2, 3}); });
  add("einsum-that-does-not-fit", [] { return einsum("ij,jk->ik", 2, {2, 3}); });
  add("einsum-of-signs", [] { return einsum("->->,,..", 1, {2, 3}); });
  add("einsum-of-bytes", [] { return einsum("\xff\x01->\x02", 1, {2, 3}); });
  add("einsum-result-from-nowhere", [] { return einsum("ij->iz", 1, {2, 3}); });
  corpus.push_back(
      {"shape/slice-extreme",
       [] {
         return with_longs("Slice", {2, 3}, {{INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MIN}, {0, 1}, {1, -1}});
       },
       std::nullopt, ""});
  corpus.push_back(
      {"shape/slice-steps-extreme",
       [] {
         return with_longs("Slice", {2, 3}, {{0, 2}, {INT64_MAX, INT64_MIN}, {0, 1}, {INT64_MAX, INT64_MIN}});
       },
       std::nullopt, ""});
  corpus.push_back({"shape/gather-outside", [] { return gather(7); }, std::nullopt, ""});
  corpus.push_back({"shape/gather-extreme", [] { return gather(INT64_MIN); }, std::nullopt, ""});
  corpus.push_back({"shape/shape-from-gather", [] { return shape_from_gather(1); }, std::nullopt, ""});
  corpus.push_back(
      {"shape/shape-from-gather-outside", [] { return shape_from_gather(7); }, ErrorCode::kValueOutOfRange, ""});
  corpus.push_back({"shape/einsum-bomb",
                    [] {
                      return einsum("ab,cd,ef,gh,ij,kl,mn,op->abcdefghijklmnop", 8, {64, 64});
                    },
                    ErrorCode::kInvalidNode, ""});
}

void add_types(Corpus& corpus) {
  const auto add = [&](const char* name, std::function<std::string()> bytes, ErrorCode code, const char* says = "") {
    corpus.push_back({std::string("type/") + name, std::move(bytes), code, says});
  };
  add(
      "relu-of-text", [] { return input_of_type("Relu", kString); }, ErrorCode::kUnknownShape, "text");
  add(
      "exp-of-integers", [] { return input_of_type("Exp", kInt64); }, kInvalid);
  add(
      "not-of-reals", [] { return input_of_type("Not", kFloat); }, kInvalid);
  add(
      "relu-of-a-sequence", [] { return sequence_input("Relu"); }, kInvalid, "sequence");
  add(
      "length-of-a-tensor", [] { return node("SequenceLength", {2}); }, kInvalid);
  add(
      "item-of-a-tensor",
      [] {
        return one_node("SequenceAt", {"x", "i"}, {2}, {}, {scalar("i", 0)}).bytes();
      },
      kInvalid);
  add("map", map_input, ErrorCode::kUnsupportedType, "maps");
  add("optional-of-nothing", optional_without_type, ErrorCode::kMalformedModel, "element type");
  add(
      "cast-to-nothing", [] { return node("Cast", {2}, {int_attr("to", 0)}); }, ErrorCode::kMalformedModel,
      "no element type");
  corpus.push_back({"type/element-of-a-tensor", [] { return node("OptionalGetElement", {2}); }, std::nullopt, ""});
  add(
      "zero-point-of-another-type", [] { return quantised(3, kFloat, 3); }, kInvalid);
  add(
      "zero-points-of-another-count", [] { return quantised(3, kInt8, 2); }, kInvalid);
  add(
      "scales-of-another-count", [] { return quantised(2, kUint8, 2); }, kInvalid);
  add(
      "indices-that-are-reals",
      [] {
        return one_node("Gather", {"x", "x"}, {2, 3}).bytes();
      },
      kInvalid);
  add(
      "shape-that-is-real",
      [] {
        return one_node("Reshape", {"x", "w"}, {2}, {}, {floats("w", {1})}).bytes();
      },
      kInvalid);
  add(
      "missing-operand", [] { return node("Add", {2}); }, kInvalid, "missing");
  add(
      "empty-operand",
      [] {
        return one_node("Add", {"x", ""}, {2}).bytes();
      },
      kInvalid, "missing");
  add(
      "too-many-results",
      [] {
        ModelWriter m = one_node("Relu", {"x"}, {2});
        m.nodes[0].outputs = {"y", "z"};
        return m.bytes();
      },
      kInvalid, "no output 1");
}

}  // namespace

Corpus operator_models() {
  Corpus corpus;
  add_attributes(corpus);
  add_shapes(corpus);
  add_types(corpus);
  return corpus;
}

}  // namespace heddle::hostile
