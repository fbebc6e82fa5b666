// Which configurations products of a long k get on a GPU.
#include "ir/text/text.h"
#include "schedule/product/cuda/contraction.h"
#include "testing.h"
#include "tests/contraction/testing.h"

namespace heddle {
namespace {

// Chains of additions to one sum are short however long k is, unless the partial sums would take more memory than there
// is: then they are as short as fits.
TEST(CudaLongSums, AreCutIntoParts) {
  constexpr int64_t kMostAdditions = 256;
  Target target = Target::cuda_h200(1);
  for (const int sm : {90, 80}) {
    target.cuda.sm = sm;
    for (const char* type : {"f32", "f16"}) {
      for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {1, 3000}, {64, 64}, {200, 96}}) {
        for (const int64_t k : {int64_t{100000}, int64_t{1000003}}) {
          for (const bool along_k : {false, true}) {
            const ir::Graph graph = ir::parse(testing::matmul_text(type, m, n, k, "f32", along_k, !along_k, false));
            const auto scheduled = schedule::schedule_contraction(
                graph, testing::whole_graph(graph, ir::GroupKind::kContraction), target, nullptr);
            const schedule::KernelDesc& desc = scheduled.kernels.at(0).desc;
            const auto& body = *std::get<std::shared_ptr<const schedule::ContractionDesc>>(desc.body);
            const auto candidates = schedule::cuda_candidates(
                {std::get<schedule::Product>(body.problem), body.epilogue, desc.operands}, target.cuda);
            EXPECT_LE(candidates.at(0).additions, kMostAdditions)
                << type << " " << m << "x" << n << "x" << k << ": " << name_of(candidates[0].config);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle
