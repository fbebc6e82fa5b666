#include "lang/ir/parse.h"

#include <limits>
#include <unordered_map>

#include "base/near_miss.h"
#include "lang/ir/literals.h"
#include "lang/ir/verify.h"

namespace heddle::lang {
namespace {

// Regions within regions: bounds the recursion that a hostile text can cause.
constexpr int kMaxDepth = 64;

class Parser : private ir::TokenReader {
 public:
  explicit Parser(std::string_view text) : TokenReader(text, "docs/design/tile-language.md") {}

  Kernel run() {
    expect_name("tile_ir");
    const Token version = expect(Token::Kind::kNumber, "the version of the tile IR");
    if (version.text != "2") fail(version, fmt::format("version {} of the tile IR; this Heddle reads 2", version.text));
    while (at_name("file")) parse_file();
    expect_name("kernel");
    expect('@');
    kernel_.name = expect(Token::Kind::kName, "the name of the kernel").text;
    expect('(');
    list(')', [&] { parse_parameter(); });
    if (at('{') && starts_attributes(*this, true)) kernel_.attributes = parse_attributes(*this);
    kernel_.body = parse_region({}, 0);
    if (token().kind != Token::Kind::kEnd) expected("the end of the text");
    return std::move(kernel_);
  }

 private:
  // Reads an integer from 0 to 2^31 - 1.
  int small(std::string_view what) {
    const Token number = token();
    const int64_t value = integer(what);
    if (value < 0 || value > std::numeric_limits<int>::max()) fail(number, fmt::format("{} is no {}", value, what));
    return static_cast<int>(value);
  }

  void parse_file() {
    take();
    const Token number = token();
    if (small("number of a file") != static_cast<int>(kernel_.files.size())) {
      fail(number, fmt::format("files are numbered from 0, this one is {}", kernel_.files.size()));
    }
    kernel_.files.push_back(expect(Token::Kind::kString, "the name of a file").text);
  }

  void parse_parameter() {
    const Token name = expect(Token::Kind::kValue, "a parameter");
    expect(':');
    Kernel::Parameter parameter;
    const Type type = parse_type(*this);
    if (!type.is_scalar())
      fail(name, fmt::format("parameter %{} is {}; parameters are scalars", name.text, to_string(type)));
    parameter.value = define(name, type);
    if (at('{')) parameter.attributes = parse_attributes(*this);
    kernel_.parameters.push_back(std::move(parameter));
  }

  // ---- Values

  ValueId define(const Token& name, Type type) {
    if (names_.contains(name.text)) fail(name, fmt::format("%{} is defined already", name.text));
    const ValueId value = kernel_.add_value(std::move(type), name.text);
    names_.emplace(name.text, value);
    scope_.push_back(name.text);
    return value;
  }

  ValueId operand() {
    const Token name = expect(Token::Kind::kValue, "a value");
    const auto found = names_.find(name.text);
    if (found == names_.end()) {
      std::vector<std::string_view> known(scope_.begin(), scope_.end());
      fail(name, fmt::format("{}%{} is not defined here", did_you_mean(name.text, known), name.text));
    }
    return found->second;
  }

  void leave(size_t outer) {
    while (scope_.size() > outer) {
      names_.erase(scope_.back());
      scope_.pop_back();
    }
  }

  // ---- Ops

  // Arguments of a region: a name, and a type unless that is known from elsewhere.
  struct Argument {
    Token name;
    std::optional<Type> type;
  };

  Region parse_region(const std::vector<Argument>& arguments, int depth, const std::vector<Type>& known = {}) {
    if (depth > kMaxDepth) fail(token(), fmt::format("regions are nested deeper than {}", kMaxDepth));
    const size_t outer = scope_.size();
    expect('{');
    Region region;
    const auto add = [&](const Argument& argument, size_t i) {
      if (!argument.type && i >= known.size()) fail(argument.name, "this argument has no type");
      region.arguments.push_back(define(argument.name, argument.type ? *argument.type : known[i]));
    };
    for (size_t i = 0; i < arguments.size(); ++i) add(arguments[i], i);
    if (accept('(')) {
      size_t i = arguments.size();
      list(')', [&] {
        Argument argument{expect(Token::Kind::kValue, "an argument"), std::nullopt};
        if (accept(':')) argument.type = parse_type(*this);
        add(argument, i++);
      });
    }
    while (!at('}')) region.ops.push_back(parse_op(depth));
    take();
    leave(outer);
    return region;
  }

