// Which kernels can compute a product on a GPU, and which of them is expected to be the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/product/cuda/contraction.h"
#include "schedule/product/cuda/depthwise_wgrad.h"
#include "schedule/product/cuda/long_sums.h"

namespace heddle::schedule {

static_assert(ir::kPartialColumns == tile::kGemmPartialColumns && ir::kPartialRows == tile::kGemmPartialRows);

bool Product::on_tensor_cores() const {
  const auto narrow = [](DType t) { return t == DType::kF16 || t == DType::kBF16 || size_of(t) == 1; };
  return multiply_a == DType::kF32 || (narrow(multiply_a) && narrow(multiply_b));
}

double overlapped_us(std::initializer_list<double> us) {
  double sum = 0;
  for (const double part : us) sum += std::pow(part, 6);
  return std::pow(sum, 1.0 / 6);
}

int epilogue_read_bytes(const ProductTask& task) {
  const Epilogue& e = task.epilogue;
  int bytes = 0;
  visit_exprs(e.pool, e.values(), [&](ExprId id) {
    const Expr& load = e.pool[id];
    if (load.kind != Expr::Kind::kLoad) return;
    const auto place = affine_place(e, load.index);
    const bool vector = place && ((*place)[1] == 0 || (*place)[2] == 0);
    if (!vector) bytes += static_cast<int>(size_of(task.operands[load.id].dtype));
  });
  return bytes;
}

double cuda_peak(const ContractionDesc& desc, const GpuTarget& target) {
  constexpr double kThread = 256;  // operations of one SM in a cycle
  double rate = kThread;
  if (const auto* d = desc.get<Product>()) {
    const double tensor = target.model.chip.tensor_per_cycle * 2 * 2;
    const auto bytes = static_cast<double>(size_of(d->multiply_a));
    rate = d->on_tensor_cores() ? tensor / bytes / (d->splits_f32() ? 3 : 1) : kThread * 4 / std::max(bytes, 4.0);
  }
  return rate * target.model.chip.clock_ghz * 1e9 * target.sms;
}

std::span<const Family* const> cuda_families() {
  static const std::vector<const Family*> all = [] {
    std::vector<const Family*> list(wgmma_families().begin(), wgmma_families().end());
    list.insert(list.end(), view_families().begin(), view_families().end());
    list.push_back(&depthwise_wgrad_family());
    return list;
  }();
  return all;
}

const Family& cuda_family_of(const Config& config) {
  const auto all = cuda_families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto* f) { return f->name() == family_of(config); });
  HEDDLE_CHECK(found != all.end(), "{} is no family of products", family_of(config));
  return **found;
}

void sort_by_prediction(std::vector<CudaCandidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const CudaCandidate& a, const CudaCandidate& b) {
    if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
    return a.config.predicted_us < b.config.predicted_us;
  });
}

namespace {

// True if a family reads the forms of A and B. Its summed_windows() must match A; if B is packed, it must read packed
// weights.
bool reads_form(const Family& family, const ProductTask& task) {
  const OperandView& a = task.product.a;
  if (task.product.b.form == OperandView::Form::kPacked && !family.reads_packed_weights()) return false;
  return family.summed_windows() == (a.sums_windows() ? std::optional(a.form) : std::nullopt);
}

// What results take longer whose neighbours lie apart: L2 writes a whole sector for each.
double apart_us(const ProductTask& task, const GpuTarget& target) {
  constexpr double kSectorBytes = 32;
  if (!stores_apart(task.epilogue)) return 0;
  const Product& d = task.product;
  const DType out = task.operands[task.epilogue.stores.front().operand].dtype;
  return (kSectorBytes - static_cast<double>(size_of(out))) * static_cast<double>(d.m) *
         static_cast<double>(task.columns()) * static_cast<double>(d.batch) / target.model.wgmma.wave_per_us;
}

}  // namespace

std::vector<CudaCandidate> cuda_candidates(const ProductTask& task, const GpuTarget& target) {
  std::vector<CudaCandidate> found;
  for (const Family* family : cuda_families()) {
    if (!reads_form(*family, task)) continue;
    for (CudaCandidate& candidate : family->candidates(task, target)) found.push_back(std::move(candidate));
  }
  reject_long_chains(task, found);
  sort_by_prediction(found);
  const double more = apart_us(task, target);
  for (CudaCandidate& c : found) {
    if (c.rejected.empty()) c.config.predicted_us += more;
  }
  for (CudaCandidate& c : found) c.config.reason = fmt::format("{:.1f} us predicted", c.config.predicted_us);
  return found;
}

