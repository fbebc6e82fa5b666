// The text for a CPU against the interpreter: each op on whole vectors, each type with a rest of fewer lanes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "running.h"

namespace heddle::lang::testing {
namespace {

// Of whole vectors: a rest would have each loop compiled twice, which is what these tests take their time for.
constexpr int64_t kN = 32;

// Loads the elements of each input, applies each op and stores what it gives: one kernel for many ops.
class OpList {
 public:
  OpList(std::string name, double tolerance, int64_t extent = kN)
      : case_{std::move(name), {}, {1, 1, 1}, {}, tolerance}, extent_(extent) {
    body_ += fmt::format("  %lane = iota {{start = 0}} : tile<{}xi32>\n", extent);
  }

  // An array of random numbers as a tile; its name.
  std::string input(Element element, double low = -4, double high = 4) {
    const std::string tile = fmt::format("x{}", case_.operands.size());
    const std::string pointers = add(tile, element);
    body_ += fmt::format("  %{} = load %{} : tile<{}x{}>\n", tile, pointers, extent_, to_string(element));
    case_.operands.push_back(random_array(random_, element, extent_, low, high));
    return "%" + tile;
  }
  // Stores the result of `op`, a tile.
  void output(const std::string& op, Element element) {
    const std::string tile = fmt::format("y{}", case_.operands.size());
    body_ += fmt::format("  %{} = {} : tile<{}x{}>\n", tile, op, extent_, to_string(element));
    const std::string pointers = add(tile, element);
    body_ += fmt::format("  store %{}, %{}\n", pointers, tile);
    case_.operands.push_back(filled(element, extent_, 99));
  }
  void line(const std::string& text) { body_ += "  " + text + "\n"; }

  Case done() {
    case_.text = kernel_text(parameters_, body_);
    return case_;
  }

 private:
  std::string add(const std::string& tile, Element element) {
    if (!parameters_.empty()) parameters_ += ", ";
    parameters_ += fmt::format("%{}p: ptr<{}>", tile, to_string(element));
    body_ +=
        fmt::format("  %{0}s = splat %{0}p : tile<{1}xptr<{2}>>\n  %{0}a = addptr %{0}s, %lane : tile<{1}xptr<{2}>>\n",
                    tile, extent_, to_string(element));
    return tile + "a";
  }

