// Shapes, memory, reductions, loops and products on a CPU against the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "running.h"

namespace heddle::lang::testing {
namespace {

// Lines that load `count` elements of parameter x as tile %NAME of rank 1, and that store one.
std::string loaded(const std::string& name, int64_t count, const std::string& element = "f32") {
  return fmt::format(R"(  %{0}_i = iota {{start = 0}} : tile<{1}xi32>
  %{0}_s = splat %{0}p : tile<{1}xptr<{2}>>
  %{0}_a = addptr %{0}_s, %{0}_i : tile<{1}xptr<{2}>>
  %{0} = load %{0}_a : tile<{1}x{2}>
)",
                     name, count, element);
}
std::string stored(const std::string& name, const std::string& value, int64_t count,
                   const std::string& element = "f32") {
  return fmt::format(R"(  %{0}_i = iota {{start = 0}} : tile<{1}xi32>
  %{0}_s = splat %{0}p : tile<{1}xptr<{2}>>
  %{0}_a = addptr %{0}_s, %{0}_i : tile<{1}xptr<{2}>>
  store %{0}_a, %{3}
)",
                     name, count, element, value);
}
// A 2-D tile of parameter x, rows `columns` apart.
std::string loaded_matrix(const std::string& name, int64_t rows, int64_t columns, const std::string& element = "f32") {
  return loaded(name + "f", rows * columns, element) +
         fmt::format("  %{0} = reshape %{0}f : tile<{1}x{2}x{3}>\n", name, rows, columns, element);
}
std::string pointer(const std::string& name, const std::string& element = "f32") {
  return fmt::format("%{}p: ptr<{}>", name, element);
}

Case shapes() {
  std::string body = loaded_matrix("x", 5, 12) + R"(
  %t = permute %x {order = [1, 0]} : tile<12x5xf32>
  %tf = reshape %t : tile<60xf32>
)" + stored("y0", "tf", 60) +
                     R"(
  %f0 = flip %x {axis = 0} : tile<5x12xf32>
  %f1 = flip %f0 {axis = 1} : tile<5x12xf32>
  %ff = reshape %f1 : tile<60xf32>
)" + stored("y1", "ff", 60) +
                     R"(
  %s = slice %x {axis = 1, start = 3, size = 7} : tile<5x7xf32>
  %s2 = slice %s {axis = 0, start = 1, size = 3} : tile<3x7xf32>
  %sf = reshape %s2 : tile<21xf32>
)" + stored("y2", "sf", 21) +
                     R"(
  %c = cat %x, %x : tile<10x12xf32>
  %neg = neg %c : tile<10x12xf32>
  %cf = reshape %neg : tile<120xf32>
)" + stored("y3", "cf", 120) +
                     R"(
  %j = join %x, %f1 : tile<5x12x2xf32>
  %jf = reshape %j : tile<120xf32>
)" + stored("y4", "jf", 120) +
                     R"(
  %a, %b = split %j : tile<5x12xf32>, tile<5x12xf32>
  %d = sub %a, %b : tile<5x12xf32>
  %df = reshape %d : tile<60xf32>
)" + stored("y5", "df", 60) +
                     R"(
  %k = iota {start = 0} : tile<7xi32>
  %three = constant {value = 3} : tile<7xi32>
  %k3 = mul %k, %three : tile<7xi32>
  %twelve = constant {value = 12} : tile<7xi32>
  %km = rem %k3, %twelve : tile<7xi32>
  %ke = expand_dims %km {axis = 0} : tile<1x7xi32>
  %index = broadcast %ke : tile<5x7xi32>
  %g = gather %x, %index {axis = 1} : tile<5x7xf32>
  %gf = reshape %g : tile<35xf32>
)" + stored("y6", "gf", 35) +
                     R"(
  %row = slice %x {axis = 0, start = 2, size = 1} : tile<1x12xf32>
  %rows = broadcast %row : tile<5x12xf32>
  %column = slice %x {axis = 1, start = 4, size = 1} : tile<5x1xf32>
  %columns = broadcast %column : tile<5x12xf32>
  %outer = mul %rows, %columns : tile<5x12xf32>
  %outf = reshape %outer : tile<60xf32>
)" + stored("y7", "outf", 60);
  std::string parameters = pointer("xf");
  std::mt19937 random(3);
  Case c{"shapes", "", {1, 1, 1}, {random_array(random, Element::kF32, 60)}, 1e-6};
  const int64_t counts[] = {60, 60, 21, 120, 120, 60, 35, 60};
  for (int i = 0; i < 8; ++i) {
    parameters += ", " + pointer(fmt::format("y{}", i));
    c.operands.push_back(filled(Element::kF32, counts[i], 99));
  }
  c.text = kernel_text(parameters, body);
  return c;
}

constexpr std::string_view kSum = "{ (%a: f32, %b: f32) %c = add %a, %b : f32 yield %c }";