bool has_cuda_kernel(ContractionBuilder& builder, const Product& product) {
  const ProductTask task{product, builder.desc().epilogue, builder.operands()};
  const std::vector<CudaCandidate> all = cuda_candidates(task, builder.target().gpu());
  return !all.empty() && all.front().rejected.empty();
}

Config fastest_config(ContractionBuilder& builder, const Product& product) {
  const ProductTask task{product, builder.desc().epilogue, builder.operands()};
  std::vector<CudaCandidate> all = cuda_candidates(task, builder.target().gpu());
  HEDDLE_CHECK(!all.empty() && all.front().rejected.empty(), "no family multiplies {}", to_string(product.multiply_a));
  return std::move(all.front().config);
}

std::string view_text(const OperandView& o) {
  if (o.form == OperandView::Form::kComputed) return "computed";
  if (o.form == OperandView::Form::kPacked) {
    const PackedWeights& w = *o.weights;
    return fmt::format("u{} blocks of {}{}", w.bits, w.block, w.is_table ? " table" : w.third ? " zeros" : "");
  }
  std::string text(to_string(o.dtype));
  if (o.form == OperandView::Form::kImage || o.sums_windows()) {
    const tile::GemmImageArgs& i = o.image;
    if (o.sums_windows()) text += o.form == OperandView::Form::kSummedWindows ? " summed" : " summed by channel";
    return text + fmt::format(" image {}x{}x{}x{} window {}x{}x{} stride {}x{}x{}", i.size[0], i.size[1], i.size[2],
                              i.channels, i.window[0], i.window[1], i.window[2], i.stride[0], i.stride[1], i.stride[2]);
  }
  text += fmt::format("[{},{}]", o.row, o.k);
  for (const auto* dims : {&o.row_dims, &o.k_dims}) {
    if (dims->size() <= 1) continue;
    text += dims == &o.k_dims ? " k" : " rows";
    for (const auto& [extent, stride] : *dims) text += fmt::format(" {}:{}", extent, stride);
  }
  return text;
}

namespace {

// Empty: some family that uses it may run the product.
std::string why_no_wgmma(const ProductTask& task, const GpuTarget& target) {
  std::string why = "no family reads these operands";
  for (const Family* family : cuda_families()) {
    if (!family->uses_wgmma() || !reads_form(*family, task)) continue;
    why = family->refuse(task, target);
    if (why.empty()) break;
  }
  return why;
}

Problem problem_of(const ProductTask& task) {
  const Product& d = task.product;
  const Epilogue& e = task.epilogue;
  std::string text = fmt::format("x{}x{} {}{} a {} b {} ->", d.n, d.k, to_string(d.multiply_a), d.tf32 ? " tf32" : "",
                                 view_text(d.a), view_text(d.b));
  for (const Epilogue::Store& store : e.stores)
    text += fmt::format(" {}", to_string(task.operands[store.operand].dtype));
  for (const Epilogue::Reduction& r : e.reductions) text += r.rows ? " reduced rows" : " reduced columns";
  if (e.gate) text += " gated";
  if (!e.bounds.empty()) text += " cut";
  text += fmt::format(" expressions {}", e.pool.size());
  return {fmt::format("cuda gemm {}x{}{}", d.batch, d.m, text), "cuda gemm" + text};
}

}  // namespace

ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, Product desc, std::string label, double operations) {
  const GpuTarget& target = builder.target().gpu();
  const ProductTask task{desc, builder.desc().epilogue, builder.operands()};
  const auto runnable = [&] {
    std::vector<Config> configs;
    for (const CudaCandidate& c : cuda_candidates(task, target)) {
      if (c.rejected.empty()) configs.push_back(c.config);
    }
    return configs;
  };
  const Config config = choose_config(builder.configs(), problem_of(task), runnable);
  label += builder.epilogue_label();
  ScheduledGroup result;
  std::string note = fmt::format("{}: {}, {}", label, name_of(config), config.reason);
  if (!cuda_family_of(config).uses_wgmma() && desc.b.form != OperandView::Form::kPacked) {
    const std::string why = why_no_wgmma(task, target);
    note += why.empty() ? "; wgmma is slower by the model" : "; no wgmma: " + why;
  }
  result.notes.push_back(std::move(note));
  builder.desc().problem = std::move(desc);
  result.kernels.push_back(builder.finish(config, std::move(label), operations));
  return result;
}

}  // namespace heddle::schedule
