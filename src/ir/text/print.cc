#include <cmath>

#include "base/check.h"
#include "base/hash.h"
#include "ir/reference/scalar.h"
#include "ir/text/lexer.h"
#include "ir/text/text.h"

namespace heddle::ir {
namespace {

std::string real_text(double value, bool single) {
  if (std::isnan(value)) return "nan";
  return single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

std::string element_text(const Tensor& tensor, int64_t index) {
  const DType type = tensor.dtype();
  if (type == DType::kString) return quoted(tensor.strings()[static_cast<size_t>(index)]);
  if (is_float(type)) return real_text(real_at(tensor, index), type != DType::kF64);
  if (type == DType::kU64) return fmt::format("{}", static_cast<uint64_t>(integer_at(tensor, index)));
  return fmt::format("{}", integer_at(tensor, index));
}

std::string tensor_text(const Tensor& tensor, int64_t limit) {
  std::string text = std::string(to_string(tensor.dtype())) + heddle::to_string(tensor.shape());
  if (tensor.size() > 1 && is_splat(tensor)) return text + "{" + element_text(tensor, 0) + "}";
  if (limit >= 0 && tensor.size() > limit) {
    const uint64_t hash = tensor.dtype() == DType::kString ? 0 : hash_bytes(tensor.data(), tensor.bytes()).low;
    return text + fmt::format(" dense<hash: {:016x}>", hash);
  }
  text += "{";
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i > 0) text += ", ";
    text += element_text(tensor, i);
  }
  return text + "}";
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, int depth)
      : graph_(graph), options_(options), indent_(static_cast<size_t>(depth) * 2, ' '), depth_(depth) {
    names_.resize(graph.value_count());
  }

  std::string run() {
    std::string text = "graph(";
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const auto& [name, value, alias] = graph_.inputs()[i];
      names_[value] = "%" + (is_plain_name(name) ? name : quoted(name));
      text += fmt::format("{}{}: {}", i > 0 ? ", " : "", names_[value], to_string(graph_.type(value)));
    }
    text += ") {\n";
    for (const Node& node : graph_.nodes()) {
      if (node.op != Op::kParameter) text += indent_ + "  " + node_text(node) + "\n";
    }
    text += indent_ + "  return";
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const auto& [name, value, alias] = graph_.outputs()[i];
      text += fmt::format("{} {} = {}", i > 0 ? "," : "", quoted(name), names_[value]);
      if (alias != Graph::kNoAlias) text += " in " + names_[graph_.inputs()[static_cast<size_t>(alias)].value];
    }
    return text + "\n" + indent_ + "}";
  }

 private:
  std::string node_text(const Node& node) {
    std::vector<std::string> results, operands, types;
    for (ValueId v : node.inputs) operands.push_back(names_[v]);
    for (ValueId v : node.outputs) {
      names_[v] = fmt::format("%{}", next_++);
      results.push_back(names_[v]);
      types.push_back(to_string(graph_.type(v)));
    }
    std::string text = fmt::format("{} = {}", fmt::join(results, ", "), to_string(node.op));
    if (!node.inputs.empty()) text += fmt::format("({})", fmt::join(operands, ", "));
    if (!node.attrs.empty()) {
      std::string attrs;
      for (const auto& [name, value] : node.attrs) {
        if (!attrs.empty()) attrs += ", ";
        attrs += name + " = " + attr_text(value);
      }
      text += " {" + attrs + "}";
    }
    if (node.op != Op::kConstant) text += fmt::format(" : {}", fmt::join(types, ", "));
    if (options_.origins) {
      for (OriginId id : node.origins) {
        text += " @" + quoted(graph_.origin(id).node + ":" + graph_.origin(id).op_type);
      }
    }
    return text;
  }

  std::string attr_text(const Attr& attr) const {
    if (const auto* v = std::get_if<int64_t>(&attr)) return fmt::format("{}", *v);
    if (const auto* v = std::get_if<double>(&attr)) {
      const std::string text = real_text(*v, false);
      // A real must not read as an integer.
      return text.find_first_of(".ein") == std::string::npos ? text + ".0" : text;
    }
    if (const auto* v = std::get_if<std::string>(&attr)) return quoted(*v);
    if (const auto* v = std::get_if<Ints>(&attr)) return fmt::format("[{}]", fmt::join(*v, ","));
    if (const auto* v = std::get_if<DType>(&attr)) return std::string(to_string(*v));
    if (const auto* v = std::get_if<Tensor>(&attr)) return tensor_text(*v, options_.max_constant_elements);
    return Printer(*std::get<std::shared_ptr<const Graph>>(attr), options_, depth_ + 1).run();
  }

  const Graph& graph_;
  const PrintOptions& options_;
  const std::string indent_;
  const int depth_;
  std::vector<std::string> names_;
  int next_ = 0;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options, 0).run() + "\n";
}

}  // namespace heddle::ir
