#include "corpus.h"

namespace heddle::hostile {
namespace {

using onnx::testing::Function;
using onnx::testing::int_attr;
using onnx::testing::kBool;
using onnx::testing::kFloat;
using onnx::testing::ModelWriter;
using onnx::testing::Node;
using onnx::testing::pbf_writer;
using onnx::testing::tensor_type;
using onnx::testing::value_info;

std::string with_nodes(std::vector<Node> nodes) {
  ModelWriter m = relu_model();
  m.nodes = std::move(nodes);
  return m.bytes();
}

std::string with_version(int64_t ir, std::vector<std::pair<std::string, int64_t>> opsets) {
  ModelWriter m = relu_model();
  m.ir_version = ir;
  m.opsets = std::move(opsets);
  return m.bytes();
}

std::string named(const std::string& name) {
  ModelWriter m = relu_model();
  m.inputs = {value_info(name, tensor_type(kFloat, {2, 3}))};
  m.nodes = {{"Relu", {name}, {name + "'"}, {}, name, ""}};
  m.outputs = {value_info(name + "'", tensor_type(kFloat, {}, false))};
  return m.bytes();
}

std::string long_cycle(int length) {
  std::vector<Node> nodes;
  for (int i = 0; i < length; ++i) {
    nodes.push_back({"Relu", {"v" + std::to_string((i + length - 1) % length)}, {"v" + std::to_string(i)}, {}, "", ""});
  }
  nodes.push_back({"Add", {"x", "v0"}, {"y"}, {}, "", ""});
  return with_nodes(std::move(nodes));
}

std::string reversed_chain(int length) {
  std::vector<Node> nodes = {{"Relu", {"v1"}, {"y"}, {}, "", ""}};
  for (int i = 1; i < length; ++i) {
    nodes.push_back({"Relu", {"v" + std::to_string(i + 1)}, {"v" + std::to_string(i)}, {}, "", ""});
  }
  nodes.push_back({"Relu", {"x"}, {"v" + std::to_string(length)}, {}, "", ""});
  return with_nodes(std::move(nodes));
}

// ---- functions

ModelWriter with_functions(std::vector<Function> functions, const std::string& called) {
  ModelWriter m = relu_model();
  m.opsets.emplace_back("local", 1);
  m.functions = std::move(functions);
  m.nodes = {{called, {"x"}, {"y"}, {}, "outer", "local"}};
  return m;
}

Function calling(const std::string& name, const std::vector<std::string>& callees) {
  Function f{name, "local", {"v0"}, {"v" + std::to_string(callees.size())}, {}, {}};
  for (size_t i = 0; i < callees.size(); ++i) {
    f.nodes.push_back({callees[i],
                       {"v" + std::to_string(i)},
                       {"v" + std::to_string(i + 1)},
                       {},
                       "",
                       callees[i] == "Relu" ? "" : "local"});
  }
  return f;
}

// Each of `levels` functions calls the next `fan` times.
std::string function_bomb(int levels, int fan) {
  std::vector<Function> functions;
  for (int i = 0; i < levels; ++i) {
    const std::string next = i + 1 < levels ? "F" + std::to_string(i + 1) : "Relu";
    functions.push_back(calling("F" + std::to_string(i), std::vector<std::string>(static_cast<size_t>(fan), next)));
  }
  return with_functions(std::move(functions), "F0").bytes();
}

std::string circle_of_functions(int length) {
  std::vector<Function> functions;
  for (int i = 0; i < length; ++i) {
    functions.push_back(calling("F" + std::to_string(i), {"F" + std::to_string((i + 1) % length)}));
  }
  return with_functions(std::move(functions), "F0").bytes();
}

std::string function_that_calls_itself_in_a_branch() {
  ModelWriter branch;
  branch.nodes = {{"F", {"v0"}, {"b"}, {}, "", "local"}};
  branch.output("b");
  Function f = calling("F", {"Relu"});
  f.nodes.push_back({"If",
                     {"c"},
                     {"v2"},
                     {graph_attr("then_branch", branch.graph_bytes()), graph_attr("else_branch", branch.graph_bytes())},
                     "",
                     ""});
  return with_functions({f}, "F").bytes();
}

std::string function_with(const Function& f) {
  return with_functions({f}, "F").bytes();
}

// ---- graphs in graphs

// If inside If, each reading x from outside.
std::string nested_branches(int levels) {
  ModelWriter inner;
  inner.nodes = {{"Relu", {"x"}, {"r0"}, {}, "", ""}};
  inner.output("r0");
  std::string graph = inner.graph_bytes();
  for (int i = 1; i <= levels; ++i) {
    ModelWriter outer;
    const std::string result = "r" + std::to_string(i);
    outer.nodes = {
        {"If", {"c"}, {result}, {graph_attr("then_branch", graph), graph_attr("else_branch", graph)}, "", ""}};
    outer.output(result);
    graph = i == levels ? graph : outer.graph_bytes();
  }
  ModelWriter m = relu_model();
  m.input("c", kBool, {});
  m.nodes = {{"If", {"c"}, {"y"}, {graph_attr("then_branch", graph), graph_attr("else_branch", graph)}, "", ""}};
  return m.bytes();
}

std::string deep_branches(int levels) {
  std::string graph;
  for (int i = 0; i < levels; ++i) {
    std::string node, outer;
    pbf_writer w(node);
    w.add_string(4, "If");
    w.add_message(5, graph_attr("then_branch", graph));
    pbf_writer(outer).add_message(1, node);
    graph = outer;
  }
  std::string model;
  pbf_writer w(model);
  w.add_int64(1, 8);
  w.add_message(7, graph);
  return model;
}

std::string branch_without_a_graph() {
  return one_node("If", {"x"}, {1}, {int_attr("then_branch", 1), int_attr("else_branch", 1)}).bytes();
}

void add_names(Corpus& corpus) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"not-utf8", "\xff\xfe\x80"},
      {"overlong-utf8", "\xc0\xaf"},
      {"surrogate", "\xed\xa0\x80"},
      {"escape", "\x1b[2J\x1b]0;title\x07"},
      {"newline", "a\nb\r\nc"},
      {"nul", std::string("a\0b", 3)},
      {"path", "../../etc/passwd"},
      {"format", "%s%n{}{0}"},
      {"quote", "\"; #include </etc/passwd>\n//"},
      {"comment", "*/ int main() { } /*"},
      {"long", std::string(1 << 20, 'n')},
      {"shell", "$(reboot) `reboot`; reboot"},
      {"right-to-left",
       "\xe2\x80\xae"
       "abc"},
  };
  for (const auto& [name, text] : names) {
    corpus.push_back({"name/" + name, [text = text] { return named(text); }, std::nullopt, ""});
  }
}

