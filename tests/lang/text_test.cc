// The text form: what is printed is read again as the same kernel, and what is wrong is refused with its place.
#include <gmock/gmock.h>

#include "../error_of.h"
#include "lang/ir/parse.h"
#include "lang/ir/print.h"

namespace heddle::lang {
namespace {

using test::error_of;
using ::testing::HasSubstr;

constexpr std::string_view kSoftmax = R"(tile_ir 2
file 0 "softmax.py"
file 1 "helpers.py"
kernel @softmax(%y: ptr<f32> {divisible = 16}, %x: ptr<f32> {divisible = 16}, %stride: i64, %n: i32) {num_warps = 4} {
  %pid = program_id {axis = 0} : i32  @0:5:10
  %wide = cast %pid : i64  @0:5:12
  %start = mul %wide, %stride : i64  @0:6:10
  %row = addptr %x, %start : ptr<f32>  @0:6:10
  %lane = iota {start = 0} : tile<1000xi32>  @0:7:12
  %end = splat %n : tile<1000xi32>
  %inside = lt %lane, %end : tile<1000xi1>
  %rows = splat %row : tile<1000xptr<f32>>
  %p = addptr %rows, %lane : tile<1000xptr<f32>>
  %low = constant {value = -inf} : tile<1000xf32>
  %v = load %p, %inside, %low : tile<1000xf32>  @1:3:8 < 0:9:4
  %m = reduce %v {axis = 0} : f32  @0:10:4 {
    (%a: f32, %b: f32)
    %c = max %a, %b : f32
    yield %c
  }
  %ms = splat %m : tile<1000xf32>
  %d = sub %v, %ms : tile<1000xf32>
  %e = exp %d : tile<1000xf32>
  %out = splat %y : tile<1000xptr<f32>>
  %q = addptr %out, %lane : tile<1000xptr<f32>>
  store %q, %e, %inside {cache = cs}  @0:12:4
}
)";

constexpr std::string_view kControl = R"(tile_ir 2
kernel @control(%p: ptr<u64>, %n: i32, %flag: i1) {
  %zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %big = constant {value = 18446744073709551615} : u64
  %small = constant {value = 0.1} : f64
  %tile = constant {value = 0.0} : tile<16x12xf32>
  %sum, %last = for %i = %zero to %n step %one (%acc = %tile, %q = %p) {num_stages = 3} : tile<16x12xf32>, ptr<u64> {
    %next = addptr %q, %i : ptr<u64>
    yield %acc, %next
  }
  %r = if %flag : i32 {
    yield %zero
  } else {
    yield %n
  }
  %w = while (%v = %r) : i32 {
    %go = lt %v, %n : i1
    condition %go, %v
  } do { (%v2: i32)
    %u = add %v2, %one : i32
    yield %u
  }
  if %flag {
    store %last, %big
    yield
  }
  barrier
  print %w, %sum {prefix = "w = \"", hex = 1}
}
)";

std::string with(std::string_view text, std::string_view old, std::string_view by) {
  std::string result(text);
  const size_t at = result.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return result.replace(at, old.size(), by);
}

TEST(Text, WhatIsPrintedReadsAsTheSameKernel) {
  for (const std::string_view text : {kSoftmax, kControl}) {
    const Kernel kernel = parse_and_verify(text);
    const std::string printed = print(kernel);
    EXPECT_EQ(print(parse_and_verify(printed)), printed);
  }
  const std::string printed = print(parse(kSoftmax));
  EXPECT_THAT(printed, HasSubstr("%v = load %p, %inside, %low : tile<1000xf32>  @1:3:8 < 0:9:4"));
  EXPECT_THAT(printed, HasSubstr("{value = -inf}"));
  EXPECT_THAT(print(parse(kControl)), HasSubstr("{value = 18446744073709551615} : u64"));
  EXPECT_THAT(print(parse(kControl)), HasSubstr("{value = 0.1} : f64"));
}

TEST(Text, PlacesAreChainsOfCalls) {
  const Kernel kernel = parse(kSoftmax);
  for (const Op& op : kernel.body.ops) {
    if (op.code == OpCode::kLoad) {
      EXPECT_EQ(kernel.place(op.frame), "helpers.py:3 called from softmax.py:9");
    }
  }
}