  Op parse_op(int depth) {
    std::vector<Token> results;
    if (token().kind == Token::Kind::kValue) {
      do results.push_back(expect(Token::Kind::kValue, "a result"));
      while (accept(','));
      expect('=');
    }
    const Token word = expect(Token::Kind::kName, "an operation");
    const auto code = parse_op_name(word);
    Op op;
    op.code = code;
    op.text_line = word.line;
    op.text_column = word.column;
    std::vector<Argument> arguments;
    parse_operands(op, arguments);
    if (at('{') && starts_attributes(*this, info_of(code).regions > 0)) op.attributes = parse_attributes(*this);
    const std::vector<Type> types = parse_types(*this);
    if (types.size() != results.size()) {
      fail(word, fmt::format("{} results with {} types", results.size(), types.size()));
    }
    if (at('@')) op.frame = parse_place();
    parse_regions(op, arguments, types, depth);
    if (op.frame < 0 && at('@')) op.frame = parse_place();
    for (size_t i = 0; i < results.size(); ++i) op.results.push_back(define(results[i], types[i]));
    return op;
  }

  OpCode parse_op_name(const Token& word) const {
    const auto code = lang::parse_op(word.text);
    if (!code) fail(word, fmt::format("{}'{}' is no operation", did_you_mean(word.text, op_names()), word.text));
    return *code;
  }

  void parse_operands(Op& op, std::vector<Argument>& arguments) {
    if (op.code == OpCode::kFor) {
      const Token index = expect(Token::Kind::kValue, "the variable of the loop");
      expect('=');
      op.operands.push_back(operand());
      arguments.push_back({index, kernel_.type(op.operands[0])});
      expect_name("to");
      op.operands.push_back(operand());
      expect_name("step");
      op.operands.push_back(operand());
      if (at('(')) parse_bindings(op, arguments);
    } else if (op.code == OpCode::kWhile) {
      parse_bindings(op, arguments);
    } else if (token().kind == Token::Kind::kValue && !is(1, '=') && !starts_results()) {
      do op.operands.push_back(operand());
      while (accept(','));
    }
  }

  // Whether values that stand here are the results of the next op: "%a, %b =".
  bool starts_results() {
    size_t i = 0;
    while (token(i).kind == Token::Kind::kValue && is(i + 1, ',')) i += 2;
    return token(i).kind == Token::Kind::kValue && is(i + 1, '=');
  }

  // (%acc = %init, ...)
  void parse_bindings(Op& op, std::vector<Argument>& arguments) {
    expect('(');
    list(')', [&] {
      const Token name = expect(Token::Kind::kValue, "a carried value");
      expect('=');
      op.operands.push_back(operand());
      arguments.push_back({name, kernel_.type(op.operands.back())});
    });
  }

  void parse_regions(Op& op, const std::vector<Argument>& arguments, const std::vector<Type>& types, int depth) {
    const int count = info_of(op.code).regions;
    if (count == 0) return;
    op.regions.push_back(parse_region(arguments, depth + 1));
    if (count == 1) return;
    if (op.code == OpCode::kWhile) {
      expect_name("do");
      op.regions.push_back(parse_region({}, depth + 1, types));
    } else if (at_name("else")) {
      take();
      op.regions.push_back(parse_region({}, depth + 1));
    } else {
      Op yield;
      yield.code = OpCode::kYield;
      yield.text_line = op.text_line;
      yield.text_column = op.text_column;
      op.regions.emplace_back().ops.push_back(std::move(yield));
    }
  }

  // @file:line:column, then < file:line:column for each caller.
  int parse_place() {
    expect('@');
    std::vector<Frame> chain;
    do {
      const Token where = token();
      Frame frame;
      frame.file = small("number of a file");
      if (frame.file >= static_cast<int>(kernel_.files.size()))
        fail(where, fmt::format("there is no file {}", frame.file));
      expect(':');
      frame.line = small("line");
      expect(':');
      frame.column = small("column");
      chain.push_back(frame);
    } while (accept('<'));
    int caller = -1;
    for (size_t i = chain.size(); i-- > 0;) {
      chain[i].caller = caller;
      caller = frame_of(chain[i]);
    }
    return caller;
  }

  // Ops of one line share their frame, and what was inlined its callers.
  int frame_of(const Frame& frame) {
    const auto key = fmt::format("{}:{}:{}:{}", frame.file, frame.line, frame.column, frame.caller);
    const auto [found, is_new] = frames_.emplace(key, static_cast<int>(kernel_.frames.size()));
    if (is_new) kernel_.frames.push_back(frame);
    return found->second;
  }

  Kernel kernel_;
  std::unordered_map<std::string, ValueId> names_;
  std::vector<std::string> scope_;  // names in the order of their definition
  std::unordered_map<std::string, int> frames_;
};

}  // namespace

Kernel parse(std::string_view text) {
  return Parser(text).run();
}

Kernel parse_and_verify(std::string_view text) {
  Kernel kernel = parse(text);
  verify(kernel);
  return kernel;
}

}  // namespace heddle::lang