Case reductions() {
  std::string body = loaded_matrix("x", 6, 35) +
                     fmt::format(R"(
  %r1 = reduce %x {{axis = 1}} : tile<6xf32> {0}
  %r0 = reduce %x {{axis = 0}} : tile<35xf32> {0}
  %r = reduce %r1 {{axis = 0}} : f32 {0}
  store %y2p, %r
)",
                                 kSum) +
                     stored("y0", "r1", 6) + stored("y1", "r0", 35) + R"(
  %lane = iota {start = 0} : tile<35xi32>
  %le = expand_dims %lane {axis = 0} : tile<1x35xi32>
  %lx = broadcast %le : tile<6x35xi32>
  %m, %i = reduce %x, %lx {axis = 1} : tile<6xf32>, tile<6xi32> {
    (%a: f32, %ai: i32, %b: f32, %bi: i32)
    %more = gt %a, %b : i1
    %w = select %more, %a, %b : f32
    %wi = select %more, %ai, %bi : i32
    yield %w, %wi
  }
)" + stored("y3", "m", 6) +
                     stored("y4", "i", 6, "i32") +
                     R"(
  %bm = reduce %x {axis = 1} : tile<6xf32> {
    (%a: f32, %b: f32)
    %c = lt %a, %b : i1
    %w = if %c : f32 { yield %a } else { yield %b }
    yield %w
  }
)" + stored("y5", "bm", 6) +
                     fmt::format(R"(
  %s0 = scan %x {{axis = 0}} : tile<6x35xf32> {0}
  %s1 = scan %x {{axis = 1, reverse = 1}} : tile<6x35xf32> {0}
  %sd = sub %s0, %s1 : tile<6x35xf32>
  %sdf = reshape %sd : tile<210xf32>
)",
                                 kSum) +
                     stored("y6", "sdf", 210) + R"(
  %o = sort %x {axis = 1, descending = 1} : tile<6x35xf32>
  %of = reshape %o : tile<210xf32>
)" + stored("y7", "of", 210) +
                     R"(
  %xi = cast %xf : tile<210xi32>
  %zero = constant {value = 0} : tile<210xi32>
  %inside = ge %xi, %zero : tile<210xi1>
  %h = histogram %xi, %inside : tile<3xi32>
)" + stored("y8", "h", 3, "i32") +
                     R"(
  %mp = map %xf {pack = 2} : tile<210xf32> {
    (%a: f32, %b: f32)
    %s = add %a, %b : f32
    %d = sub %a, %b : f32
    yield %s, %d
  }
  %me = map %mp, %xf : tile<210xf32> {
    (%a: f32, %b: f32)
    %s = mul %a, %b : f32
    yield %s
  }
)" + stored("y9", "me", 210);
  std::mt19937 random(4);
  Case c{"reductions", "", {1, 1, 1}, {random_array(random, Element::kF32, 210)}, 1e-5};
  std::string parameters = pointer("xf");
  const int64_t counts[] = {6, 35, 1, 6, 6, 6, 210, 210, 3, 210};
  for (int i = 0; i < 10; ++i) {
    const bool ints = i == 4 || i == 8;
    parameters += ", " + pointer(fmt::format("y{}", i), ints ? "i32" : "f32");
    c.operands.push_back(filled(ints ? Element::kI32 : Element::kF32, counts[i], 99));
  }
  c.text = kernel_text(parameters, body);
  return c;
}

Case dots(const std::string& in, const std::string& out, Element in_type, Element out_type, double tolerance) {
  const std::string body =
      loaded_matrix("a", 13, 21, in) + loaded_matrix("b", 21, 19, in) + loaded_matrix("c", 13, 19, out) +
      fmt::format("  %d = dot %a, %b, %c : tile<13x19x{0}>\n  %df = reshape %d : tile<247x{0}>\n", out) +
      stored("y", "df", 247, out);
  std::mt19937 random(5);
  return {
      "dot " + in,
      kernel_text(pointer("af", in) + ", " + pointer("bf", in) + ", " + pointer("cf", out) + ", " + pointer("y", out),
                  body),
      {1, 1, 1},
      {random_array(random, in_type, 273), random_array(random, in_type, 399), random_array(random, out_type, 247),
       filled(out_type, 247, 99)},
      tolerance};
}