TEST(Text, SyntaxErrorsHaveLineAndColumn) {
  const Error unknown = error_of([] { parse(with(kSoftmax, "exp %d", "exq %d")); });
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidIr);
  EXPECT_EQ(unknown.where(), "line 23, column 8");
  EXPECT_THAT(unknown.what(), HasSubstr("Did you mean exp?"));
  EXPECT_THAT(error_of([] { parse(with(kSoftmax, "sub %v, %ms", "sub %v, %mz")); }).what(),
              HasSubstr("%mz is not defined here"));
  EXPECT_THAT(error_of([] { parse(with(kSoftmax, "%m = reduce", "%v = reduce")); }).what(),
              HasSubstr("%v is defined already"));
  EXPECT_THAT(error_of([] { parse(with(kSoftmax, "tile_ir 2", "tile_ir 7")); }).what(), HasSubstr("version 7"));
  EXPECT_THAT(error_of([] { parse(with(kSoftmax, "@1:3:8", "@9:3:8")); }).what(), HasSubstr("there is no file 9"));
  EXPECT_THAT(error_of([] { parse(with(kSoftmax, "tile<1000xi32>", "tile<0xi32>")); }).what(), HasSubstr("no extent"));
}

TEST(Text, TypeErrorsNameTheUsersPlace) {
  const Error error =
      error_of([] { parse_and_verify(with(kSoftmax, "load %p, %inside, %low", "load %p, %low, %low")); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidIr);
  EXPECT_THAT(error.where(), HasSubstr("helpers.py:3 called from softmax.py:9: `load` at line 15, column 8"));
  EXPECT_THAT(error.why(), HasSubstr("operand 1 is %low of type tile<1000xf32>, it has to be tile<1000xi1>"));
}

struct Refusal {
  std::string_view old, by, why;
};

TEST(Text, TheVerifierRefuses) {
  const std::vector<Refusal> softmax = {
      {"program_id {axis = 0}", "program_id {axis = 3}", "axis = 3"},
      {"program_id {axis = 0}", "program_id", "attribute axis is missing"},
      {"{cache = cs}", "{cache = cx}", "one of "},
      {"{cache = cs}", "{cach = cs}", "Did you mean cache?"},
      {"yield %c\n", "yield %c, %c\n", "yields 2 values, 1 are wanted"},
      {"    yield %c\n", "", "`yield`"},
      {"%m = reduce %v {axis = 0} : f32", "%m = reduce %v {axis = 1} : f32", "axis = 1"},
      {"splat %m : tile<1000xf32>", "splat %m : tile<1000xf16>", "result 0 is tile<1000xf32>"},
      {"(%a: f32, %b: f32)", "(%a: f32, %b: f64)", "%b of type f64, it has to be f32"},
      {"exp %d", "exp %d, %d", "2 operands; it takes 1"},
      {"exp %d : tile<1000xf32>", "exp %lane : tile<1000xi32>", "a type that it does not take"},
      {"iota {start = 0} : tile<1000xi32>", "iota {start = 2147483000} : tile<1000xi32>", "out of the range of i32"},
      {"splat %row : tile<1000xptr<f32>>", "splat %row : tile<4194305xptr<f32>>", "too large"},
  };
  for (const Refusal& refusal : softmax) {
    EXPECT_THAT(error_of([&] { parse_and_verify(with(kSoftmax, refusal.old, refusal.by)); }).what(),
                HasSubstr(std::string(refusal.why)))
        << refusal.by;
  }
  const std::vector<Refusal> control = {
      {"yield %acc, %next", "yield %next, %acc", "is wanted"},
      {"step %one (", "step %big (", "has to be i32"},
      {"%r = if %flag", "%r = if %n", "has to be i1"},
      {"condition %go, %v", "condition %go", "`condition` takes"},
      {"{value = 18446744073709551615} : u64", "{value = -1} : u64", "out of the range of u64"},
      {"{value = 1} : i32", "{value = 1.5} : i32", "no integer"},
  };
  for (const Refusal& refusal : control) {
    EXPECT_THAT(error_of([&] { parse_and_verify(with(kControl, refusal.old, refusal.by)); }).what(),
                HasSubstr(std::string(refusal.why)))
        << refusal.by;
  }
}

TEST(Text, ValuesOfARegionEndWithIt) {
  EXPECT_THAT(error_of([] { parse(with(kControl, "print %w, %sum", "print %go, %sum")); }).what(),
              HasSubstr("%go is not defined here"));
}

TEST(Text, NestingIsBounded) {
  std::string text = "tile_ir 2\nkernel @k(%c: i1) {\n";
  for (int i = 0; i < 1000; ++i) text += "if %c {\n";
  EXPECT_THAT(error_of([&] { parse(text); }).what(), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace heddle::lang
