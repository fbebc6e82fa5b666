// Tables of lines of generated kernels, by which a profile knows whose the samples are.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file/file.h"
#include "heddle/error.h"
#include "ir/text/text.h"
#include "jit/cuda/nvrtc.h"
#include "machine.h"
#include "profile/code/cubin_lines.h"

namespace heddle::testing {
namespace {

TEST(CudaStitch, EachInstructionIsOfALineOfTheText) {
  try {
    jit::find_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr uint64_t kInstruction = 16;
  const Target target = Target::cuda_h200(2);
  const std::string architecture = target.cuda.architecture();
  for (const char* name : {"lnx2_4096x768", "softmax_mask_384x128x128", "f16/fig7_64x30000"}) {
    const ir::Graph graph = ir::parse(MappedFile::open(std::string(HEDDLE_SUITE) + "/" + name + ".hir")->text());
    for (const auto& kernel : schedule::schedule(graph, whole_graph(graph), target).kernels) {
      const codegen::KernelSource source = codegen::emit(schedule::plan_kernel(kernel, target), target);
      const std::string unit = codegen::translation_unit({&source});
      const std::string plain = jit::compile_cubin(unit, architecture, true, jit::Slow::kAcceptAtOnce).bytes;
      const std::string lined =
          jit::compile_cubin(unit, architecture, true, jit::Slow::kAcceptAtOnce, jit::Lines::kWritten).bytes;
      const auto lines = static_cast<uint64_t>(std::count(unit.begin(), unit.end(), '\n'));
      for (const CudaLaunch& launch : source.launches) {
        const std::string_view code = profile::code::code_of(plain, launch.symbol);
        ASSERT_FALSE(code.empty()) << launch.symbol;
        EXPECT_EQ(code, profile::code::code_of(lined, launch.symbol)) << launch.symbol;
        const auto table = profile::code::CubinLines::of(lined, launch.symbol);
        size_t known = 0;
        for (uint64_t offset = 0; offset < code.size(); offset += kInstruction) {
          const auto places = table.at(offset);
          const auto own =
              std::find_if(places.begin(), places.end(), [](const auto& p) { return p.file == "kernel.cu"; });
          if (own == places.end()) continue;
          EXPECT_LE(own->line, lines);
          ++known;
        }
        EXPECT_GE(known * kInstruction, code.size() / 100 * 95) << launch.symbol;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::testing
