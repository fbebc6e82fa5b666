#pragma once

#include <string>

#include "lang/ir/parse.h"

// Kernels whose programs wait for others. Program p leaves in out[p] a number that only whoever has read out[p - 1]
// after its flag was set can know: 3 (p + 1).
namespace heddle::lang::testing {

// How a program reads and sets flags.
struct Handover {
  std::string name;
  std::string read = "load %from {cache = cv}";    // gives the flag that %from points to
  std::string set = "barrier\n  store %to, %one";  // sets the one that %to points to
  std::string element = "i32";                     // of flags
};

// Waits for `%from`, the flag of program %pid + `step`, unless there is none.
inline std::string chain_kernel(const Handover& h, int step = -1) {
  const std::string flag = "ptr<" + h.element + ">";
  return "tile_ir 2\nfile 0 \"k.py\"\nkernel @chain(%flags: " + flag + ", %out: ptr<i32>) {num_warps = 1} {\n" + R"(
  %pid = program_id {axis = 0} : i32
  %count = num_programs {axis = 0} : i32
  %i0 = constant {value = 0} : i32
  %three = constant {value = 3} : i32
  %step = constant {value = )" +
         std::to_string(step) + R"(} : i32
  %zero = constant {value = 0} : )" +
         h.element + R"(
  %one = constant {value = 1} : )" +
         h.element + R"(
  %near = add %pid, %step : i32
  %from = addptr %flags, %near : )" +
         flag + R"(
  %to = addptr %flags, %pid : )" +
         flag + R"(
  %least = ge %near, %i0 : i1
  %most = lt %near, %count : i1
  %has = and %least, %most : i1
  %before = if %has : i32 {
    while () @0:7:5 {
      %v = )" +
         h.read + " : " + h.element + R"(
      %go = eq %v, %zero : i1
      condition %go
    } do {
      yield
    }
    %data = addptr %out, %near : ptr<i32>
    %known = load %data : i32
    yield %known
  } else {
    yield %i0
  }
  %mine = add %before, %three : i32
  %result = addptr %out, %pid : ptr<i32>
  store %result, %mine
  )" + h.set +
         "\n}\n";
}

// The same with a tile: 16 flags of the program before, which are set one by one, and 16 numbers.
inline std::string tile_chain_kernel() {
  return R"(tile_ir 2
kernel @tile_chain(%flags: ptr<i32>, %out: ptr<i32>) {num_warps = 4} {
  %pid = program_id {axis = 0} : i32
  %i0 = constant {value = 0} : i32
  %i1 = constant {value = 1} : i32
  %i16 = constant {value = 16} : i32
  %lane = iota {start = 0} : tile<16xi32>
  %zero = constant {value = 0} : tile<16xi32>
  %one = constant {value = 1} : tile<16xi32>
  %three = constant {value = 3} : tile<16xi32>
  %row = mul %pid, %i16 : i32
  %rows = splat %row : tile<16xi32>
  %here = add %rows, %lane : tile<16xi32>
  %back = splat %i16 : tile<16xi32>
  %there = sub %here, %back : tile<16xi32>
  %f = splat %flags : tile<16xptr<i32>>
  %from = addptr %f, %there : tile<16xptr<i32>>
  %to = addptr %f, %here : tile<16xptr<i32>>
  %o = splat %out : tile<16xptr<i32>>
  %data = addptr %o, %there : tile<16xptr<i32>>
  %result = addptr %o, %here : tile<16xptr<i32>>
  %first = eq %pid, %i0 : i1
  %firsts = splat %first : tile<16xi1>
  %has = ge %there, %zero : tile<16xi1>
  while () {
    %v = load %from, %has, %one {volatile = 1} : tile<16xi32>
    %least = reduce %v {axis = 0} : i32 { (%a: i32, %b: i32) %m = min %a, %b : i32  yield %m }
    %go = eq %least, %i0 : i1
    condition %go
  } do {
    yield
  }
  barrier
  %known = load %data, %has : tile<16xi32>
  %mine = add %known, %three : tile<16xi32>
  store %result, %mine
  barrier
  store %to, %one
}
)";
}

inline const Handover kHandovers[] = {
    {"volatile", "load %from {volatile = 1}"},
    {"cv_u8", "load %from {cache = cv}", "barrier\n  store %to, %one", "u8"},
    {"cv_i64", "load %from {cache = cv}", "barrier\n  store %to, %one", "i64"},
    {"cv_f32", "load %from {cache = cv}", "barrier\n  store %to, %one", "f32"},
    {"release", "load %from {volatile = 1}", "%old = atomic_rmw %to, %one {kind = xchg, sem = release} : i32"},
    {"add_zero", "atomic_rmw %from, %zero {kind = add, sem = acquire}",
     "%old = atomic_rmw %to, %one {kind = add} : i32"},
    {"relaxed", "atomic_rmw %from, %zero {kind = or, sem = relaxed}",
     "%old = atomic_rmw %to, %one {kind = max, sem = acq_rel, scope = sys} : i32"},
    {"swap", "atomic_cas %from, %one, %one", "%old = atomic_cas %to, %zero, %one {sem = release} : i32"},
};

}  // namespace heddle::lang::testing
