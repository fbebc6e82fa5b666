#include "random_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle::lang::testing {
namespace {

using Shape = std::vector<int64_t>;

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    case_.name = fmt::format("random program {}", seed);
    case_.grid = {1 + pick(3), 1, 1};
    case_.tolerance = 2e-3;
    line("%pid = program_id {axis = 0} : i32");
    values_.push_back({"%pid", Type::scalar(Element::kI32)});
  }

  Case run() {
    const int64_t inputs = 1 + pick(3);
    for (int64_t i = 0; i < inputs; ++i) load();
    const int64_t steps = 6 + pick(10);
    for (int64_t i = 0; i < steps; ++i) step(0);
    store_all();
    case_.text = kernel_text(fmt::format("{}", fmt::join(parameters_, ", ")), body_);
    return case_;
  }

 private:
  struct Known {
    std::string name;
    Type type;
  };

  int64_t pick(int64_t below) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(below)); }
  void line(const std::string& text) { body_ += std::string(static_cast<size_t>(2 + depth_ * 2), ' ') + text + "\n"; }
  std::string fresh() { return fmt::format("%v{}", count_++); }

  std::string add(const std::string& op, const Type& type) {
    const std::string name = fresh();
    line(fmt::format("{} = {} : {}", name, op, to_string(type)));
    values_.push_back({name, type});
    return name;
  }

  Shape random_shape() {
    constexpr int64_t kExtents[] = {1, 3, 4, 7, 8, 16, 19, 33};
    Shape shape{kExtents[pick(8)]};
    if (pick(3) > 0) shape.push_back(kExtents[pick(8)]);
    if (pick(8) == 0) shape.insert(shape.begin(), 2);
    return shape;
  }

  template <typename F>
  const Known* any(const F& fits) {
    std::vector<const Known*> all;
    for (const Known& value : values_) {
      if (fits(value.type)) all.push_back(&value);
    }
    return all.empty() ? nullptr : all[static_cast<size_t>(pick(static_cast<int64_t>(all.size())))];
  }
  static bool is_float_tile(const Type& t) { return t.is_tile() && !t.pointer && t.element == Element::kF32; }
  static bool is_int_tile(const Type& t) { return t.is_tile() && !t.pointer && t.element == Element::kI32; }

  // Indices of the elements of a shape, as a tile: row-major offsets.
  std::string offsets(const Shape& shape) {
    std::string sum;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      std::string index = add("iota {start = 0}", Type::tile({shape[d]}, Element::kI32));
      Shape now{shape[d]};
      for (size_t e = 0; e < shape.size(); ++e) {
        if (e == d) continue;
        now.insert(e < d ? now.begin() : now.end(), 1);
        index = add(fmt::format("expand_dims {} {{axis = {}}}", index, e < d ? 0 : now.size() - 1),
                    Type::tile(now, Element::kI32));
      }
      const Type type = Type::tile(shape, Element::kI32);
      if (now != shape) index = add(fmt::format("broadcast {}", index), type);
      if (stride > 1) {
        const std::string by = add(fmt::format("constant {{value = {}}}", stride), type);
        index = add(fmt::format("mul {}, {}", index, by), type);
      }
      sum = sum.empty() ? index : add(fmt::format("add {}, {}", sum, index), type);
      stride *= shape[d];
    }
    return sum;
  }

  std::string parameter(Operand operand) {
    const std::string name = fmt::format("%p{}", case_.operands.size());
    parameters_.push_back(fmt::format("{}: {}{}{}", name, operand.is_array ? "ptr<" : "",
                                      operand.is_array ? to_string(operand.element) : "i32",
                                      operand.is_array ? ">" : ""));
    case_.operands.push_back(std::move(operand));
    return name;
  }

  // A tile of an array of its own, each program one further; masked by a bound.
  void load() {
    const Shape shape = random_shape();
    const Type type = Type::tile(shape, pick(4) == 0 ? Element::kI32 : Element::kF32);
    Type pointers = type;
    pointers.pointer = true;
    const bool masked = pick(2) == 0;
    const int64_t count = type.elements() + case_.grid[0];
    const std::string base = parameter(random_array(random_, type.element, masked ? count / 2 + 1 : count, -9, 9));
    const std::string at = offsets(shape), from = fresh();
    const Type ints = type.with_element(Element::kI32);
    line(fmt::format("{} = splat %pid : {}", from, to_string(ints)));
    const std::string index = add(fmt::format("add {}, {}", at, from), ints);
    const std::string tile = fresh(), moved = fresh();
    line(fmt::format("{} = splat {} : {}", tile, base, to_string(pointers)));
    line(fmt::format("{} = addptr {}, {} : {}", moved, tile, index, to_string(pointers)));
    if (!masked) {
      add(fmt::format("load {}", moved), type);
      return;
    }
    const std::string limit = add(fmt::format("constant {{value = {}}}", count / 2 + 1), ints);
    const std::string mask =
        add(fmt::format("lt {}, {}", index, limit), type.with_element(Element::kI1));
    add(fmt::format("load {}, {}", moved, mask), type);
  }

  void store_all() {
    std::vector<Known> all;
    for (const Known& value : values_) {
      if (is_float_tile(value.type) || is_int_tile(value.type)) all.push_back(value);
    }
    const size_t count = std::min<size_t>(all.size(), 3);
    for (size_t i = 0; i < count; ++i) store(all[all.size() - 1 - i]);
  }

  void store(const Known& value) {
    Type pointers = value.type;
    pointers.pointer = true;
    const int64_t elements = value.type.elements();
    const std::string base = parameter(filled(value.type.element, elements * case_.grid[0], 77));
    const std::string at = offsets(value.type.shape), size = fresh(), start = fresh(), mine = fresh(), tile = fresh(),
                      moved = fresh();
    line(fmt::format("{} = constant {{value = {}}} : i32", size, elements));
    line(fmt::format("{} = mul %pid, {} : i32", start, size));
    line(fmt::format("{} = addptr {}, {} : ptr<{}>", mine, base, start, to_string(value.type.element)));
    line(fmt::format("{} = splat {} : {}", tile, mine, to_string(pointers)));
    line(fmt::format("{} = addptr {}, {} : {}", moved, tile, at, to_string(pointers)));
    line(fmt::format("store {}, {}", moved, value.name));
  }

  // ---- Steps

  void step(int depth) {
    switch (pick(depth < 2 ? 12 : 9)) {
      case 0:
      case 1:
      case 2:
        return float_op();
      case 3:
        return int_op();
      case 4:
        return choose();
      case 5:
        return reduce();
      case 6:
        return reshape();
      case 7:
        return outer();
      case 8:
        return product();
      case 9:
        return branch(depth);
      default:
        return loop(depth);
    }
  }

  void float_op() {
    const Known* found = any(is_float_tile);
    if (found == nullptr) return;
    const Known a = *found;
    const Known b = *any([&](const Type& t) { return t == a.type; });
    constexpr const char* kBinary[] = {"add", "sub", "min", "max"};
    constexpr const char* kUnary[] = {"neg", "abs", "tanh", "floor"};
    switch (pick(3)) {
      case 0:
        add(fmt::format("{} {}", kUnary[pick(3)], a.name), a.type);
        return;
      case 1: {
        const std::string product = add(fmt::format("mul {}, {}", a.name, b.name), a.type);
        add(fmt::format("tanh {}", product), a.type);  // keeps values small
        return;
      }
      default:
        add(fmt::format("{} {}, {}", kBinary[pick(4)], a.name, b.name), a.type);
    }
  }

  void int_op() {
    const Known* found = any(is_int_tile);
    if (found == nullptr) return;
    const Known a = *found;
    const Known b = *any([&](const Type& t) { return t == a.type; });
    constexpr const char* kOps[] = {"add", "sub", "mul", "and", "or", "xor", "min", "max", "rem", "div"};
    const std::string result = add(fmt::format("{} {}, {}", kOps[pick(10)], a.name, b.name), a.type);
    if (pick(3) > 0) return;
    const std::string few = add("constant {value = 1023}", a.type);
    const std::string low = add(fmt::format("and {}, {}", result, few), a.type);
    const std::string number = add(fmt::format("cast {}", low), a.type.with_element(Element::kF32));
    const std::string small = add("constant {value = 0.0078125}", a.type.with_element(Element::kF32));
    add(fmt::format("mul {}, {}", number, small), a.type.with_element(Element::kF32));
  }

  // A selection by integers, whose comparison does not depend on rounding.
  void choose() {
    const Known* found = any(is_float_tile);
    if (found == nullptr) return;
    const Known a = *found;
    const Known b = *any([&](const Type& t) { return t == a.type; });
    const std::string index = offsets(a.type.shape);
    const Type ints = a.type.with_element(Element::kI32), mask = a.type.with_element(Element::kI1);
    const std::string limit = add(fmt::format("constant {{value = {}}}", pick(a.type.elements() + 1)), ints);
    constexpr const char* kPredicates[] = {"lt", "ge", "eq", "ne", "le", "gt"};
    const std::string m = add(fmt::format("{} {}, {}", kPredicates[pick(6)], index, limit), mask);
    add(fmt::format("select {}, {}, {}", m, a.name, b.name), a.type);
  }

  std::string region(const char* op) {
    const std::string a = fresh(), b = fresh(), c = fresh();
    return fmt::format("{{ ({0}: f32, {1}: f32) {2} = {3} {0}, {1} : f32 yield {2} }}", a, b, c, op);
  }

  void reduce() {
    const Known* found = any(is_float_tile);
    if (found == nullptr) return;
    const Known a = *found;
    const int64_t axis = pick(a.type.rank());
    constexpr const char* kOps[] = {"add", "max", "min"};
    const char* op = kOps[pick(3)];
    if (pick(4) == 0) {
      const std::string name = fresh();
      line(fmt::format("{} = scan {} {{axis = {}, reverse = {}}} : {} {}", name, a.name, axis, pick(2),
                       to_string(a.type), region(op)));
      values_.push_back({name, a.type});
      return;
    }
    Shape shape = a.type.shape;
    shape.erase(shape.begin() + axis);
    const std::string name = fresh();
    const Type type = a.type.with_shape(shape);
    line(fmt::format("{} = reduce {} {{axis = {}}} : {} {}", name, a.name, axis, to_string(type), region(op)));
    values_.push_back({name, type});
    // Back to the shape of the operand, as a softmax has it.
    std::string back = name;
    if (type.is_scalar()) {
      back = add(fmt::format("splat {}", name), a.type);
    } else {
      Shape one = shape;
      one.insert(one.begin() + axis, 1);
      back = add(fmt::format("expand_dims {} {{axis = {}}}", name, axis), a.type.with_shape(one));
      if (one != a.type.shape) back = add(fmt::format("broadcast {}", back), a.type);
    }
    const std::string difference = add(fmt::format("sub {}, {}", a.name, back), a.type);
    add(fmt::format("tanh {}", difference), a.type);
  }

  void reshape() {
    const Known* found = any(is_float_tile);
    if (found == nullptr) return;
    const Known a = *found;
    const int64_t axis = pick(a.type.rank());
    Shape shape = a.type.shape;
    switch (pick(5)) {
      case 0:
        add(fmt::format("reshape {}", a.name), a.type.with_shape({a.type.elements()}));
        return;
      case 1: {
        std::vector<int64_t> order;
        for (int64_t d = a.type.rank(); d-- > 0;) order.push_back(d);
        std::reverse(shape.begin(), shape.end());
        add(fmt::format("permute {} {{order = [{}]}}", a.name, fmt::join(order, ", ")), a.type.with_shape(shape));
        return;
      }
      case 2:
        add(fmt::format("flip {} {{axis = {}}}", a.name, axis), a.type);
        return;
      case 3: {
        int64_t& extent = shape[static_cast<size_t>(axis)];
        const int64_t start = pick(extent), size = 1 + pick(extent - start);
        extent = size;
        add(fmt::format("slice {} {{axis = {}, start = {}, size = {}}}", a.name, axis, start, size),
            a.type.with_shape(shape));
        return;
      }
      default:
        shape[0] *= 2;
        add(fmt::format("cat {0}, {0}", a.name), a.type.with_shape(shape));
    }
  }

  // A column times a row.
  void outer() {
    const auto is_vector = [](const Type& t) { return is_float_tile(t) && t.rank() == 1 && t.elements() < 80; };
    const Known *first = any(is_vector), *second = any(is_vector);
    if (first == nullptr) return;
    const Known a = *first, b = *second;
    const int64_t m = a.type.elements(), n = b.type.elements();
    const Type whole = a.type.with_shape({m, n});
    const std::string column = add(fmt::format("expand_dims {} {{axis = 1}}", a.name), a.type.with_shape({m, 1}));
    const std::string row = add(fmt::format("expand_dims {} {{axis = 0}}", b.name), a.type.with_shape({1, n}));
    const std::string left = add(fmt::format("broadcast {}", column), whole);
    const std::string right = add(fmt::format("broadcast {}", row), whole);
    add(fmt::format("sub {}, {}", left, right), whole);
  }

  // A tile times its transpose.
  void product() {
    const Known* found = any([](const Type& t) { return is_float_tile(t) && t.rank() == 2 && t.elements() < 2000; });
    if (found == nullptr) return;
    const Known a = *found;
    const int64_t m = a.type.shape[0];
    const std::string small = add(fmt::format("tanh {}", a.name), a.type);
    const std::string other =
        add(fmt::format("permute {} {{order = [1, 0]}}", small), a.type.with_shape({a.type.shape[1], m}));
    const Type square = a.type.with_shape({m, m});
    const std::string zero = add("constant {value = 0.0}", square);
    add(fmt::format("dot {}, {}, {}", small, other, zero), square);
  }

  // The ops of a region, whose values end with it; the name of one of a type that it yields.
  void yielding(int depth, const std::vector<Type>& types) {
    const size_t outside = values_.size();
    ++depth_;
    const int64_t steps = 1 + pick(4);
    for (int64_t i = 0; i < steps; ++i) step(depth + 1);
    std::vector<std::string> names;
    for (const Type& type : types) {
      const Known* last = nullptr;
      for (const Known& value : values_) {
        if (value.type == type) last = &value;
      }
      names.push_back(last->name);
    }
    line(fmt::format("yield {}", fmt::join(names, ", ")));
    --depth_;
    values_.resize(outside);
  }

  void branch(int depth) {
    const Known* found = any(is_float_tile);
    if (found == nullptr) return;
    const Type type = found->type;
    const std::string one = add("constant {value = 1}", Type::scalar(Element::kI32));
    const std::string odd = add(fmt::format("and %pid, {}", one), Type::scalar(Element::kI32));
    const std::string is = add(fmt::format("eq {}, {}", odd, one), Type::scalar(Element::kI1));
    const std::string result = fresh();
    line(fmt::format("{} = if {} : {} {{", result, is, to_string(type)));
    yielding(depth, {type});
    line("} else {");
    yielding(depth, {type});
    line("}");
    values_.push_back({result, type});
  }

  void loop(int depth) {
    const Known *first = any(is_float_tile),
                *second = any([](const Type&t) { return is_float_tile(t) || is_int_tile(t); });
    if (first == nullptr) return;
    const Known a = *first, b = *second;
    const std::string zero = add("constant {value = 0}", Type::scalar(Element::kI32));
    const std::string one = add("constant {value = 1}", Type::scalar(Element::kI32));
    const std::string end = add(fmt::format("constant {{value = {}}}", pick(4)), Type::scalar(Element::kI32));
    const std::string x = fresh(), y = fresh(), index = fresh(), u = fresh(), v = fresh();
    line(fmt::format("{}, {} = for {} = {} to {} step {} ({} = {}, {} = {}) : {}, {} {{", x, y, index, zero, end, one,
                     u, a.name, v, b.name, to_string(a.type), to_string(b.type)));
    const size_t outside = values_.size();
    values_.push_back({index, Type::scalar(Element::kI32)});
    values_.push_back({u, a.type});
    values_.push_back({v, b.type});
    yielding(depth, {a.type, b.type});
    values_.resize(outside);
    line("}");
    values_.push_back({x, a.type});
    values_.push_back({y, b.type});
  }

  std::mt19937 random_;
  Case case_;
  std::vector<Known> values_;
  std::vector<std::string> parameters_;
  std::string body_;
  int count_ = 0, depth_ = 0;
};

}  // namespace

