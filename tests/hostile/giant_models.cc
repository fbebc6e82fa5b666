#include "corpus.h"

namespace heddle::hostile {
namespace {

using onnx::testing::int_attr;
using onnx::testing::kBool;
using onnx::testing::kFloat;
using onnx::testing::kInt64;
using onnx::testing::ModelWriter;
using onnx::testing::Node;
using onnx::testing::raw_tensor;
using onnx::testing::tensor_attr;
using onnx::testing::tensor_type;
using onnx::testing::value_info;

constexpr int64_t kLarge = int64_t{1} << 40, kGiant = int64_t{1} << 62;

// A vector of extents that the node reads as its last input.
std::string shaped(const std::string& op, const std::vector<int64_t>& extents, const std::string& attribute = "") {
  std::vector<std::string> attributes;
  if (!attribute.empty()) attributes.push_back(attribute);
  return one_node(op, {"x", "s"}, {2, 3}, attributes, {longs("s", extents)}).bytes();
}

// Something whose shape follows from values that take long to compute.
std::string shape_of_computed(int64_t extent) {
  ModelWriter m = one_node("NonZero", {"c"}, {1}, {}, {longs("s", {extent})});
  m.nodes.insert(m.nodes.begin(), {"ConstantOfShape", {"s"}, {"c"}, {}, "", ""});
  return m.bytes();
}

std::string square_of_constant(int64_t n) {
  ModelWriter m = one_node("NonZero", {"p"}, {1}, {}, {longs("s", {n, n})});
  m.nodes.insert(m.nodes.begin(),
                 {{"ConstantOfShape", {"s"}, {"c"}, {}, "", ""}, {"MatMul", {"c", "c"}, {"p"}, {}, "", ""}});
  return m.bytes();
}

std::string of_many(const std::string& op, int count) {
  std::vector<std::string> inputs(static_cast<size_t>(count), "x");
  std::vector<std::string> attributes;
  if (op == "Concat") attributes.push_back(int_attr("axis", 0));
  return one_node(op, inputs, {1}, attributes).bytes();
}

// doubles v again and again
std::string doublings(int times) {
  ModelWriter m = one_node("Relu", {"x"}, {2});
  m.nodes.clear();
  std::string v = "x";
  for (int i = 0; i < times; ++i) {
    const std::string next = i + 1 == times ? "y" : "v" + std::to_string(i);
    m.nodes.push_back({"Concat", {v, v}, {next}, {int_attr("axis", 0)}, "", ""});
    v = next;
  }
  return m.bytes();
}

std::string chain(int length) {
  ModelWriter m = one_node("Relu", {"x"}, {2});
  m.nodes.clear();
  std::string v = "x";
  for (int i = 0; i < length; ++i) {
    const std::string next = i + 1 == length ? "y" : "v" + std::to_string(i);
    m.nodes.push_back({"Add", {v, v}, {next}, {}, "", ""});
    v = next;
  }
  return m.bytes();
}

// A loop whose body adds 1 and stacks, or grows, its state.
std::string loop(int64_t trip, bool grows, bool inside_loop) {
  ModelWriter body;
  body.inputs = {value_info("i", tensor_type(kInt64, {})), value_info("c", tensor_type(kBool, {})),
                 value_info("v", tensor_type(kFloat, {}, false))};
  body.nodes = {{"Identity", {"c"}, {"c2"}, {}, "", ""}};
  if (grows) {
    body.nodes.push_back({"Concat", {"v", "v"}, {"v2"}, {int_attr("axis", 0)}, "", ""});
  } else {
    body.nodes.push_back({"Add", {"v", "v"}, {"v2"}, {}, "", ""});
  }
  body.outputs = {value_info("c2", tensor_type(kBool, {})), value_info("v2", tensor_type(kFloat, {}, false))};
  std::string graph = body.graph_bytes();
  if (inside_loop) {
    ModelWriter outer = body;
    outer.nodes = {{"Identity", {"c"}, {"c2"}, {}, "", ""},
                   {"Loop", {"trip", "", "v"}, {"v2"}, {graph_attr("body", graph)}, "", ""}};
    graph = outer.graph_bytes();
  }
  return one_node("Loop", {"trip", "", "x"}, {1}, {graph_attr("body", graph)}, {scalar("trip", trip)}).bytes();
}

void add_many(Corpus& corpus) {
  for (const char* op : {"Concat", "Sum", "Max", "Mean"}) {
    corpus.push_back(
        {std::string("giant/") + op + "-of-100000", [op] { return of_many(op, 100'000); }, std::nullopt, ""});
  }
  corpus.push_back({"giant/chain-of-50000", [] { return chain(50'000); }, std::nullopt, ""});
  corpus.push_back({"giant/20-doublings", [] { return doublings(20); }, std::nullopt, ""});
  corpus.push_back({"giant/100-doublings", [] { return doublings(100); }, ErrorCode::kInvalidNode, ""});
}

void add_loops(Corpus& corpus) {
  corpus.push_back({"loop/without-end", [] { return loop(INT64_MAX, false, false); }, std::nullopt, ""});
  corpus.push_back({"loop/negative", [] { return loop(-5, false, false); }, std::nullopt, ""});
  corpus.push_back({"loop/that-grows-twice", [] { return loop(2, true, false); }, std::nullopt, ""});
  corpus.push_back({"loop/that-grows-without-end", [] { return loop(INT64_MAX, true, false); },
                    ErrorCode::kUnsupportedOperator, "4096"});
  corpus.push_back({"loop/in-a-loop-without-end", [] { return loop(INT64_MAX, false, true); }, std::nullopt, ""});
  corpus.push_back({"loop/in-a-loop-that-grows", [] { return loop(64, true, true); }, ErrorCode::kInvalidNode, ""});
}

constexpr auto kMemory = ErrorCode::kOutOfMemory;

Corpus extents() {
  return {
      {"giant/input", [] { return one_node("Relu", {"x"}, {kLarge}).bytes(); }, kMemory, "Reduce its shape"},
      {"giant/input-that-overflows",
       [] {
         return one_node("Relu", {"x"}, {kGiant, kGiant}).bytes();
       },
       ErrorCode::kInvalidInput, "overflow"},
      {"giant/reshape-to-another-size", [] { return shaped("Reshape", {kGiant}); }, kInvalid, ""},
      {"giant/reshape-that-overflows",
       [] {
         return shaped("Reshape", {kGiant, kGiant});
       },
       kInvalid, ""},
      {"giant/reshape-two-unknown",
       [] {
         return shaped("Reshape", {-1, -1});
       },
       kInvalid, ""},
      {"giant/reshape-negative",
       [] {
         return shaped("Reshape", {-2, 3});
       },
       kInvalid, ""},
      {"giant/reshape-smallest",
       [] {
         return shaped("Reshape", {INT64_MIN, 3});
       },
       kInvalid, ""},
      {"giant/reshape-zero-and-unknown",
       [] {
         return shaped("Reshape", {0, -1, 0});
       },
       kInvalid, ""},
      {"giant/expand-that-overflows",
       [] {
         return shaped("Expand", {kGiant, kGiant, 2, 3});
       },
       kInvalid, ""},
      {"giant/expand-negative",
       [] {
         return shaped("Expand", {-1, 2, 3});
       },
       kInvalid, ""},
      {"giant/tile-that-overflows",
       [] {
         return shaped("Tile", {kGiant, kGiant});
       },
       kInvalid, ""},
      {"giant/tile-negative",
       [] {
         return shaped("Tile", {-1, 1});
       },
       kInvalid, ""},
      {"giant/tile-of-another-rank", [] { return shaped("Tile", {2}); }, kInvalid, ""},
      {"giant/pad-that-overflows",
       [] {
         return shaped("Pad", {kGiant, kGiant, kGiant, kGiant});
       },
       kInvalid, ""},
      {"giant/pad-smallest",
       [] {
         return shaped("Pad", {INT64_MIN, 0, 0, 0});
       },
       ErrorCode::kInvalidNode, "pads of"},
      {"giant/pad-more-than-there-is",
       [] {
         return shaped("Pad", {-3, 0, 0, 0});
       },
       ErrorCode::kInvalidNode, "pads of -3"},
      {"giant/pad-of-another-rank",
       [] {
         return shaped("Pad", {1, 1});
       },
       kInvalid, ""},
  };
}

Corpus computed() {
  return {
      {"giant/computed-shape", [] { return shape_of_computed(int64_t{1} << 34); }, kMemory, "too large"},
      {"giant/computed-shape-that-overflows", [] { return shape_of_computed(kGiant); }, kMemory, "too large"},
      {"giant/computed-product", [] { return square_of_constant(5000); }, ErrorCode::kLimit, ""},
      {"giant/range",
       [] {
         return one_node("Range", {"a", "b", "c"}, {1}, {}, {scalar("a", 0), scalar("b", kGiant), scalar("c", 1)})
             .bytes();
       },
       kInvalid, ""},
      {"giant/range-without-a-step",
       [] {
         return one_node("Range", {"a", "b", "c"}, {1}, {}, {scalar("a", 0), scalar("b", 9), scalar("c", 0)}).bytes();
       },
       kInvalid, ""},
      {"giant/range-that-overflows",
       [] {
         return one_node("Range", {"a", "b", "c"}, {1}, {},
                         {scalar("a", INT64_MIN), scalar("b", INT64_MAX), scalar("c", 1)})
             .bytes();
       },
       kInvalid, ""},
  };
}

Corpus operators() {
  return {
      {"giant/one-hot",
       [] {
         return one_node("OneHot", {"i", "d", "v"}, {1}, {},
                         {longs("i", {0, 1}), scalar("d", kGiant), raw_tensor<float>("v", kFloat, {2}, {0, 1})})
             .bytes();
       },
       kInvalid, ""},
      {"giant/eye-like",
       [] {
         return one_node("EyeLike", {"x"}, {int64_t{1} << 20, int64_t{1} << 20}).bytes();
       },
       kMemory, ""},
      {"giant/window",
       [] {
         return one_node("MaxPool", {"x"}, {1, 1, 8, 8}, {onnx::testing::ints_attr("kernel_shape", {kGiant, kGiant})})
             .bytes();
       },
       kInvalid, ""},
      {"giant/dilation",
       [] {
         return one_node("MaxPool", {"x"}, {1, 1, 8, 8},
                         {onnx::testing::ints_attr("kernel_shape", {2, 2}),
                          onnx::testing::ints_attr("dilations", {kGiant, kGiant})})
             .bytes();
       },
       kInvalid, ""},
  };
}

}  // namespace

Corpus giant_models() {
  Corpus corpus = extents();
  for (Corpus part : {computed(), operators()}) corpus.insert(corpus.end(), part.begin(), part.end());
  add_many(corpus);
  add_loops(corpus);
  return corpus;
}

}  // namespace heddle::hostile
