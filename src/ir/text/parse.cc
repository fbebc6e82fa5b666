#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "ir/reference/scalar.h"
#include "ir/text/text.h"
#include "ir/text/token_reader.h"

namespace heddle::ir {
namespace {

// Bounds on what a hostile text can cost: bodies within bodies (recursion), and bytes of constants that one written
// value fills.
constexpr int kMaxDepth = 32;
constexpr size_t kMaxFillBytes = size_t{256} << 20;

class Parser : private TokenReader {
 public:
  using TokenReader::TokenReader;

  Graph run() {
    Graph graph = parse_graph(0);
    if (token().kind != Token::Kind::kEnd) expected("the end of the text");
    return graph;
  }

 private:
  using Names = std::unordered_map<std::string, ValueId>;

  // Runs what the graph itself may refuse, and says where in the text that was.
  template <typename F>
  auto located(const Token& token, F action) {
    try {
      return action();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal || error.code() == ErrorCode::kInvalidIr) throw;
      fail(token, error.where().empty() ? error.why() : error.where() + ": " + error.why());
    }
  }

  Graph parse_graph(int depth) {
    if (depth > kMaxDepth) fail(token(), fmt::format("bodies are nested deeper than {}", kMaxDepth));
    if (!at_name("graph")) expected("'graph'");
    take();
    if (token().kind == Token::Kind::kName) take();
    Graph graph;
    Names names;
    expect('(');
    list(')', [&] {
      const Token name = expect(Token::Kind::kValue, "a parameter such as %x");
      expect(':');
      TensorType type = parse_type();
      const ValueId value = located(name, [&] { return graph.parameter(name.text, std::move(type)); });
      define(names, name, value);
    });
    expect('{');
    while (!at_name("return")) parse_node(graph, names, depth);
    take();
    if (!at('}')) {
      do {
        const Token name = expect(Token::Kind::kString, "the name of an output in quotes");
        expect('=');
        const ValueId value = use(names);
        located(name, [&] { graph.output(name.text, value); });
        if (at_name("in")) parse_alias(graph, names);
      } while (accept(','));
    }
    expect('}');
    return graph;
  }