void add_functions(Corpus& corpus) {
  const auto bomb = [&](int levels, int fan) {
    corpus.push_back({"function/bomb-" + std::to_string(levels) + "-levels-of-" + std::to_string(fan),
                      [=] { return function_bomb(levels, fan); }, ErrorCode::kLimit, "nodes"});
  };
  bomb(40, 2);
  bomb(22, 2);
  bomb(8, 10);
  bomb(2, 10'000);
  corpus.push_back({"function/long-chain", [] { return function_bomb(1000, 1); }, ErrorCode::kLimit, "depth"});
  corpus.push_back({"function/very-long-chain", [] { return function_bomb(50'000, 1); }, ErrorCode::kLimit, "depth"});
  corpus.push_back({"function/wide", [] { return function_bomb(2, 100); }, std::nullopt, ""});
  for (const int length : {1, 2, 100, 20'000}) {
    corpus.push_back({"function/circle-of-" + std::to_string(length), [length] { return circle_of_functions(length); },
                      kMalformed, "call each other"});
  }
  corpus.push_back(
      {"function/circle-through-a-branch", function_that_calls_itself_in_a_branch, kMalformed, "call each other"});
  corpus.push_back({"function/unused-circle",
                    [] {
                      ModelWriter m = with_functions({calling("F", {"F"})}, "F");
                      m.nodes = relu_model().nodes;
                      return m.bytes();
                    },
                    std::nullopt, ""});
  corpus.push_back({"function/no-output",
                    [] {
                      return function_with({"F", "local", {"a"}, {"b"}, {}, {}});
                    },
                    kMalformed, "never defines"});
  corpus.push_back({"function/too-few-outputs",
                    [] {
                      return function_with({"F", "local", {"a"}, {}, {}, {}});
                    },
                    ErrorCode::kInvalidNode, "0 outputs"});
  corpus.push_back({"function/too-few-inputs",
                    [] {
                      return function_with({"F", "local", {}, {"b"}, {}, {{"Relu", {"b"}, {"b"}, {}, "", ""}}});
                    },
                    ErrorCode::kInvalidNode, "0 inputs"});
  corpus.push_back({"function/reads-outside",
                    [] {
                      return function_with({"F", "local", {"a"}, {"b"}, {}, {{"Relu", {"x"}, {"b"}, {}, "", ""}}});
                    },
                    kMalformed, "'x'"});
}

Corpus versions() {
  return {
      {"graph/relu", [] { return relu_model().bytes(); }, std::nullopt, ""},
      {"graph/ir-version-0",
       [] {
         return with_version(0, {{"", 17}});
       },
       kMalformed, "ir_version"},
      {"graph/ir-version-negative",
       [] {
         return with_version(-1, {{"", 17}});
       },
       kMalformed, "ir_version"},
      {"graph/ir-version-huge",
       [] {
         return with_version(INT64_MAX, {{"", 17}});
       },
       kMalformed, "ir_version"},
      {"graph/no-opset", [] { return with_version(8, {}); }, kMalformed, "operator set"},
      {"graph/opset-0",
       [] {
         return with_version(8, {{"", 0}});
       },
       kMalformed, "operator set"},
      {"graph/opset-negative",
       [] {
         return with_version(8, {{"", -17}});
       },
       ErrorCode::kUnsupportedOperator, "-17"},
      {"graph/opset-huge",
       [] {
         return with_version(8, {{"", INT64_MAX}});
       },
       ErrorCode::kUnsupportedOperator, "1 to"},
      {"graph/other-domain-only",
       [] {
         return with_version(8, {{"other", 1}});
       },
       kMalformed, "operator set"},
      {"graph/unknown-operator",
       [] {
         return with_nodes({{"Nop", {"x"}, {"y"}, {}, "", ""}});
       },
       ErrorCode::kUnsupportedOperator, "Nop"},
      {"graph/empty-operator",
       [] {
         return with_nodes({{"", {"x"}, {"y"}, {}, "", ""}});
       },
       ErrorCode::kUnsupportedOperator, ""},
      {"graph/unknown-domain",
       [] {
         return with_nodes({{"Relu", {"x"}, {"y"}, {}, "", "nowhere"}});
       },
       ErrorCode::kUnsupportedOperator, "no operator set for nowhere"},
  };
}

Corpus uses() {
  return {
      {"graph/undefined-input",
       [] {
         return with_nodes({{"Relu", {"z"}, {"y"}, {}, "", ""}});
       },
       kMalformed, "'z'"},
      {"graph/undefined-output",
       [] {
         return with_nodes({{"Relu", {"x"}, {"z"}, {}, "", ""}});
       },
       kMalformed, "output 'y'"},
      {"graph/no-nodes", [] { return with_nodes({}); }, kMalformed, "output 'y'"},
      {"graph/reads-itself",
       [] {
         return with_nodes({{"Relu", {"y"}, {"y"}, {}, "", ""}});
       },
       kMalformed, "cycle"},
      {"graph/cycle-of-100000", [] { return long_cycle(100'000); }, kMalformed, "cycle"},
      {"graph/written-backwards", [] { return reversed_chain(20'000); }, std::nullopt, ""},
      {"graph/defined-twice",
       [] {
         return with_nodes({{"Relu", {"x"}, {"y"}, {}, "", ""}, {"Abs", {"x"}, {"y"}, {}, "", ""}});
       },
       kMalformed, "twice"},
      {"graph/one-node-defines-twice",
       [] {
         return with_nodes({{"Split", {"x"}, {"y", "y"}, {}, "", ""}});
       },
       kMalformed, "twice"},
      {"graph/defines-an-input",
       [] {
         return with_nodes({{"Relu", {"x"}, {"x"}, {}, "", ""}, {"Relu", {"x"}, {"y"}, {}, "", ""}});
       },
       kMalformed, ""},
  };
}

Corpus ports() {
  return {
      {"graph/two-inputs-of-one-name",
       [] {
         ModelWriter m = relu_model();
         m.input("x", kFloat, {1});
         return m.bytes();
       },
       kMalformed, "two inputs"},
      {"graph/two-outputs-of-one-name",
       [] {
         ModelWriter m = relu_model();
         m.output("y");
         return m.bytes();
       },
       kMalformed, "two outputs"},
      {"graph/two-initialisers-of-one-name",
       [] {
         return one_node("Add", {"x", "w"}, {2}, {}, {floats("w", {2}), floats("w", {2})}).bytes();
       },
       kMalformed, "two initializers"},
      {"graph/initialiser-without-a-name", [] { return one_node("Relu", {"x"}, {2}, {}, {floats("", {2})}).bytes(); },
       kMalformed, "no name"},
      {"graph/input-without-a-type",
       [] {
         ModelWriter m = relu_model();
         std::string input;
         pbf_writer(input).add_string(1, "x");
         m.inputs = {input};
         return m.bytes();
       },
       kMalformed, "type"},
      {"graph/input-of-an-unknown-rank",
       [] {
         ModelWriter m = relu_model();
         m.inputs = {value_info("x", tensor_type(kFloat, {}, false))};
         return m.bytes();
       },
       ErrorCode::kUnknownShape, "shapes[\"x\"]"},
      {"graph/input-of-an-unknown-type",
       [] {
         ModelWriter m = relu_model();
         m.inputs = {value_info("x", tensor_type(99, {1}))};
         return m.bytes();
       },
       kMalformed, "99"},
  };
}

Corpus levels() {
  return {
      {"graph/deep-branches", [] { return deep_branches(2000); }, ErrorCode::kLimit, "depth"},
      {"graph/deep-branches-of-100000", [] { return deep_branches(10'000); }, ErrorCode::kLimit, "depth"},
      {"graph/branches-in-branches", [] { return nested_branches(10); }, std::nullopt, ""},
      {"graph/branch-that-is-a-number", branch_without_a_graph, ErrorCode::kInvalidNode, ""},
      {"graph/100000-outputs",
       [] {
         ModelWriter m = relu_model();
         for (int i = 0; i < 20'000; ++i)
           m.input("i" + std::to_string(i), kFloat, {1}), m.output("i" + std::to_string(i));
         return m.bytes();
       },
       std::nullopt, ""},
  };
}

}  // namespace

Corpus graph_models() {
  Corpus corpus = versions();
  for (Corpus part : {uses(), ports(), levels()}) corpus.insert(corpus.end(), part.begin(), part.end());
  add_names(corpus);
  add_functions(corpus);
  return corpus;
}

}  // namespace heddle::hostile