  Case case_;
  int64_t extent_;
  std::mt19937 random_{7};
  std::string parameters_, body_;
};

// Each type costs a second or two of compiling: all of them with $HEDDLE_TILE_ALL_TYPES, else one of each kind.
std::vector<Element> chosen(std::vector<Element> some, std::vector<Element> others) {
  if (std::getenv("HEDDLE_TILE_ALL_TYPES") != nullptr) some.insert(some.end(), others.begin(), others.end());
  return some;
}

std::vector<Element> ints() {
  return chosen({Element::kI8, Element::kI32, Element::kU64},
                {Element::kI16, Element::kI64, Element::kU8, Element::kU16, Element::kU32});
}
std::vector<Element> floats() {
  return chosen({Element::kF16, Element::kBF16, Element::kF32, Element::kF64, Element::kF8E4M3B15},
                {Element::kF8E4M3, Element::kF8E5M2, Element::kF8E4M3B8, Element::kF8E5M2B16});
}

double tolerance_of(Element element) {
  if (element == Element::kF64) return 1e-14;
  if (element == Element::kF32) return 4e-6;
  return element == Element::kF16 ? 2e-3 : element == Element::kBF16 ? 1e-2 : 0.15;
}

// Loads, stores and the buffer that keeps what a second store needs.
TEST(CpuOps, RestsOfVectors) {
  OpList list("rests of vectors", 0, 37);
  list.line("%five = constant {value = 5} : tile<37xi32>");
  list.line("%first = lt %lane, %five : tile<37xi1>");
  for (int i = 0; i < kElements; ++i) {
    const auto e = static_cast<Element>(i);
    const std::string x = list.input(e, 0, e == Element::kI1 ? 2 : 4);
    for (int k = 0; k < 2; ++k) list.output(fmt::format("select %first, {0}, {0}", x), e);
  }
  expect_same({list.done()});
}

TEST(CpuOps, Floats) {
  std::vector<Case> cases;
  for (const Element e : floats()) {
    OpList list(std::string(to_string(e)), tolerance_of(e));
    const std::string a = list.input(e), b = list.input(e), c = list.input(e);
    for (const char* op : {"add", "sub", "mul", "div", "rem", "min", "max"}) {
      list.output(fmt::format("{} {}, {}", op, a, b), e);
    }
    list.output(fmt::format("min {}, {} {{nan = propagate}}", a, b), e);
    list.output(fmt::format("max {}, {} {{nan = propagate}}", a, b), e);
    list.output(fmt::format("fma {}, {}, {}", a, b, c), e);
    list.output(fmt::format("neg {}", a), e);
    list.output(fmt::format("abs {}", a), e);
    list.output(fmt::format("clamp {}, {}, {}", a, b, c), e);
    list.output(fmt::format("clamp {}, {}, {} {{nan = propagate}}", a, b, c), e);
    for (const char* predicate : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      list.output(fmt::format("{} {}, {}", predicate, a, b), Element::kI1);
    }
    list.line(fmt::format("%less = lt {}, {} : tile<{}xi1>", a, b, kN));
    list.output(fmt::format("select %less, {}, {}", a, b), e);
    cases.push_back(list.done());
  }
  expect_same(cases);
}

TEST(CpuOps, Functions) {
  std::vector<Case> cases;
  for (const Element e : {Element::kF32, Element::kF64}) {
    OpList list(std::string(to_string(e)) + " functions", tolerance_of(e));
    const std::string any = list.input(e), positive = list.input(e, 0.01, 9), unit = list.input(e, -0.99, 0.99);
    const std::string above = list.input(e, 1.01, 5);
    for (const char* op : {"exp",  "exp2",  "exp10", "expm1", "sin",  "cos",   "tan",  "atan",  "sinh",  "cosh",
                           "tanh", "asinh", "cbrt",  "erf",   "erfc", "floor", "ceil", "trunc", "round", "round_away"}) {
      list.output(fmt::format("{} {}", op, any), e);
    }
    for (const char* op : {"log", "log2", "log10", "log1p", "sqrt", "rsqrt"}) {
      list.output(fmt::format("{} {}", op, positive), e);
    }
    for (const char* op : {"asin", "acos", "atanh"}) list.output(fmt::format("{} {}", op, unit), e);
    list.output(fmt::format("acosh {}", above), e);
    list.output(fmt::format("sqrt {}", any), e);  // NaN below 0
    list.output(fmt::format("is_nan {}", any), Element::kI1);
    list.output(fmt::format("is_inf {}", any), Element::kI1);
    for (const char* op : {"atan2", "hypot", "copysign", "nextafter", "fdim"}) {
      list.output(fmt::format("{} {}, {}", op, any, unit), e);
    }
    list.output(fmt::format("pow {}, {}", positive, unit), e);
    cases.push_back(list.done());
  }
  expect_same(cases);
}

TEST(CpuOps, Integers) {
  std::vector<Case> cases;
  for (const Element e : ints()) {
    OpList list(std::string(to_string(e)), 0);
    const double low = is_signed_int(e) ? -100 : 0;
    const std::string a = list.input(e, low, 100), b = list.input(e, low, 100), c = list.input(e, low, 100);
    const std::string amount = list.input(e, 0, bits_of(e) + 2);
    for (const char* op : {"add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "mulhi"}) {
      list.output(fmt::format("{} {}, {}", op, a, b), e);
    }
    for (const char* op : {"shl", "shr"}) list.output(fmt::format("{} {}, {}", op, a, amount), e);
    for (const char* op : {"neg", "abs", "not", "brev"}) list.output(fmt::format("{} {}", op, a), e);
    for (const char* op : {"clz", "popc", "ffs"}) list.output(fmt::format("{} {}", op, a), Element::kI32);
    list.output(fmt::format("fma {}, {}, {}", a, b, c), e);
    list.output(fmt::format("clamp {}, {}, {}", a, b, c), e);
    for (const char* predicate : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      list.output(fmt::format("{} {}, {}", predicate, a, b), Element::kI1);
    }
    cases.push_back(list.done());
  }
  OpList masks("i1", 0);
  const std::string a = masks.input(Element::kI1, 0, 2), b = masks.input(Element::kI1, 0, 2);
  for (const char* op : {"add", "sub", "mul", "min", "max", "and", "or", "xor"}) {
    masks.output(fmt::format("{} {}, {}", op, a, b), Element::kI1);
  }
  masks.output(fmt::format("not {}", a), Element::kI1);
  for (const char* predicate : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    masks.output(fmt::format("{} {}, {}", predicate, a, b), Element::kI1);
  }
  masks.output(fmt::format("select {0}, {1}, {0}", a, b), Element::kI1);
  cases.push_back(masks.done());
  expect_same(cases);
}

TEST(CpuOps, Casts) {
  std::vector<Case> cases;
  std::vector<Element> all;
  for (int e = 0; e < kElements; ++e) all.push_back(static_cast<Element>(e));
  const std::vector<Element> others = {Element::kI8,     Element::kI16,      Element::kI64,       Element::kU16,
                                       Element::kU32,    Element::kU64,      Element::kBF16,      Element::kF64,
                                       Element::kF8E4M3, Element::kF8E4M3B8, Element::kF8E4M3B15, Element::kF8E5M2B16};
  const auto froms =
      chosen({Element::kI1, Element::kI32, Element::kU8, Element::kF16, Element::kF32, Element::kF8E5M2}, others);
  for (const Element from : froms) {
    OpList list(fmt::format("casts of {}", to_string(from)), 0);
    const std::string a = list.input(from,
                                     is_float(from)        ? -300
                                     : is_signed_int(from) ? -100
                                                           : 0,
                                     from == Element::kI1 ? 2
                                     : is_float(from)     ? 300
                                                          : 120);
    for (const Element to : all) {
      list.output(fmt::format("cast {}", a), to);
      if (is_float(from) && is_float(to) && bits_of(to) < bits_of(from)) {
        list.output(fmt::format("cast {} {{rounding = rtz}}", a), to);
      }
      if (bits_of(to) == bits_of(from) && from != Element::kI1) list.output(fmt::format("bitcast {}", a), to);
    }
    cases.push_back(list.done());
  }
  expect_same(cases);
}

// Numbers just beside the middle between two of the narrow type, where f32 has the middle itself.
TEST(CpuOps, CastsRoundOnce) {
  std::vector<Case> cases;
  for (const Element from : {Element::kF64, Element::kI32, Element::kI64, Element::kU64}) {
    OpList list(fmt::format("casts of {} beside ties", to_string(from)), 0);
    const std::string a = list.input(from);
    for (const Element to : {Element::kF32, Element::kF16, Element::kBF16, Element::kF8E4M3, Element::kF8E5M2}) {
      list.output(fmt::format("cast {}", a), to);
    }
    Case c = list.done();
    std::vector<double>& values = c.operands[0].values;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto n = static_cast<double>(i);
      if (from == Element::kF64) {  // 11, 8, 4 and 3 bits, and the half of the last one
        const double half[] = {0x1p-11, 0x1p-8, 0x1p-4, 0x1p-3};
        values[i] = (1 + half[i % 4] * (1 + 2 * std::floor(n / 8))) * (1 + (static_cast<double>(i % 3) - 1) * 0x1p-44);
      } else {
        const double unit = from == Element::kI32 ? 0x1p18 : 0x1p40;  // of bf16, between 2^7 and 2^8 of it
        values[i] = (128 + n + 0.5) * unit + (static_cast<double>(i % 3) - 1);
      }
    }
    cases.push_back(std::move(c));
  }
  expect_same(cases);
}

}  // namespace
}  // namespace heddle::lang::testing