  // The parameter whose memory the last output shares.
  void parse_alias(Graph& graph, const Names& names) {
    take();
    const Token name = token();
    const ValueId value = use(names);
    const auto& inputs = graph.inputs();
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const Graph::Port& port) { return port.value == value; });
    if (input == inputs.end()) fail(name, fmt::format("%{} is no parameter", name.text));
    located(name, [&] { graph.set_alias(graph.outputs().size() - 1, static_cast<int32_t>(input - inputs.begin())); });
  }

  void define(Names& names, const Token& name, ValueId value) {
    if (!names.emplace(name.text, value).second) fail(name, fmt::format("%{} is defined twice", name.text));
  }
  ValueId use(const Names& names) {
    const Token name = expect(Token::Kind::kValue, "a value such as %0");
    const auto found = names.find(name.text);
    if (found == names.end()) fail(name, fmt::format("%{} is not defined above", name.text));
    return found->second;
  }

  void parse_node(Graph& graph, Names& names, int depth) {
    std::vector<Token> results;
    do {
      results.push_back(expect(Token::Kind::kValue, "a result such as %0, or 'return'"));
    } while (accept(','));
    expect('=');
    const Token op_name = expect(Token::Kind::kName, "the name of a primitive");
    const std::optional<Op> op = parse_op(op_name.text);
    if (!op) fail(op_name, fmt::format("there is no primitive named {}", op_name.text));
    if (*op == Op::kParameter) fail(op_name, "parameters stand in the head of the graph");
    std::vector<ValueId> operands;
    if (accept('(')) list(')', [&] { operands.push_back(use(names)); });
    Attrs attrs;
    if (accept('{')) list('}', [&] { parse_attr(attrs, depth); });
    std::vector<TensorType> types;
    if (accept(':')) {
      do {
        types.push_back(parse_type());
      } while (accept(','));
    }
    std::vector<OriginId> origins;
    while (accept('@')) origins.push_back(parse_origin(graph));

    const NodeId id =
        located(op_name, [&] { return graph.add(*op, std::move(operands), std::move(attrs), std::move(origins)); });
    const std::vector<ValueId>& outputs = graph.node(id).outputs;
    if (outputs.size() != results.size()) {
      fail(op_name, fmt::format("{} has {} results, {} are named", op_name.text, outputs.size(), results.size()));
    }
    if (!types.empty() && types.size() != outputs.size()) {
      fail(op_name, fmt::format("{} has {} results, {} types are given", op_name.text, outputs.size(), types.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      define(names, results[i], outputs[i]);
      if (types.empty() || graph.type(outputs[i]) == types[i]) continue;
      fail(op_name, fmt::format("the type of %{} is {}, not {}", results[i].text, to_string(graph.type(outputs[i])),
                                to_string(types[i])));
    }
  }

  OriginId parse_origin(Graph& graph) {
    const std::string text = expect(Token::Kind::kString, "an origin in quotes").text;
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) return graph.origin({text, ""});
    return graph.origin({text.substr(0, colon), text.substr(colon + 1)});
  }

  TensorType parse_type() {
    const Token name = expect(Token::Kind::kName, "a type such as f32[2,3]");
    const std::optional<DType> dtype = parse_dtype(name.text);
    if (!dtype) fail(name, fmt::format("there is no element type named {}", name.text));
    return {*dtype, parse_shape()};
  }

  Shape parse_shape() {
    const Token start = token();
    Shape shape = parse_ints();
    located(start, [&] { return element_count(shape); });
    return shape;
  }

  Ints parse_ints() {
    Ints values;
    expect('[');
    list(']', [&] { values.push_back(integer()); });
    return values;
  }

  double parse_real() {
    if (at_name("inf") || at_name("nan")) {
      return take().text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    const Token token = expect(Token::Kind::kNumber, "a number");
    double value = 0;
    const char* begin = token.text.data() + (token.text[0] == '+' ? 1 : 0);
    const char* end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end) fail(token, fmt::format("{} is not a number", token.text));
    return value;
  }

  void parse_attr(Attrs& attrs, int depth) {
    const Token name = expect(Token::Kind::kName, "the name of an attribute");
    if (attrs.has(name.text)) fail(name, fmt::format("attribute {} is given twice", name.text));
    expect('=');
    attrs.set(name.text, parse_attr_value(depth));
  }

  Attr parse_attr_value(int depth) {
    if (token().kind == Token::Kind::kString) return take().text;
    if (at('[')) return parse_ints();
    if (at_name("graph")) return std::make_shared<const Graph>(parse_graph(depth + 1));
    if (token().kind == Token::Kind::kNumber) {
      const bool real = token().text.find_first_of(".eEin") != std::string::npos;
      return real ? Attr(parse_real()) : Attr(integer());
    }
    if (at_name("inf") || at_name("nan")) return parse_real();
    const Token name = expect(Token::Kind::kName, "the value of an attribute");
    const std::optional<DType> dtype = parse_dtype(name.text);
    if (!dtype) fail(name, fmt::format("{} is no value of an attribute", name.text));
    if (!at('[')) return *dtype;
    return parse_tensor(name, *dtype);
  }

  Tensor parse_tensor(const Token& start, DType dtype) {
    Shape shape = parse_shape();
    if (at_name("dense")) {
      fail(token(), "this constant was printed without its elements (max_constant_elements), it cannot be read back");
    }
    expect('{');
    if (dtype == DType::kString) {
      std::vector<std::string> values;
      list('}', [&] { values.push_back(expect(Token::Kind::kString, "a string").text); });
      return located(start, [&] { return Tensor::of_strings(std::move(shape), std::move(values)); });
    }
    std::vector<double> reals;
    std::vector<int64_t> integers;
    list('}', [&] {
      if (is_float(dtype)) {
        reals.push_back(parse_real());
      } else {
        integers.push_back(parse_element(dtype));
      }
    });
    const int64_t given = static_cast<int64_t>(reals.size() + integers.size());
    const int64_t count = element_count(shape);
    if (given != count && given != 1) {
      fail(start, fmt::format("{} values are given for the {} elements of {}", given, count, heddle::to_string(shape)));
    }
    if (given == 1 && count > 1) reserve_fill(start, static_cast<size_t>(count), size_of(dtype));
    if (count == 0) return Tensor(dtype, std::move(shape));
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<size_t>(given == 1 ? 0 : i);
      is_float(dtype) ? set_real(tensor, i, reals[from]) : set_integer(tensor, i, integers[from]);
    }
    return tensor;
  }

  void reserve_fill(const Token& start, size_t count, size_t size) {
    if (count > (kMaxFillBytes - filled_) / size) {
      fail(start, fmt::format("constants filled with one value are limited to {} MiB", kMaxFillBytes >> 20));
    }
    filled_ += count * size;
  }

  int64_t parse_element(DType dtype) {
    const Token given = token();
    if (dtype == DType::kBool && (at_name("true") || at_name("false"))) return take().text == "true";
    if (dtype == DType::kU64) return static_cast<int64_t>(integer<uint64_t>());
    const auto value = integer();
    const int bits = dtype == DType::kBool ? 1 : bits_of(dtype);
    const bool is_signed = is_signed_int(dtype);
    const int64_t high = is_signed ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : (int64_t{1} << bits) - 1;
    const int64_t low = is_signed ? -high - 1 : 0;
    if (value < low || value > high) fail(given, fmt::format("{} does not fit {}", value, to_string(dtype)));
    return value;
  }

  size_t filled_ = 0;
};

}  // namespace

Graph parse(std::string_view text) {
  return Parser(text).run();
}

}  // namespace heddle::ir
