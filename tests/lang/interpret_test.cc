// The interpreter against results worked out by hand, and what it says of kernels that are wrong.
#include "lang/interpret/interpret.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "../error_of.h"
#include "lang/ir/parse.h"

namespace heddle::lang {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string kernel_text(std::string_view parameters, std::string_view body) {
  return "tile_ir 2\nfile 0 \"k.py\"\nkernel @k(" + std::string(parameters) + ") {\n" + std::string(body) + "}\n";
}

void run(const std::string& text, std::array<int64_t, 3> grid, const std::vector<Argument>& arguments,
         const InterpretOptions& options = {}) {
  interpret(parse_and_verify(text), grid, arguments, options);
}

template <typename T>
Allocation whole(std::vector<T>& data, std::string name) {
  return {reinterpret_cast<uint64_t>(data.data()), data.size() * sizeof(T), std::move(name)};
}

// Adds 1 to the elements of x that are below n, eight in a program.
constexpr std::string_view kAddOne = R"(
  %pid = program_id {axis = 0} : i32
  %eight = constant {value = 8} : i32
  %start = mul %pid, %eight : i32
  %starts = splat %start : tile<8xi32>
  %lane = iota {start = 0} : tile<8xi32>
  %i = add %starts, %lane : tile<8xi32>
  %ns = splat %n : tile<8xi32>
  %inside = lt %i, %ns : tile<8xi1>
  %xs = splat %x : tile<8xptr<f32>>
  %p = addptr %xs, %i : tile<8xptr<f32>>
  %v = load %p, %inside : tile<8xf32>  @0:3:4
  %one = constant {value = 1.0} : tile<8xf32>
  %r = add %v, %one : tile<8xf32>
  store %p, %r, %inside  @0:5:4
)";

TEST(Interpret, MasksAndPrograms) {
  std::vector<float> x(20, 2);
  run(kernel_text("%x: ptr<f32>, %n: i32", kAddOne), {3, 1, 1}, {Argument::of(x.data()), Argument::of(19)});
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(x[18], 3);
  EXPECT_EQ(x[19], 2);
}

TEST(Interpret, FloatsAreRoundedToTheirType) {
  std::vector<uint16_t> out(1);
  run(kernel_text("%y: ptr<f16>", R"(
  %a = constant {value = 2048.0} : f16
  %b = constant {value = 1.0} : f16
  %c = add %a, %b : f16
  %d = add %c, %b : f16
  store %y, %d
)"),
      {1, 1, 1}, {Argument::of(out.data())});
  EXPECT_EQ(out[0], 0x6800);  // 2048: 2049 is no f16
}

TEST(Interpret, IntegersWrapAndDivideAsC) {
  std::vector<int32_t> y(8);
  run(kernel_text("%y: ptr<i32>, %a: i32, %b: i32", R"(
  %most = constant {value = 2147483647} : i32
  %one = constant {value = 1} : i32
  %r0 = add %most, %one : i32
  %r1 = div %a, %b : i32
  %r2 = rem %a, %b : i32
  %zero = constant {value = 0} : i32
  %r3 = div %a, %zero : i32
  %r4 = shr %a, %one : i32
  %r5 = mulhi %most, %most : i32
  %c0 = constant {value = 0} : i32
  %p0 = addptr %y, %c0 : ptr<i32>
  store %p0, %r0
  %p1 = addptr %p0, %one : ptr<i32>
  store %p1, %r1
  %p2 = addptr %p1, %one : ptr<i32>
  store %p2, %r2
  %p3 = addptr %p2, %one : ptr<i32>
  store %p3, %r3
  %p4 = addptr %p3, %one : ptr<i32>
  store %p4, %r4
  %p5 = addptr %p4, %one : ptr<i32>
  store %p5, %r5
)"),
      {1, 1, 1}, {Argument::of(y.data()), Argument::of(-7), Argument::of(2)});
  EXPECT_EQ(y[0], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(y[1], -3);
  EXPECT_EQ(y[2], -1);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], -4);
  EXPECT_EQ(y[5], 0x3fffffff);
}

