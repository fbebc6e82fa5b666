#include "driver/tune/cublaslt.h"

#include <dlfcn.h>

namespace heddle::driver {
namespace {

// Numbers of the library's interface.
constexpr int kCompute32F = 68, kCompute32I = 72, kComputeTf32 = 77;
constexpr int kF32 = 0, kF16 = 2, kI8 = 3, kI32 = 10, kBF16 = 14, kE4M3 = 28, kE5M2 = 29;
constexpr int kTransA = 3, kTransB = 4, kMaxWorkspace = 1;
constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kMostAlgorithms = 32;

int cuda_type(DType type) {
  switch (type) {
    case DType::kF16:
      return kF16;
    case DType::kBF16:
      return kBF16;
    case DType::kI8:
      return kI8;
    case DType::kI32:
      return kI32;
    case DType::kF8E4M3:
      return kE4M3;
    case DType::kF8E5M2:
      return kE5M2;
    default:
      return kF32;
  }
}

}  // namespace

struct CublasLt::Api {
  struct Heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  static_assert(sizeof(Heuristic) == 96);

  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*desc_create)(void** desc, int compute, int scale);
  int (*desc_destroy)(void* desc);
  int (*desc_set)(void* desc, int attribute, const void* value, size_t bytes);
  int (*layout_create)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(void* layout);
  int (*preference_create)(void** preference);
  int (*preference_destroy)(void* preference);
  int (*preference_set)(void* preference, int attribute, const void* value, size_t bytes);
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int requested,
                   Heuristic* results, int* found);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* layout_a, const void* b,
                void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                const void* algorithm, void* workspace, size_t workspace_bytes, void* stream);
};

struct CublasLt::Problem {
  const Api& api;
  std::vector<uint64_t> operands;
  bool integer = false;
  void *desc = nullptr, *a = nullptr, *b = nullptr, *d = nullptr;
  std::vector<Api::Heuristic> found;
  ~Problem() {
    for (void* layout : {a, b, d}) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
    if (desc != nullptr) api.desc_destroy(desc);
  }
};

std::unique_ptr<CublasLt> CublasLt::load(const runtime::CudaContext& context, std::string& why) {
  void* library = nullptr;
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"}) {
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
      if (library == nullptr) library = ::dlopen((std::string(folder) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  why = "libcublasLt.so.13 and .12 cannot be loaded";
  if (library == nullptr) return nullptr;
  auto api = std::make_unique<Api>();
  bool all = true;
  const auto need = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function != nullptr;
  };
  need("cublasLtCreate", api->create);
  need("cublasLtDestroy", api->destroy);
  need("cublasLtMatmulDescCreate", api->desc_create);
  need("cublasLtMatmulDescDestroy", api->desc_destroy);
  need("cublasLtMatmulDescSetAttribute", api->desc_set);
  need("cublasLtMatrixLayoutCreate", api->layout_create);
  need("cublasLtMatrixLayoutDestroy", api->layout_destroy);
  need("cublasLtMatmulPreferenceCreate", api->preference_create);
  need("cublasLtMatmulPreferenceDestroy", api->preference_destroy);
  need("cublasLtMatmulPreferenceSetAttribute", api->preference_set);
  need("cublasLtMatmulAlgoGetHeuristic", api->heuristic);
  need("cublasLtMatmul", api->matmul);
  if (!all) return nullptr;
  std::unique_ptr<CublasLt> lt(new CublasLt(context, std::move(api)));
  why = "cublasLtCreate failed";
  return lt->handle_ == nullptr ? nullptr : std::move(lt);
}

CublasLt::CublasLt(const runtime::CudaContext& context, std::unique_ptr<Api> api)
    : context_(context), api_(std::move(api)), workspace_(context, kWorkspaceBytes) {
  if (api_->create(&handle_) != 0) handle_ = nullptr;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) api_->destroy(handle_);
}

std::shared_ptr<CublasLt::Problem> CublasLt::prepare(const ops::GemmProblem& p, const std::vector<uint64_t>& operands) {
  auto problem = std::make_shared<Problem>(
      Problem{*api_, operands, p.in == DType::kI8 && p.out == DType::kI32, nullptr, nullptr, nullptr, nullptr, {}});
  const bool known = p.in != DType::kF64 && p.in != DType::kU8;
  if (!known || p.batch != 1 || p.m == 0 || p.n == 0 || p.k == 0) return problem;
  // Its matrices are column-major: it computes D^T = B^T A^T.
  const int compute = p.in == DType::kI8 ? kCompute32I : p.tf32 ? kComputeTf32 : kCompute32F;
  const int transposed = 1, plain = 0;
  const auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
  bool good = api_->desc_create(&problem->desc, compute, problem->integer ? kI32 : kF32) == 0;
  good = good && api_->desc_set(problem->desc, kTransA, p.transpose_b ? &transposed : &plain, sizeof(int)) == 0;
  good = good && api_->desc_set(problem->desc, kTransB, p.transpose_a ? &transposed : &plain, sizeof(int)) == 0;
  good = good && api_->layout_create(&problem->a, cuda_type(p.in), u(p.transpose_b ? p.k : p.n),
                                     u(p.transpose_b ? p.n : p.k), p.ldb) == 0;
  good = good && api_->layout_create(&problem->b, cuda_type(p.in), u(p.transpose_a ? p.m : p.k),
                                     u(p.transpose_a ? p.k : p.m), p.lda) == 0;
  good = good && api_->layout_create(&problem->d, cuda_type(p.out), u(p.n), u(p.m), p.ldd) == 0;
  void* preference = nullptr;
  good = good && api_->preference_create(&preference) == 0;
  if (!good) return problem;
  api_->preference_set(preference, kMaxWorkspace, &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  problem->found.resize(kMostAlgorithms);
  int count = 0;
  if (api_->heuristic(handle_, problem->desc, problem->a, problem->b, problem->d, problem->d, preference,
                      kMostAlgorithms, problem->found.data(), &count) != 0) {
    count = 0;
  }
  api_->preference_destroy(preference);
  problem->found.resize(static_cast<size_t>(count));
  return problem;
}

int CublasLt::algorithms(const Problem& problem) {
  return static_cast<int>(problem.found.size());
}

bool CublasLt::enqueue(const Problem& p, int algorithm) const {
  const float one = 1, zero = 0;
  const int integer_one = 1, integer_zero = 0;
  const void* alpha = p.integer ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = p.integer ? static_cast<const void*>(&integer_zero) : &zero;
  const auto at = [](uint64_t address) { return reinterpret_cast<void*>(address); };
  return api_->matmul(handle_, p.desc, alpha, at(p.operands[1]), p.a, at(p.operands[0]), p.b, beta, at(p.operands[2]),
                      p.d, at(p.operands[2]), p.d, p.found[static_cast<size_t>(algorithm)].algorithm,
                      at(workspace_.address()), workspace_.size(), context_.stream()) == 0;
}

}  // namespace heddle::driver
