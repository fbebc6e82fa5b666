// Views, atomics, the order of loads and stores, scaled products, prints and assertions on a CPU.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "../error_of.h"
#include "lang/ir/parse.h"
#include "random_program.h"
#include "running.h"

namespace heddle::lang::testing {
namespace {

Case views() {
  std::mt19937 random(8);
  return {"views",
          kernel_text("%x: ptr<f32>, %y: ptr<f32>, %z: ptr<f32>, %w: ptr<f16>, %r: ptr<i32>", R"(
  %rows = constant {value = 9} : i32
  %columns = constant {value = 21} : i64
  %one = constant {value = 1} : i64
  %m2 = constant {value = -2} : i32
  %three = constant {value = 3} : i32
  %v = make_view %x, %rows, %columns, %columns, %one {padding = nan} : view<5x19xf32>
  %a = load_view %v, %m2, %three {check = [0, 1]} : tile<5x19xf32>
  %o = make_view %y, %rows, %columns, %columns, %one : view<5x19xf32>
  store_view %o, %m2, %three, %a {check = [0, 1]}
  %t = make_view %x, %columns, %rows, %one, %columns : view<19x5xf32>
  %four = constant {value = 4} : i32
  %b = load_view %t, %four, %m2 {check = [0, 1]} : tile<19x5xf32>
  %bt = permute %b {order = [1, 0]} : tile<5x19xf32>
  %p = make_view %z, %rows, %columns, %columns, %one : view<5x19xf32>
  %zero = constant {value = 0} : i32
  store_view %p, %three, %zero, %bt {check = [0, 1]}
  atomic_view %p, %three, %zero, %bt {kind = add}
  %vr = make_view %x, %rows, %columns, %columns, %one : view<1x7xf32>
  %ri = iota {start = 0} : tile<3xi32>
  %rs = splat %r : tile<3xptr<i32>>
  %rp = addptr %rs, %ri : tile<3xptr<i32>>
  %which = load %rp : tile<3xi32>
  %g = gather_view %vr, %which, %four : tile<3x7xf32>
  %g16 = cast %g : tile<3x7xf16>
  %vw = make_view %w, %rows, %columns, %columns, %one : view<1x7xf16>
  scatter_view %vw, %which, %four, %g16
)"),
          {1, 1, 1},
          {random_array(random, Element::kF32, 189),
           filled(Element::kF32, 189, 5),
           filled(Element::kF32, 189, 6),
           filled(Element::kF16, 189, 7),
           {Element::kI32, {2, 8, 12}, true, 0}},
          1e-6};
}

Case atomics() {
  std::mt19937 random(9);
  return {"atomics",
          kernel_text("%x: ptr<f32>, %s: ptr<f32>, %h: ptr<f16>, %m: ptr<i32>, %u: ptr<u32>, %old: ptr<i32>", R"(
  %i = iota {start = 0} : tile<21xi32>
  %xs = splat %x : tile<21xptr<f32>>
  %xp = addptr %xs, %i : tile<21xptr<f32>>
  %v = load %xp : tile<21xf32>
  %four = constant {value = 4} : tile<21xi32>
  %bin = rem %i, %four : tile<21xi32>
  %ss = splat %s : tile<21xptr<f32>>
  %sp = addptr %ss, %bin : tile<21xptr<f32>>
  %nineteen = constant {value = 19} : tile<21xi32>
  %in = lt %i, %nineteen : tile<21xi1>
  %o1 = atomic_rmw %sp, %v, %in {kind = add} : tile<21xf32>
  %hs = splat %h : tile<21xptr<f16>>
  %hp = addptr %hs, %bin : tile<21xptr<f16>>
  %v16 = cast %v : tile<21xf16>
  %o2 = atomic_rmw %hp, %v16 {kind = add, sem = relaxed} : tile<21xf16>
  %vi = cast %v : tile<21xi32>
  %ms = splat %m : tile<21xptr<i32>>
  %mp = addptr %ms, %bin : tile<21xptr<i32>>
  %o3 = atomic_rmw %mp, %vi {kind = max} : tile<21xi32>
  %us = splat %u : tile<21xptr<u32>>
  %up = addptr %us, %bin : tile<21xptr<u32>>
  %vu = cast %i : tile<21xu32>
  %o4 = atomic_rmw %up, %vu {kind = xor} : tile<21xu32>
  %olds = splat %old : tile<21xptr<i32>>
  %oldp = addptr %olds, %i : tile<21xptr<i32>>
  store %oldp, %o3
  %seven = constant {value = 7} : i32
  %nine = constant {value = 9} : i32
  %c1 = atomic_cas %old, %seven, %nine : i32
  %c2 = atomic_rmw %m, %nine {kind = xchg} : i32
)"),
          {1, 1, 1},
          {random_array(random, Element::kF32, 21), filled(Element::kF32, 4, 0), filled(Element::kF16, 4, 0),
           filled(Element::kI32, 4, -1), filled(Element::kU32, 4, 3), filled(Element::kI32, 21, 7)},
          1e-5};
}

// Every load sees memory as it was before the stores behind it, also where they overlap.
Case order() {
  std::mt19937 random(10);
  return {"order",
          kernel_text("%x: ptr<f32>, %y: ptr<f32>", R"(
  %i = iota {start = 0} : tile<37xi32>
  %xs = splat %x : tile<37xptr<f32>>
  %p0 = addptr %xs, %i : tile<37xptr<f32>>
  %one = constant {value = 1} : tile<37xi32>
  %p1 = addptr %p0, %one : tile<37xptr<f32>>
  %a = load %p0 : tile<37xf32>
  %b = load %p1 : tile<37xf32>
  %sum = add %a, %b : tile<37xf32>
  store %p1, %sum
  %c = load %p1 : tile<37xf32>
  %last = constant {value = 36} : tile<37xi32>
  %back = sub %last, %i : tile<37xi32>
  %pb = addptr %xs, %back : tile<37xptr<f32>>
  %d = load %p0 : tile<37xf32>
  store %pb, %d
  %e = load %p0 : tile<37xf32>
  %ys = splat %y : tile<37xptr<f32>>
  %q = addptr %ys, %i : tile<37xptr<f32>>
  %bc = sub %b, %c : tile<37xf32>
  %bce = add %bc, %e : tile<37xf32>
  %zero = constant {value = 0} : i32
  %step = constant {value = 1} : i32
  %three = constant {value = 3} : i32
  store %q, %bce
  for %k = %zero to %three step %step () {
    %w = load %p0 : tile<37xf32>
    %w2 = add %w, %a : tile<37xf32>
    store %p1, %w2
    yield
  }
)"),
          {1, 1, 1},
          {random_array(random, Element::kF32, 38), filled(Element::kF32, 37, 5)},
          1e-5};
}

Case scaled() {
  std::mt19937 random(11);
  return {"scaled",
          kernel_text("%a: ptr<u8>, %sa: ptr<u8>, %b: ptr<f8e4m3>, %sb: ptr<u8>, %y: ptr<f32>", R"(
  %ai = iota {start = 0} : tile<224xi32>
  %as = splat %a : tile<224xptr<u8>>
  %ap = addptr %as, %ai : tile<224xptr<u8>>
  %af = load %ap : tile<224xu8>
  %at = reshape %af : tile<7x32xu8>
  %si = iota {start = 0} : tile<14xi32>
  %ss = splat %sa : tile<14xptr<u8>>
  %sp = addptr %ss, %si : tile<14xptr<u8>>
  %sf = load %sp : tile<14xu8>
  %st = reshape %sf : tile<7x2xu8>
  %bi = iota {start = 0} : tile<576xi32>
  %bs = splat %b : tile<576xptr<f8e4m3>>
  %bp = addptr %bs, %bi : tile<576xptr<f8e4m3>>
  %bf = load %bp : tile<576xf8e4m3>
  %bt = reshape %bf : tile<64x9xf8e4m3>
  %ti = iota {start = 0} : tile<18xi32>
  %ts = splat %sb : tile<18xptr<u8>>
  %tp = addptr %ts, %ti : tile<18xptr<u8>>
  %tf = load %tp : tile<18xu8>
  %tt = reshape %tf : tile<9x2xu8>
  %c = constant {value = 1.0} : tile<7x9xf32>
  %d = dot_scaled %at, %st, %bt, %tt, %c {a_format = e2m1, b_format = e4m3} : tile<7x9xf32>
  %e = dot_scaled %at, %bt, %d {a_format = e2m1, b_format = e4m3, scales = none} : tile<7x9xf32>
  %ef = reshape %e : tile<63xf32>
  %yi = iota {start = 0} : tile<63xi32>
  %ys = splat %y : tile<63xptr<f32>>
  %yp = addptr %ys, %yi : tile<63xptr<f32>>
  store %yp, %ef
)"),
          {1, 1, 1},
          {random_array(random, Element::kU8, 224, 0, 255), random_array(random, Element::kU8, 14, 124, 131),
           random_array(random, Element::kF8E4M3, 576), random_array(random, Element::kU8, 18, 124, 131),
           filled(Element::kF32, 63, 5)},
          1e-4};
}

// A mask in front of a vector, at its end, within it, behind it, and behind the whole tile; of rows of odd extents.
Case bounded(int64_t n, const char* predicate) {
  std::mt19937 random(static_cast<unsigned>(n));
  return {fmt::format("elements {} {}", predicate, n),
          kernel_text("%x: ptr<f32>, %y: ptr<f32>, %s: ptr<f32>, %n: i32", fmt::format(R"(
  %i = iota {{start = 0}} : tile<200xi32>
  %ns = splat %n : tile<200xi32>
  %in = {} %i, %ns : tile<200xi1>
  %xs = splat %x : tile<200xptr<f32>>
  %xp = addptr %xs, %i : tile<200xptr<f32>>
  %one = constant {{value = 1.0}} : tile<200xf32>
  %two = constant {{value = 2.0}} : tile<200xf32>
  %v = load %xp, %in, %one : tile<200xf32>
  %sum = reduce %v {{axis = 0}} : f32 {{ (%a: f32, %b: f32) %c = add %a, %b : f32  yield %c }}
  store %s, %sum
  %w = select %in, %v, %two : tile<200xf32>
  %ys = splat %y : tile<200xptr<f32>>
  %yp = addptr %ys, %i : tile<200xptr<f32>>
  store %yp, %w, %in
)",
                                                                                       predicate)),
          {1, 1, 1},
          {random_array(random, Element::kF32, 201), filled(Element::kF32, 201, 77), filled(Element::kF32, 1, 0),
           scalar(static_cast<double>(n))},
          1e-5};
}

TEST(CpuMemory, MasksUpToABound) {
  std::vector<Case> cases;
  for (const int64_t n : {-3, 0, 1, 15, 16, 63, 64, 65, 127, 128, 199}) {
    for (const char* predicate : {"lt", "le"}) cases.push_back(bounded(n, predicate));
  }
  cases.push_back(bounded(500, "lt"));
  expect_same(cases);
}

// Reductions whose elements are guarded by one mask, by another, and by both.
Case two_bounds(int64_t n, int64_t m) {
  std::mt19937 random(static_cast<unsigned>(n * 1000 + m));
  return {fmt::format("elements below {} and {}", n, m),
          kernel_text("%x: ptr<f32>, %s: ptr<f32>, %n: i32, %m: i32", R"(
  %i = iota {start = 0} : tile<256xi32>
  %ns = splat %n : tile<256xi32>
  %in = lt %i, %ns : tile<256xi1>
  %ms = splat %m : tile<256xi32>
  %im = lt %i, %ms : tile<256xi1>
  %xs = splat %x : tile<256xptr<f32>>
  %xp = addptr %xs, %i : tile<256xptr<f32>>
  %low = constant {value = -3.0} : tile<256xf32>
  %zero = constant {value = 0.0} : tile<256xf32>
  %v = load %xp, %in, %low : tile<256xf32>
  %top = reduce %v {axis = 0} : f32 { (%a: f32, %b: f32) %c = max %a, %b : f32  yield %c }
  store %s, %top
  %w = select %im, %v, %zero : tile<256xf32>
  %sum = reduce %w {axis = 0} : f32 { (%d: f32, %e: f32) %f = add %d, %e : f32  yield %f }
  %one = constant {value = 1} : i32
  %s1 = addptr %s, %one : ptr<f32>
  store %s1, %sum
  %vv = mul %v, %w : tile<256xf32>
  %u = add %vv, %v : tile<256xf32>
  %all = reduce %u {axis = 0} : f32 { (%g: f32, %h: f32) %j = add %g, %h : f32  yield %j }
  %two = constant {value = 2} : i32
  %s2 = addptr %s, %two : ptr<f32>
  store %s2, %all
)"),
          {1, 1, 1},
          {random_array(random, Element::kF32, 256), filled(Element::kF32, 3, 0), scalar(static_cast<double>(n)),
           scalar(static_cast<double>(m))},
          1e-4};
}

// A product in a loop whose right operand lies by columns, up to a depth of k.
Case columns(int64_t k) {
  std::mt19937 random(static_cast<unsigned>(k));
  return {fmt::format("columns of {}", k),
          kernel_text("%x: ptr<f32>, %w: ptr<f16>, %y: ptr<f32>, %k: i32", R"(
  %i = iota {start = 0} : tile<32xi32>
  %m = iota {start = 0} : tile<8xi32>
  %n = iota {start = 0} : tile<48xi32>
  %ir = expand_dims %i {axis = 0} : tile<1x32xi32>
  %ic = expand_dims %i {axis = 1} : tile<32x1xi32>
  %mc = expand_dims %m {axis = 1} : tile<8x1xi32>
  %nr = expand_dims %n {axis = 0} : tile<1x48xi32>
  %km = splat %k : tile<8x1xi32>
  %xo = mul %mc, %km : tile<8x1xi32>
  %kn = splat %k : tile<1x48xi32>
  %wo = mul %nr, %kn : tile<1x48xi32>
  %xs = splat %x : tile<8x1xptr<f32>>
  %xr = addptr %xs, %xo : tile<8x1xptr<f32>>
  %xb = broadcast %xr : tile<8x32xptr<f32>>
  %irb = broadcast %ir : tile<8x32xi32>
  %xp = addptr %xb, %irb : tile<8x32xptr<f32>>
  %ws = splat %w : tile<1x48xptr<f16>>
  %wr = addptr %ws, %wo : tile<1x48xptr<f16>>
  %wb = broadcast %wr : tile<32x48xptr<f16>>
  %icb = broadcast %ic : tile<32x48xi32>
  %wp = addptr %wb, %icb : tile<32x48xptr<f16>>
  %zero = constant {value = 0.0} : tile<8x48xf32>
  %lo = constant {value = 0} : i32
  %step = constant {value = 32} : i32
  %r, %xe, %we = for %at = %lo to %k step %step (%acc = %zero, %xa = %xp, %wa = %wp) : tile<8x48xf32>, tile<8x32xptr<f32>>, tile<32x48xptr<f16>> {
    %left = sub %k, %at : i32
    %lr = splat %left : tile<1x32xi32>
    %xi = lt %ir, %lr : tile<1x32xi1>
    %xm = broadcast %xi : tile<8x32xi1>
    %lc = splat %left : tile<32x1xi32>
    %wi = lt %ic, %lc : tile<32x1xi1>
    %wm = broadcast %wi : tile<32x48xi1>
    %xv = load %xa, %xm : tile<8x32xf32>
    %wv = load %wa, %wm : tile<32x48xf16>
    %wf = cast %wv : tile<32x48xf32>
    %p = dot %xv, %wf, %acc : tile<8x48xf32>
    %xd = splat %step : tile<8x32xi32>
    %xn = addptr %xa, %xd : tile<8x32xptr<f32>>
    %wd = splat %step : tile<32x48xi32>
    %wn = addptr %wa, %wd : tile<32x48xptr<f16>>
    yield %p, %xn, %wn
  }
  %out = reshape %r : tile<384xf32>
  %yi = iota {start = 0} : tile<384xi32>
  %ys = splat %y : tile<384xptr<f32>>
  %yp = addptr %ys, %yi : tile<384xptr<f32>>
  store %yp, %out
)"),
          {1, 1, 1},
          {random_array(random, Element::kF32, static_cast<size_t>(8 * k)),
           random_array(random, Element::kF16, static_cast<size_t>(48 * k)), filled(Element::kF32, 384, 5),
           scalar(static_cast<double>(k))},
          1e-4};
}

TEST(CpuMemory, ReductionsBehindTwoBounds) {
  std::vector<Case> cases;
  for (const int64_t n : {0, 1, 63, 64, 200, 256}) {
    for (const int64_t m : {0, 17, 128, 255}) cases.push_back(two_bounds(n, m));
  }
  expect_same(cases);
}

TEST(CpuMemory, ValuesThatAreUsedTwiceAreLookedAtOnce) {
  expect_same({doubled_values()});
}

TEST(CpuMemory, ColumnsAreTransposed) {
  expect_same({columns(1), columns(31), columns(32), columns(75), columns(128)});
  EXPECT_THAT(cpu::CpuKernel::compile(parse_and_verify(columns(32).text), Target::host_cpu(1))->text(),
              ::testing::HasSubstr("transpose_block("));
}

TEST(CpuMemory, AgreesWithTheInterpreter) {
  expect_same({views(), atomics(), order(), scaled()});
}

TEST(CpuMemory, PrintsAndAssertionsNameTheirProgram) {
  const auto kernel = cpu::CpuKernel::compile(parse_and_verify(kernel_text("%n: i32", R"(
  %pid = program_id {axis = 0} : i32
  %lane = iota {start = 9} : tile<11xi32>
  print %pid, %n {prefix = " n: "}  @0:3:1
  %ns = splat %n : tile<11xi32>
  %ok = ne %lane, %ns : tile<11xi1>
  assert %ok {message = "lane is n"}  @0:9:1
)")),
                                              Target::host_cpu(2));
  std::vector<std::string> lines;
  const Error error = test::error_of([&] {
    kernel->launch({2, 1, 1}, std::vector{Argument::of(int64_t{12})}, pool(),
                   [&](const std::string& line) { lines.push_back(line); });
  });
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(
                         "pid (0, 0, 0) idx () n: (operand 0) 0", "pid (0, 0, 0) idx () n: (operand 1) 12",
                         "pid (1, 0, 0) idx () n: (operand 0) 1", "pid (1, 0, 0) idx () n: (operand 1) 12"));
  EXPECT_EQ(error.where(), "k.py:9: `assert` in program (0, 0, 0), element 3");
  EXPECT_EQ(error.why(), "lane is n");
  EXPECT_THAT(kernel->text(), ::testing::HasSubstr("services->print"));
}

TEST(CpuMemory, WrongNumbersOfArgumentsAreRefused) {
  const Kernel kernel = parse_and_verify(kernel_text("%n: i32", ""));
  EXPECT_EQ(test::error_of([&] { argument_words(kernel, {}); }).why(), "it has 1 parameters, 0 arguments are given");
}

}  // namespace
}  // namespace heddle::lang::testing