// The largest element of each row and where it is, by a reduction of two operands; sums by a scan.
TEST(Interpret, ReductionsOfSeveralOperandsAndScans) {
  std::vector<float> x{3, 9, 2, 9, 5, 1, 7, 7, 7}, sums(9);
  std::vector<int32_t> at(3);
  run(kernel_text("%x: ptr<f32>, %at: ptr<i32>, %sums: ptr<f32>", R"(
  %n = iota {start = 0} : tile<9xi32>
  %xs = splat %x : tile<9xptr<f32>>
  %p = addptr %xs, %n : tile<9xptr<f32>>
  %flat = load %p : tile<9xf32>
  %v = reshape %flat : tile<3x3xf32>
  %three = iota {start = 0} : tile<3xi32>
  %row = expand_dims %three {axis = 0} : tile<1x3xi32>
  %index = broadcast %row : tile<3x3xi32>
  %m, %i = reduce %v, %index {axis = 1} : tile<3xf32>, tile<3xi32> {
    (%a: f32, %ai: i32, %b: f32, %bi: i32)
    %more = gt %a, %b : i1
    %same = eq %a, %b : i1
    %left = lt %ai, %bi : i1
    %tie = and %same, %left : i1
    %first = or %more, %tie : i1
    %w = select %first, %a, %b : f32
    %wi = select %first, %ai, %bi : i32
    yield %w, %wi
  }
  %ats = splat %at : tile<3xptr<i32>>
  %q = addptr %ats, %three : tile<3xptr<i32>>
  store %q, %i
  %s = scan %v {axis = 0, reverse = 1} : tile<3x3xf32> {
    (%a: f32, %b: f32)
    %sum = add %a, %b : f32
    yield %sum
  }
  %ss = reshape %s : tile<9xf32>
  %sums9 = splat %sums : tile<9xptr<f32>>
  %qs = addptr %sums9, %n : tile<9xptr<f32>>
  store %qs, %ss
)"),
      {1, 1, 1}, {Argument::of(x.data()), Argument::of(at.data()), Argument::of(sums.data())});
  EXPECT_THAT(at, ElementsAre(1, 0, 0));
  EXPECT_THAT(sums, ElementsAre(19, 21, 10, 16, 12, 8, 7, 7, 7));
}

TEST(Interpret, LoopsBranchesAndDots) {
  std::vector<float> y(6);
  run(kernel_text("%y: ptr<f32>, %n: i32", R"(
  %a1 = constant {value = 2.0} : tile<2x4xf32>
  %b1 = constant {value = 3.0} : tile<4x3xf32>
  %c1 = constant {value = 1.0} : tile<2x3xf32>
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %two = constant {value = 2} : i32
  %minus = constant {value = -1} : i32
  %acc = for %i = %zero to %n step %one (%c = %c1) : tile<2x3xf32> {
    %odd = rem %i, %two : i32
    %is = eq %odd, %one : i1
    %next = if %is : tile<2x3xf32> {
      %d = dot %a1, %b1, %c : tile<2x3xf32>
      yield %d
    } else {
      yield %c
    }
    yield %next
  }
  %down = for %j = %n to %zero step %minus (%s = %acc) : tile<2x3xf32> {
    %t = add %s, %c1 : tile<2x3xf32>
    yield %t
  }
  %w = while (%v = %n) : i32 {
    %go = gt %v, %zero : i1
    condition %go, %v
  } do { (%v2)
    %u = sub %v2, %two : i32
    yield %u
  }
  %wf = cast %w : f32
  %wt = splat %wf : tile<2x3xf32>
  %sum = add %down, %wt : tile<2x3xf32>
  %flat = reshape %sum : tile<6xf32>
  %lane = iota {start = 0} : tile<6xi32>
  %ys = splat %y : tile<6xptr<f32>>
  %p = addptr %ys, %lane : tile<6xptr<f32>>
  store %p, %flat
)"),
      {1, 1, 1}, {Argument::of(y.data()), Argument::of(5)});
  // 1, twice plus 2 * 3 * 4, five trips down add 1 each, and the last value of the while is -1.
  EXPECT_THAT(y, ::testing::Each(1 + 48 + 5 - 1));
}

TEST(Interpret, AtomicsGiveTheOldValue) {
  std::vector<int32_t> counter(1), seen(4);
  run(kernel_text("%c: ptr<i32>, %seen: ptr<i32>", R"(
  %one = constant {value = 1} : i32
  %pid = program_id {axis = 0} : i32
  %old = atomic_rmw %c, %one {kind = add} : i32
  %p = addptr %seen, %pid : ptr<i32>
  store %p, %old
)"),
      {4, 1, 1}, {Argument::of(counter.data()), Argument::of(seen.data())}, {.checked = true});
  EXPECT_EQ(counter[0], 4);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
}

TEST(Interpret, AccessesOutsideAreNamed) {
  std::vector<float> x(20, 2);
  const std::string text = kernel_text("%x: ptr<f32>, %n: i32", kAddOne);
  const Error error = error_of([&] {
    run(text, {3, 1, 1}, {Argument::of(x.data()), Argument::of(22)}, {.allocations = {whole(x, "x")}});
  });
  EXPECT_EQ(error.code(), ErrorCode::kValueOutOfRange);
  EXPECT_EQ(error.where(), "k.py:3: `load` in program (2, 0, 0), element 4");
  EXPECT_THAT(error.why(), HasSubstr("0 bytes behind the end of x (80 bytes)"));
}