Case random_program(unsigned seed) {
  return Generator(seed).run();
}

Case doubled_values() {
  std::string body = R"(
  %i = iota {start = 0} : tile<64xi32>
  %z0 = sub %i, %i : tile<64xi32>
  %ns = splat %n : tile<64xi32>
  %m0 = lt %i, %ns : tile<64xi1>
  %one = constant {value = 1} : i32
  %many = constant {value = 64} : i32
  %some = div %n, %many : i32
  %q0 = add %some, %one : i32
)";
  constexpr int kTimes = 60;
  for (int k = 0; k < kTimes; ++k) {
    body += fmt::format("  %z{0} = add %z{1}, %z{1} : tile<64xi32>\n", k + 1, k);
    body += fmt::format("  %m{0} = and %m{1}, %m{1} : tile<64xi1>\n", k + 1, k);
    body += fmt::format("  %q{0} = mul %q{1}, %q{1} : i32\n", k + 1, k);
  }
  body += fmt::format(R"(
  %less = sub %q{0}, %one : i32
  %by = splat %less : tile<64xi32>
  %moved = add %i, %by : tile<64xi32>
  %at = add %moved, %z{0} : tile<64xi32>
  %xs = splat %x : tile<64xptr<f32>>
  %xp = addptr %xs, %at : tile<64xptr<f32>>
  %v = load %xp, %m{0} : tile<64xf32>
  %ys = splat %y : tile<64xptr<f32>>
  %yp = addptr %ys, %at : tile<64xptr<f32>>
  store %yp, %v, %m{0}
)",
                      kTimes);
  std::mt19937 random(3);
  return {"doubled values",
          kernel_text("%x: ptr<f32>, %y: ptr<f32>, %n: i32", body),
          {1, 1, 1},
          {random_array(random, Element::kF32, 64), filled(Element::kF32, 64, 5), scalar(50)},
          1e-6};
}

}  // namespace heddle::lang::testing
