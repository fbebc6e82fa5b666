// Programs that wait for others on a CPU.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "../error_of.h"
#include "lang/cpu/launch/kernel.h"
#include "lang/interpret/interpret.h"
#include "waiting_kernels.h"

namespace heddle::lang::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const cpu::CpuKernel> compiled(const std::string& text) {
  return cpu::CpuKernel::compile(parse_and_verify(text), Target::host_cpu(2));
}

// Runs a chain of programs of `width` elements each; how many elements are wrong.
int wrong_after(const cpu::CpuKernel& kernel, int64_t programs, int64_t width, ThreadPool& threads) {
  std::vector<int64_t> flags(static_cast<size_t>(programs * width), 0);
  std::vector<int32_t> out(flags.size(), -1);
  kernel.launch({programs, 1, 1}, std::vector{Argument::of(flags.data()), Argument::of(out.data())}, threads);
  int wrong = 0;
  for (size_t i = 0; i < out.size(); ++i) wrong += out[i] != 3 * (static_cast<int32_t>(i) / width + 1);
  return wrong;
}

TEST(CpuWait, ProgramsSeeWhatEarlierOnesHandOver) {
  std::vector<Kernel> kernels;
  for (const Handover& h : kHandovers) kernels.push_back(parse_and_verify(chain_kernel(h)));
  const auto all = cpu::CpuKernel::compile_all(std::move(kernels), Target::host_cpu(2));
  for (const int threads : {1, 2, 16}) {
    ThreadPool pool(threads);
    for (size_t i = 0; i < all.size(); ++i) {
      for (int launch = 0; launch < 2; ++launch) {
        EXPECT_EQ(wrong_after(*all[i], 2000, 1, pool), 0) << kHandovers[i].name << ", " << threads << " threads";
      }
    }
  }
}

TEST(CpuWait, TilesOfFlags) {
  const auto kernel = compiled(tile_chain_kernel());
  for (const int threads : {1, 2, 16}) {
    ThreadPool pool(threads);
    for (int launch = 0; launch < 2; ++launch) {
      EXPECT_EQ(wrong_after(*kernel, 3000, 16, pool), 0) << threads << " threads\n" << kernel->text();
    }
  }
}

// A volatile load happens where it stands, whoever needs it, and what was loaded before is not loaded behind it.
TEST(CpuWait, LoadsStayWhereTheyStand) {
  const auto kernel = compiled(R"(tile_ir 2
kernel @order(%x: ptr<f32>, %y: ptr<f32>) {
  %i = iota {start = 0} : tile<64xi32>
  %xs = splat %x : tile<64xptr<f32>>
  %p = addptr %xs, %i : tile<64xptr<f32>>
  %plain = load %p : tile<64xf32>
  %now = load %p {cache = cv} : tile<64xf32>
  %unused = load %x {volatile = 1} : f32
  barrier
  %ys = splat %y : tile<64xptr<f32>>
  %q = addptr %ys, %i : tile<64xptr<f32>>
  %sum = add %plain, %now : tile<64xf32>
  store %q, %sum
  %twice = add %now, %now : tile<64xf32>
  %k = constant {value = 64} : tile<64xi32>
  %r = addptr %q, %k : tile<64xptr<f32>>
  store %r, %twice
}
)");
  const std::string& text = kernel->text();
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("fetch<W>(pointer<float>"), 2) << "each tile is loaded once:\n" << text;
  EXPECT_EQ(count("load_now<float>"), 1) << text;
  EXPECT_EQ(count("order_memory();"), 3) << text;
  EXPECT_LT(text.find("fetch<W>(pointer<float>"), text.find("order_memory();")) << text;
}

TEST(CpuWait, AWaitForALaterProgramIsNamed) {
  ::setenv("HEDDLE_TILE_PATIENCE", "0.2", 1);
  for (const auto& [read, threads] :
       {std::pair("load %from {volatile = 1}", 1), std::pair("load %from {cache = cv}", 2),
        std::pair("atomic_rmw %from, %zero {kind = add}", 2)}) {
    const auto kernel = compiled(chain_kernel({"", read}, 1));
    ThreadPool pool(threads);
    const Error error = test::error_of([&] { wrong_after(*kernel, 5, 1, pool); });
    EXPECT_EQ(error.where(), "k.py:7: `while` in program (0, 0, 0)");
    EXPECT_THAT(error.why(), HasSubstr("waits for memory that no running program writes"));
    EXPECT_EQ(wrong_after(*kernel, 1, 1, pool), 0) << "the threads are free again";
  }
  ::unsetenv("HEDDLE_TILE_PATIENCE");
}

TEST(CpuWait, TheInterpreterNamesALoopWithoutEnd) {
  std::vector<int32_t> flags(8, 0), out(8, 0);
  const std::vector arguments{Argument::of(flags.data()), Argument::of(out.data())};
  for (const Handover& h : kHandovers) {
    if (h.element != "i32") continue;
    std::fill(flags.begin(), flags.end(), 0);
    const Error error = test::error_of([&] { interpret(parse_and_verify(chain_kernel(h, 1)), {4, 1, 1}, arguments); });
    EXPECT_EQ(error.where(), "k.py:7: `while` in program (0, 0, 0)") << h.name;
    EXPECT_THAT(error.why(), HasSubstr("this loop never ends")) << h.name;
    std::fill(flags.begin(), flags.end(), 0);
    const InterpretOptions checked{.allocations = {{reinterpret_cast<uint64_t>(flags.data()), 32, "flags"},
                                                   {reinterpret_cast<uint64_t>(out.data()), 32, "out"}},
                                   .checked = true};
    if (h.name == "relaxed") continue;  // orders nothing
    EXPECT_NO_THROW(interpret(parse_and_verify(chain_kernel(h)), {8, 1, 1}, arguments, checked)) << h.name;
    EXPECT_EQ(out[7], 24) << h.name;
  }
}

}  // namespace
}  // namespace heddle::lang::testing
