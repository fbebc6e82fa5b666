// Which kernels can compute a product on a GPU, and which of them is expected to be the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "schedule/cuda_contraction.h"

namespace heddle::schedule {
namespace {

using Form = CudaOperand::Form;

constexpr int64_t kCopyBytes = 16;
constexpr int64_t kMaxPartials = int64_t{64} << 20;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct Tile {
  int m, n, warps_m, warps_n;
};
// A warp's part is at most 64 x 64 sums: more do not fit its registers beside the fragments.
constexpr Tile kTensorTiles[] = {{128, 128, 2, 2}, {128, 64, 2, 2}, {64, 128, 2, 2}, {64, 64, 2, 2}, {128, 32, 4, 1},
                                 {32, 128, 1, 4},  {64, 32, 2, 1},  {32, 64, 1, 2},  {16, 128, 1, 4}};
// 8 x 8 sums of 4 bytes a thread, fewer of 8.
constexpr Tile kSimtTiles[] = {{128, 128, 4, 2}, {64, 64, 2, 2}, {128, 32, 4, 1}, {32, 128, 1, 4}, {32, 64, 1, 2}};
constexpr Tile kWideSimtTiles[] = {{64, 64, 2, 2}, {32, 64, 1, 2}, {64, 32, 2, 1}};

bool is_tensor(const CudaGemmDesc& d) {
  const auto narrow = [](DType t) { return t == DType::kF16 || t == DType::kBF16 || size_of(t) == 1; };
  return d.tf32 || (narrow(d.multiply_a) && narrow(d.multiply_b));
}

// Multiplications and additions of one multiprocessor in a cycle.
double rate_of(const CudaGemmDesc& d, bool sm90) {
  constexpr double kMma16 = 2048, kWgmma16 = 4096, kFma32 = 256, kFma64 = 128, kInt32 = 128, kInt64 = 16;
  const auto bytes = static_cast<double>(size_of(d.multiply_a));
  if (is_tensor(d)) return (sm90 ? kWgmma16 : kMma16) * 2 / bytes;
  if (is_float(d.multiply_a)) return bytes == 4 ? kFma32 : kFma64;
  return bytes == 4 ? kInt32 : kInt64;
}

constexpr double kClockGhz = 1.7;

double bytes_of(const CudaGemmDesc& d, const std::vector<Operand>& operands) {
  double bytes = 0;
  for (const Operand& o : operands) {
    bytes += static_cast<double>(element_count(o.shape)) * static_cast<double>(size_of(o.dtype));
  }
  return std::max(bytes, static_cast<double>(d.m) * static_cast<double>(d.n));
}

// Seconds of one instance of "sm80" or "simt", in us.
double predict(const CudaGemmDesc& d, const Config& c, double bytes, const CudaTarget& target) {
  constexpr double kSharedBytes = 128, kL2Bytes = 48;  // a cycle, of one multiprocessor
  constexpr double kEfficiency = 0.8, kFirstLoadUs = 2.0, kReduceUs = 1.1, kComputedCycles = 24;
  const auto tile_m = static_cast<double>(c.tile_m), tile_n = static_cast<double>(c.tile_n);
  const auto element = static_cast<double>(size_of(d.multiply_a));
  const double math = 2 * tile_m * tile_n / (rate_of(d, false) * kEfficiency);
  const double shared =
      (static_cast<double>(c.micro_n) * tile_m + static_cast<double>(c.micro_m) * tile_n) * element / kSharedBytes;
  const double fill = (tile_m + tile_n) * element / kL2Bytes;
  double cycles = std::max({math, shared, fill});
  const double threads = 32.0 * static_cast<double>(c.micro_m * c.micro_n);
  for (const auto& [operand, rows] : {std::pair{&d.a, tile_m}, {&d.b, tile_n}}) {
    if (operand->form == Form::kComputed) cycles += kComputedCycles * rows / std::min(threads, 128.0);
  }
  const int64_t units = ceil_div(d.m, c.tile_m) * ceil_div(d.n, c.tile_n) * d.batch * c.splits;
  const double waves = static_cast<double>(ceil_div(units, target.sms));
  const double k = static_cast<double>(ceil_div(ceil_div(std::max<int64_t>(d.k, 1), c.tile_k), c.splits) * c.tile_k);
  const double store = 600 + tile_m * tile_n * 4 / 64;
  const double share = std::min(1.0, static_cast<double>(units) / target.sms);
  const double memory = bytes / (target.read_tbps * 1e6 * std::min(1.0, 0.15 + share));
  double us = kFirstLoadUs + std::max(waves * (k * cycles + store) / (kClockGhz * 1e3), memory);
  if (c.splits > 1) {
    const double sums = static_cast<double>(size_of(cuda_accumulator(d))) * static_cast<double>(d.m) *
                        static_cast<double>(d.n) * static_cast<double>(d.batch) * static_cast<double>(c.splits);
    us += kReduceUs + 2 * sums / 5.5e6;
  }
  return us;
}

std::string reject(const CudaGemmDesc& d, const Config& c, const CudaTarget& target) {
  const int64_t shared = cuda_shared_bytes(d, c);
  if (shared > target.shared_bytes_per_block) return fmt::format("{} bytes of shared memory", shared);
  // Tiles that stand out of a narrow side waste their work, and no other reason needs them.
  constexpr int64_t kNarrow = 64;
  if ((c.tile_m > kNarrow && c.tile_m >= 2 * d.m) || (c.tile_n > kNarrow && c.tile_n >= 2 * d.n)) {
    return "wider than the result";
  }
  const double units = static_cast<double>(ceil_div(d.m, c.tile_m)) * static_cast<double>(ceil_div(d.n, c.tile_n)) *
                       static_cast<double>(d.batch) * static_cast<double>(c.splits);
  if (units > std::numeric_limits<int32_t>::max()) return "more than 2^31 tiles";
  const double sums = static_cast<double>(size_of(cuda_accumulator(d))) * static_cast<double>(d.m) *
                      static_cast<double>(d.n) * static_cast<double>(d.batch) * static_cast<double>(c.splits);
  if (c.splits > 1 && sums > static_cast<double>(kMaxPartials)) return "the partial sums exceed the workspace";
  return {};
}

void add_threads_family(std::vector<CudaCandidate>& found, const CudaGemmDesc& d, double bytes,
                        const CudaTarget& target) {
  const bool tensor = is_tensor(d);
  const auto element = static_cast<int64_t>(size_of(d.multiply_a));
  const auto add = [&](const Tile& tile) {
    const int64_t tile_k = tensor ? 64 / element : 8;
    const int64_t tiles = ceil_div(d.m, tile.m) * ceil_div(d.n, tile.n) * d.batch, k_tiles = ceil_div(d.k, tile_k);
    std::vector<int64_t> splits = {1};
    for (const int64_t wanted : {int64_t{2}, int64_t{4}, target.sms / std::max<int64_t>(tiles, 1)}) {
      const int64_t some = std::min(wanted, k_tiles / 8);
      if (some > 1 && tiles < target.sms && std::find(splits.begin(), splits.end(), some) == splits.end()) {
        splits.push_back(some);
      }
    }
    for (const int64_t split : splits) {
      Config c;
      c.algorithm = tensor ? "sm80" : "simt";
      c.tile_m = tile.m, c.tile_n = tile.n, c.tile_k = tile_k;
      c.micro_m = tile.warps_m, c.micro_n = tile.warps_n;
      c.stages = tensor ? 4 : 2;
      c.splits = split;
      CudaCandidate candidate{c, 0, reject(d, c, target)};
      if (candidate.rejected.empty()) candidate.predicted_us = predict(d, c, bytes, target);
      found.push_back(std::move(candidate));
    }
  };
  if (tensor) {
    for (const Tile& tile : kTensorTiles) add(tile);
  } else if (element == 8) {
    for (const Tile& tile : kWideSimtTiles) add(tile);
  } else {
    for (const Tile& tile : kSimtTiles) add(tile);
  }
}

void add_sm90_family(std::vector<CudaCandidate>& found, const CudaGemmDesc& d, const Epilogue& epilogue,
                     const std::vector<Operand>& operands, const CudaTarget& target) {
  std::string why = "the device is older";
  const auto problem = target.sm == 90 ? sm90_problem(d, epilogue, operands, &why) : std::nullopt;
  if (!problem) {
    Config none;
    none.algorithm = "sm90";
    found.push_back({none, 0, why});
    return;
  }
  for (const CudaGemmCandidate& candidate : enumerate(*problem, target)) {
    const CudaGemmConfig& g = candidate.config;
    Config c;
    c.algorithm = "sm90";
    c.tile_m = g.tile_m, c.tile_n = g.tile_n;
    c.tile_k = tile::kGemmRowBytes / static_cast<int64_t>(size_of(problem->in));
    c.micro_m = g.consumers, c.micro_n = 1;
    c.stages = g.stages, c.splits = g.splits;
    c.cluster_m = g.cluster_m, c.cluster_n = g.cluster_n;
    c.ping_pong = g.ping_pong, c.swapped = g.swapped;
    found.push_back({c, candidate.predicted_us, candidate.rejected});
  }
}

// An operand for the copy engine: contiguous along k or along its rows, the rest in steps of 16 bytes or repacked.
bool read_by_copies(const CudaOperand& o, int64_t rows, int64_t k, DType multiply, bool& k_major, int64_t& leading,
                    int64_t& stride, std::string* why) {
  const auto refuse = [&](const char* text) {
    *why = text;
    return false;
  };
  const auto element = static_cast<int64_t>(size_of(multiply));
  if (o.form != Form::kMatrix) return refuse("an operand is no matrix in memory");
  if (o.dtype != multiply) return refuse("an operand is converted on its way");
  if (o.batch.size() > 1) return refuse("batches have several strides");
  k_major = o.k == 1 || (k == 1 && o.row != 1);
  if (!k_major && o.row != 1 && rows != 1) return refuse("an operand is contiguous along neither of its dimensions");
  if (!k_major && element != 2) return refuse("operands of this type are read along k only");
  leading = k_major ? o.row : o.k;
  const int64_t row = k_major ? k : rows, lines = k_major ? rows : k;
  if (lines == 1) leading = (row * element + kCopyBytes - 1) / kCopyBytes * kCopyBytes / element;
  if (leading < row) return refuse("rows of an operand overlap");
  stride = o.batch.empty() ? 0 : o.batch[0].second;
  if (!o.batch.empty() && stride == 0) return refuse("one operand serves all batches");
  if (stride < 0) return refuse("batches in descending order");
  const bool repack = needs_repack(multiply, leading, stride, o.batch.empty() ? 1 : o.batch[0].first);
  if (repack || o.offset * element % kCopyBytes != 0) {
    return refuse("rows of an operand do not begin at multiples of 16 bytes");
  }
  return true;
}

}  // namespace

std::optional<std::array<int64_t, 4>> affine_place(const Epilogue& e, const Index& at) {
  std::array<int64_t, 4> place = {0, 0, 0, at.constant};
  int64_t outer = 0, inner = 0;
  for (const auto& [id, coefficient] : at.terms) {
    const Atom& atom = e.pool.indices.atom(id);
    if (atom.kind != Atom::Kind::kVar) return std::nullopt;
    if (atom.id == e.batch) place[0] += coefficient;
    if (atom.id == e.row) place[1] += coefficient;
    if (atom.id == e.col) inner += coefficient;
    if (atom.id == e.col_outer) outer += coefficient;
  }
  if (e.pool.indices.extent(e.col_outer) > 1 && outer != inner * e.split) return std::nullopt;
  place[2] = inner;
  return place;
}

DType cuda_accumulator(const CudaGemmDesc& d) {
  if (size_of(d.multiply_a) == 1) return DType::kI32;
  return size_of(d.multiply_a) == 2 ? DType::kF32 : d.multiply_a;
}

int64_t cuda_shared_bytes(const CudaGemmDesc& d, const Config& c) {
  const auto element = static_cast<int>(size_of(d.multiply_a));
  const auto i = [](int64_t x) { return static_cast<int>(x); };
  if (c.algorithm == "simt") {
    return tile::gemm_simt_shared_bytes(i(c.tile_m), i(c.tile_n), i(c.tile_k), element, i(c.stages));
  }
  return tile::gemm_sm80_shared_bytes(i(c.tile_m), i(c.tile_n), i(c.tile_k) * element, i(c.stages), i(c.micro_m),
                                      i(c.micro_n));
}

double cuda_peak(const ContractionDesc& desc, const CudaTarget& target) {
  constexpr double kThread = 256;
  const auto* gemm = std::get_if<CudaGemmDesc>(&desc.problem);
  const double rate = gemm != nullptr ? rate_of(*gemm, target.sm == 90) : kThread;
  return rate * kClockGhz * 1e9 * target.sms;
}

std::optional<CudaGemmProblem> sm90_problem(const CudaGemmDesc& d, const Epilogue& epilogue,
                                            const std::vector<Operand>& operands, std::string* why) {
  const auto refuse = [&](std::string text) {
    *why = std::move(text);
    return std::nullopt;
  };
  if (!is_tensor(d) || d.multiply_a != d.multiply_b || d.multiply_a == DType::kU8) {
    return refuse(fmt::format("no wgmma for {} and {}", to_string(d.multiply_a), to_string(d.multiply_b)));
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({d.m, d.n, d.k, d.batch}) > kMost) return refuse("a dimension beyond 2^31");
  CudaGemmProblem p;
  p.in = d.multiply_a;
  p.m = d.m, p.n = d.n, p.k = d.k, p.batch = d.batch;
  if (!read_by_copies(d.a, d.m, d.k, p.in, p.a_k_major, p.lda, p.stride_a, why) ||
      !read_by_copies(d.b, d.n, d.k, p.in, p.b_k_major, p.ldb, p.stride_b, why)) {
    return std::nullopt;
  }
  // The first result as a matrix; sums of integers stay exact only in an epilogue that stores them itself.
  const Epilogue::Store& store = epilogue.stores.front();
  const auto place = affine_place(epilogue, store.at);
  p.out = operands[store.operand].dtype;
  const bool fits = p.in == DType::kI8 ? p.out == DType::kI32 && epilogue.pool[store.value].kind == Expr::Kind::kLocal
                                       : p.out == DType::kF32 || p.out == DType::kF16 || p.out == DType::kBF16;
  const bool matrix = place && (*place)[3] == 0 && ((*place)[2] == 1 || d.n == 1) && ((*place)[1] >= d.n || d.m == 1) &&
                      ((*place)[0] >= (*place)[1] * d.m || d.batch == 1);
  p.epilogue_stores = !fits || !matrix;
  if (p.epilogue_stores) {
    p.out = p.in == DType::kI8 ? DType::kI32 : DType::kF32;
  } else {
    p.ldd = d.m == 1 ? 0 : (*place)[1];
    p.stride_d = d.batch == 1 ? 0 : (*place)[0];
  }
  return p.resolved();
}

CudaGemmConfig sm90_config(const Config& c, const CudaGemmProblem& problem) {
  CudaGemmConfig g;
  g.tile_m = static_cast<int>(c.tile_m), g.tile_n = static_cast<int>(c.tile_n);
  g.consumers = static_cast<int>(c.micro_m);
  g.stages = static_cast<int>(c.stages), g.splits = static_cast<int>(c.splits);
  g.cluster_m = static_cast<int>(c.cluster_m), g.cluster_n = static_cast<int>(c.cluster_n);
  g.ping_pong = c.ping_pong, g.swapped = c.swapped;
  g.store = store_of(problem, g.splits, g.swapped);
  return g;
}

std::vector<CudaCandidate> cuda_candidates(const CudaGemmDesc& desc, const Epilogue& epilogue,
                                           const std::vector<Operand>& operands, const Target& target) {
  std::vector<CudaCandidate> found;
  add_sm90_family(found, desc, epilogue, operands, target.cuda);
  add_threads_family(found, desc, bytes_of(desc, operands), target.cuda);
  std::stable_sort(found.begin(), found.end(), [](const CudaCandidate& a, const CudaCandidate& b) {
    if (a.rejected.empty() != b.rejected.empty()) return a.rejected.empty();
    return a.predicted_us < b.predicted_us;
  });
  for (CudaCandidate& c : found) c.config.reason = fmt::format("{:.1f} us predicted", c.predicted_us);
  return found;
}

namespace {

std::string operand_text(const CudaOperand& o) {
  if (o.form == Form::kComputed) return "computed";
  std::string text(to_string(o.dtype));
  if (o.form == Form::kImage) {
    const tile::GemmImageArgs& i = o.image;
    return text + fmt::format(" image {}x{}x{}x{} window {}x{}x{} stride {}x{}x{}", i.size[0], i.size[1], i.size[2],
                              i.channels, i.window[0], i.window[1], i.window[2], i.stride[0], i.stride[1], i.stride[2]);
  }
  return text + fmt::format("[{},{}]", o.row, o.k);
}

// What the speed depends on, for the tuner's database.
std::string problem_text(const CudaGemmDesc& d, const Epilogue& e, const std::vector<Operand>& operands) {
  std::string text = fmt::format("cuda gemm {}x{}x{}x{} {}{} a {} b {} ->", d.batch, d.m, d.n, d.k,
                                 to_string(d.multiply_a), d.tf32 ? " tf32" : "", operand_text(d.a), operand_text(d.b));
  for (const Epilogue::Store& store : e.stores) text += fmt::format(" {}", to_string(operands[store.operand].dtype));
  return text + fmt::format(" expressions {}", e.pool.size());
}

}  // namespace

ScheduledGroup finish_cuda_gemm(ContractionBuilder& builder, CudaGemmDesc desc, std::string label, double operations) {
  const Epilogue& epilogue = builder.desc().epilogue;
  const auto all = [&] { return cuda_candidates(desc, epilogue, builder.operands(), builder.target()); };
  const auto runnable = [&] {
    std::vector<Config> configs;
    for (const CudaCandidate& c : all()) {
      if (c.rejected.empty()) configs.push_back(c.config);
    }
    return configs;
  };
  const Config config = choose_config(builder.configs(), problem_text(desc, epilogue, builder.operands()), runnable);
  label += builder.epilogue_label();
  ScheduledGroup result;
  std::string note = fmt::format("{}: {}, {}", label, name_of(config), config.reason);
  if (config.algorithm != "sm90") {
    std::string why = "the device is older";
    const bool possible =
        builder.target().cuda.sm == 90 && sm90_problem(desc, epilogue, builder.operands(), &why).has_value();
    note += possible ? "; wgmma is slower by the model" : "; no wgmma: " + why;
  }
  result.notes.push_back(std::move(note));
  builder.desc().problem = std::move(desc);
  result.kernels.push_back(builder.finish(config, std::move(label), operations));
  return result;
}

}  // namespace heddle::schedule
