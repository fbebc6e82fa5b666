// Kernels that are long or deep, as unrolled loops make them: in time that grows with their length, with the right
// results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/error.h"
#include "lang/cpu/lower.h"
#include "lang/cuda/unit.h"
#include "lang/ir/parse.h"
#include "running.h"

namespace heddle::lang::testing {
namespace {

// x and y are arrays of `extent` elements at %p and %q, %s is a scalar, %c a tile.
std::string long_kernel(int64_t extent, const std::string& body) {
  const std::string head = fmt::format(
      "  %l = iota {{start = 0}} : tile<{0}xi32>\n  %xs = splat %x : tile<{0}xptr<f32>>\n"
      "  %p = addptr %xs, %l : tile<{0}xptr<f32>>\n  %ys = splat %y : tile<{0}xptr<f32>>\n"
      "  %q = addptr %ys, %l : tile<{0}xptr<f32>>\n  %c = constant {{value = 0.5}} : tile<{0}xf32>\n",
      extent);
  return kernel_text("%x: ptr<f32>, %y: ptr<f32>, %s: i32", head + body);
}

std::string chain(int64_t extent, int steps) {
  std::string body = fmt::format("  %v0 = load %p : tile<{}xf32>\n", extent);
  for (int i = 0; i < steps; ++i) {
    body += fmt::format("  %m{0} = mul %v{0}, %c : tile<{2}xf32>\n  %v{1} = add %m{0}, %c : tile<{2}xf32>\n", i, i + 1,
                        extent);
  }
  return long_kernel(extent, body + fmt::format("  store %q, %v{}\n", steps));
}

std::string scalars(int steps) {
  std::string body = "  %v0 = load %x : f32\n  %h = constant {value = 0.5} : f32\n";
  for (int i = 0; i < steps; ++i) {
    body += fmt::format("  %m{0} = mul %v{0}, %h : f32\n  %v{1} = add %m{0}, %h : f32\n", i, i + 1);
  }
  return long_kernel(16, body + fmt::format("  %t = splat %v{} : tile<16xf32>\n  store %q, %t\n", steps));
}

// y[i] of step k is x[i] + x[i + k * s] + 0.5; pointers move by a scalar.
std::string walk(int64_t extent, int steps) {
  std::string body = fmt::format(
      "  %ss = splat %s : tile<{0}xi32>\n  %p0 = addptr %p, %ss : tile<{0}xptr<f32>>\n"
      "  %q0 = addptr %q, %ss : tile<{0}xptr<f32>>\n  %x0 = load %p : tile<{0}xf32>\n",
      extent);
  for (int i = 0; i < steps; ++i) {
    body += fmt::format(
        "  %v{0} = load %p{0} : tile<{2}xf32>\n  %w{0} = add %v{0}, %c : tile<{2}xf32>\n"
        "  %z{0} = add %w{0}, %x0 : tile<{2}xf32>\n  store %q{0}, %z{0}\n"
        "  %p{1} = addptr %p{0}, %ss : tile<{2}xptr<f32>>\n  %q{1} = addptr %q{0}, %ss : tile<{2}xptr<f32>>\n",
        i, i + 1, extent);
  }
  return long_kernel(extent, body);
}

// Each value is used twice by the next one: there are 2^steps ways through it.
std::string fan(int64_t extent, int steps) {
  const std::string f = fmt::format("tile<{}xf32>", extent), i = fmt::format("tile<{}xi32>", extent),
                    m = fmt::format("tile<{}xi1>", extent);
  std::string body = "  %ss = splat %s : " + i + "\n  %v0 = load %p : " + f + "\n  %i0 = mul %l, %l : " + i +
                     "\n  %b0 = lt %l, %ss : " + m + "\n";
  for (int k = 0; k < steps; ++k) {
    body += fmt::format("  %v{1} = add %v{0}, %v{0} : {2}\n  %i{1} = xor %i{0}, %i{0} : {3}\n", k, k + 1, f, i);
    body += fmt::format("  %b{1} = and %b{0}, %b{0} : {2}\n", k, k + 1, m);
  }
  body += fmt::format(
      "  %r = addptr %q, %i{0} : tile<{1}xptr<f32>>\n  %w = load %p, %b{0} : {2}\n  %u = add %w, %v{0} : {2}\n"
      "  store %r, %u, %b{0}\n",
      steps, extent, f);
  return long_kernel(extent, body);
}

// Loops and branches with reductions between them, whose results are scalars that later parts need. `unused`: constants
// that nothing reads follow each of them, which fill the parts of a kernel and cost no compiler's time.
std::string mixed(int64_t extent, int steps, int unused = 0) {
  const std::string f = fmt::format("tile<{}xf32>", extent);
  std::string body = "  %z = constant {value = 0} : i32\n  %one = constant {value = 1} : i32\n  %v0 = load %p : " + f +
                     "\n  %k = gt %s, %z : i1\n";
  for (int i = 0; i < steps; ++i) {
    body += fmt::format(
        "  %r{0} = reduce %v{0} {{axis = 0}} : f32 {{ (%a{0}: f32, %b{0}: f32)\n    %m{0} = max %a{0}, %b{0} : f32\n"
        "    yield %m{0}\n  }}\n  %t{0} = splat %r{0} : {2}\n  %d{0} = sub %v{0}, %t{0} : {2}\n"
        "  %e{0} = if %k : {2} {{\n    %g{0} = mul %d{0}, %c : {2}\n    yield %g{0}\n  }} else {{\n    yield %v{0}\n  "
        "}}\n"
        "  %v{1} = for %n{0} = %z to %one step %one (%h{0} = %e{0}) : {2} {{\n    %o{0} = add %h{0}, %c : {2}\n"
        "    yield %o{0}\n  }}\n",
        i, i + 1, f);
    for (int k = 0; k < unused; ++k) body += fmt::format("  %u{}_{} = constant {{value = {}}} : f32\n", i, k, k);
  }
  return long_kernel(extent, body + fmt::format("  store %q, %v{}\n", steps));
}

Case case_of(std::string name, std::string text, int64_t elements) {
  std::mt19937 random(11);
  return {std::move(name),
          std::move(text),
          {1, 1, 1},
          {random_array(random, Element::kF32, elements), filled(Element::kF32, elements, 9), scalar(3)},
          1e-6};
}

TEST(LongKernels, ComputeTheSame) {
  expect_same({case_of("chain in two loops", chain(37, 400), 64), case_of("chain in parts", chain(64, 900), 64),
               case_of("scalars in parts", scalars(600), 64), case_of("memory", walk(33, 40), 256),
               case_of("memory in parts", walk(16, 220), 1024), case_of("fan", fan(32, 30), 64),
               case_of("reductions and branches in parts", mixed(16, 10, 100), 64)});
}

// Walks that go every way, or recurse as deep as a chain is long, do not end here.
TEST(LongKernels, TextsOfAllSizes) {
  for (const std::string& text : {chain(64, 7000), scalars(7000), fan(32, 60), mixed(16, 800), walk(64, 1500)}) {
    const Kernel kernel = parse_and_verify(text);
    Kernel on_cpu = kernel;
    EXPECT_LT(cpu::lower(on_cpu).text.size(), 4000000u);
    EXPECT_LT(cuda::cuda_unit(kernel, CudaTarget::pinned(90), cuda::Loads::kAny).text.size(), 8000000u);
  }
}

TEST(LongKernels, HaveALimit) {
  try {
    parse_and_verify(chain(16, 33000));
    FAIL() << "a kernel of 66000 operations was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
    EXPECT_NE(std::string(error.what()).find("65536"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle::lang::testing