// The matmul of the tutorials: pointers that move, masks along K, the product in f16.
Case matmul() {
  const std::string body = R"(
  %pid = program_id {axis = 0} : i32
  %bm = constant {value = 16} : i32
  %cols = constant {value = 2} : i32
  %pm = div %pid, %cols : i32
  %pn = rem %pid, %cols : i32
  %m0 = mul %pm, %bm : i32
  %n0 = mul %pn, %bm : i32
  %lane = iota {start = 0} : tile<16xi32>
  %k = iota {start = 0} : tile<8xi32>
  %m0s = splat %m0 : tile<16xi32>
  %n0s = splat %n0 : tile<16xi32>
  %om = add %m0s, %lane : tile<16xi32>
  %on = add %n0s, %lane : tile<16xi32>
  %ms = splat %m : tile<16xi32>
  %omw = rem %om, %ms : tile<16xi32>
  %ome = expand_dims %omw {axis = 1} : tile<16x1xi32>
  %one_ = expand_dims %on {axis = 0} : tile<1x16xi32>
  %ke0 = expand_dims %k {axis = 0} : tile<1x8xi32>
  %ke1 = expand_dims %k {axis = 1} : tile<8x1xi32>
  %kks = splat %kk : tile<16x1xi32>
  %arow = mul %ome, %kks : tile<16x1xi32>
  %arowb = broadcast %arow : tile<16x8xi32>
  %ke0b = broadcast %ke0 : tile<16x8xi32>
  %aoff = add %arowb, %ke0b : tile<16x8xi32>
  %as = splat %ap : tile<16x8xptr<f16>>
  %a0 = addptr %as, %aoff : tile<16x8xptr<f16>>
  %ns1 = splat %n : tile<8x1xi32>
  %brow = mul %ke1, %ns1 : tile<8x1xi32>
  %browb = broadcast %brow : tile<8x16xi32>
  %oneb = broadcast %one_ : tile<8x16xi32>
  %boff = add %browb, %oneb : tile<8x16xi32>
  %bs = splat %bp : tile<8x16xptr<f16>>
  %b0 = addptr %bs, %boff : tile<8x16xptr<f16>>
  %n1 = splat %n : tile<1x16xi32>
  %nin1 = lt %one_, %n1 : tile<1x16xi1>
  %nin8 = broadcast %nin1 : tile<8x16xi1>
  %zero = constant {value = 0} : i32
  %bk = constant {value = 8} : i32
  %acc0 = constant {value = 0.0} : tile<16x16xf32>
  %bstep = mul %n, %bk : i32
  %bsteps = splat %bstep : tile<8x16xi32>
  %asteps = constant {value = 8} : tile<16x8xi32>
  %fz = constant {value = 0.0} : tile<16x8xf16>
  %acc, %al, %bl = for %i = %zero to %kk step %bk (%c = %acc0, %pa = %a0, %pb = %b0) : tile<16x16xf32>, tile<16x8xptr<f16>>, tile<8x16xptr<f16>> {
    %left = sub %kk, %i : i32
    %lefts0 = splat %left : tile<1x8xi32>
    %kin0 = lt %ke0, %lefts0 : tile<1x8xi1>
    %kin0b = broadcast %kin0 : tile<16x8xi1>
    %lefts1 = splat %left : tile<8x1xi32>
    %kin1 = lt %ke1, %lefts1 : tile<8x1xi1>
    %kin1b = broadcast %kin1 : tile<8x16xi1>
    %bin = and %kin1b, %nin8 : tile<8x16xi1>
    %at = load %pa, %kin0b, %fz : tile<16x8xf16>
    %bt = load %pb, %bin : tile<8x16xf16>
    %next = dot %at, %bt, %c : tile<16x16xf32>
    %pa2 = addptr %pa, %asteps : tile<16x8xptr<f16>>
    %pb2 = addptr %pb, %bsteps : tile<8x16xptr<f16>>
    yield %next, %pa2, %pb2
  }
  %out = cast %acc : tile<16x16xf16>
  %cs = splat %yp : tile<16x16xptr<f16>>
  %ome2 = expand_dims %om {axis = 1} : tile<16x1xi32>
  %ns16 = splat %n : tile<16x1xi32>
  %crow = mul %ome2, %ns16 : tile<16x1xi32>
  %crowb = broadcast %crow : tile<16x16xi32>
  %one16 = broadcast %one_ : tile<16x16xi32>
  %coff = add %crowb, %one16 : tile<16x16xi32>
  %ca = addptr %cs, %coff : tile<16x16xptr<f16>>
  %ms1 = splat %m : tile<16x1xi32>
  %min1 = lt %ome2, %ms1 : tile<16x1xi1>
  %minb = broadcast %min1 : tile<16x16xi1>
  %ninb = broadcast %nin1 : tile<16x16xi1>
  %in = and %minb, %ninb : tile<16x16xi1>
  store %ca, %out, %in
)";
  std::mt19937 random(6);
  return {"matmul",
          kernel_text("%ap: ptr<f16>, %bp: ptr<f16>, %yp: ptr<f16>, %m: i32, %n: i32, %kk: i32", body),
          {4, 1, 1},
          {random_array(random, Element::kF16, 29 * 21), random_array(random, Element::kF16, 21 * 27),
           filled(Element::kF16, 29 * 27, 99), scalar(29), scalar(27), scalar(21)},
          2e-3};
}

TEST(CpuTiles, AgreeWithTheInterpreter) {
  expect_same({shapes(), reductions(), dots("f32", "f32", Element::kF32, Element::kF32, 1e-5),
               dots("bf16", "f32", Element::kBF16, Element::kF32, 1e-5),
               dots("f16", "f16", Element::kF16, Element::kF16, 2e-3),
               dots("i8", "i32", Element::kI8, Element::kI32, 0),
               dots("f64", "f64", Element::kF64, Element::kF64, 1e-13), matmul()});
}

}  // namespace
}  // namespace heddle::lang::testing