TEST(Interpret, CheckedLoadsPoisonMaskedLanes) {
  std::vector<float> x(8, 1), y(8);
  const std::string text = kernel_text("%x: ptr<f32>, %y: ptr<f32>", R"(
  %lane = iota {start = 0} : tile<8xi32>
  %five = constant {value = 5} : tile<8xi32>
  %inside = lt %lane, %five : tile<8xi1>
  %xs = splat %x : tile<8xptr<f32>>
  %p = addptr %xs, %lane : tile<8xptr<f32>>
  %v = load %p, %inside : tile<8xf32>
  %ys = splat %y : tile<8xptr<f32>>
  %q = addptr %ys, %lane : tile<8xptr<f32>>
  store %q, %v
)");
  const std::vector<Argument> arguments{Argument::of(x.data()), Argument::of(y.data())};
  run(text, {1, 1, 1}, arguments);
  EXPECT_THAT(y, ElementsAre(1, 1, 1, 1, 1, 0, 0, 0));
  run(text, {1, 1, 1}, arguments, {.checked = true});
  EXPECT_TRUE(std::isnan(y[5]));
}

TEST(Interpret, TwoProgramsOnOneCellAreReported) {
  std::vector<float> x(20, 2);
  std::string text = kernel_text("%x: ptr<f32>, %n: i32", kAddOne);
  const size_t at = text.find("{value = 8}");
  text.replace(at, 11, "{value = 6}");  // programs overlap
  const std::vector<Argument> arguments{Argument::of(x.data()), Argument::of(12)};
  run(text, {2, 1, 1}, arguments);
  const Error error = error_of([&] { run(text, {2, 1, 1}, arguments, {.checked = true}); });
  EXPECT_THAT(error.where(), HasSubstr("k.py:3: `load` in program (1, 0, 0), element 0"));
  EXPECT_THAT(error.why(), HasSubstr("program (0, 0, 0) wrote the same cell at k.py:5"));
}

TEST(Interpret, ALoopThatWaitsForALaterProgramEnds) {
  std::vector<int32_t> flag(1);
  const auto why = [&](const std::string& read) {
    const std::string text = kernel_text("%flag: ptr<i32>", R"(
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  while () {
    %v = )" + read + R"( : i32
    %go = ge %v, %zero : i1
    condition %go
  } do {
    yield
  }
)");
    return error_of([&] { run(text, {1, 1, 1}, {Argument::of(flag.data())}, {.most_trips = 1000}); }).why();
  };
  EXPECT_THAT(why("load %flag"), HasSubstr("this loop never ends"));
  EXPECT_THAT(why("atomic_rmw %flag, %zero {kind = add}"), HasSubstr("this loop never ends"));
  EXPECT_THAT(why("atomic_rmw %flag, %one {kind = add}"), HasSubstr("has not ended after 1000 trips"));
}

TEST(Interpret, PrintsAndAssertions) {
  std::vector<std::string> lines;
  const std::string text = kernel_text("%n: i32", R"(
  %lane = iota {start = 9} : tile<11xi32>
  print %lane {prefix = " x: "}
  print %n {prefix = " n: ", hex = 1}
  %ns = splat %n : tile<11xi32>
  %ok = ne %lane, %ns : tile<11xi1>
  assert %ok {message = "lane is n"}  @0:9:1
)");
  const InterpretOptions options{.print = [&](const std::string& line) { lines.push_back(line); }};
  const Error error = error_of([&] { run(text, {1, 1, 1}, {Argument::of(12)}, options); });
  EXPECT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[0], "pid (0, 0, 0) idx ( 0) x: 9");
  EXPECT_EQ(lines[11], "pid (0, 0, 0) idx () n: 0x0000000c");
  EXPECT_EQ(error.where(), "k.py:9: `assert` in program (0, 0, 0), element 3");
  EXPECT_EQ(error.why(), "lane is n");
}

TEST(Interpret, Views) {
  std::vector<float> x(12);
  std::iota(x.begin(), x.end(), 0.f);
  std::vector<float> y(12, -1);
  run(kernel_text("%x: ptr<f32>, %y: ptr<f32>", R"(
  %three = constant {value = 3} : i32
  %four = constant {value = 4} : i64
  %one = constant {value = 1} : i64
  %two = constant {value = 2} : i32
  %v = make_view %x, %three, %four, %four, %one {padding = zero} : view<2x4xf32>
  %t = load_view %v, %two, %one {check = [0, 1]} : tile<2x4xf32>
  %w = make_view %y, %three, %four, %four, %one : view<2x4xf32>
  store_view %w, %two, %one, %t {check = [0, 1]}
)"),
      {1, 1, 1}, {Argument::of(x.data()), Argument::of(y.data())}, {.allocations = {whole(x, "x"), whole(y, "y")}});
  EXPECT_THAT(y, ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, -1, 9, 10, 11));
}

}  // namespace
}  // namespace heddle::lang
