#include "schedule/recurrence/mapping.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/divide.h"
#include "ir/reference/array.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

// What a block needs besides weights, and how its time in a step comes about.
struct Load {
  int64_t weights = 0;       // of a thread
  int64_t most_sums = 0;     // of a thread in a phase, for all rows
  int64_t vector_bytes = 0;  // of a block, with barriers
  double issue = 0;          // cycles of a step in which the SM is busy
  double latency = 0;        // cycles of a step
};

// Of the gates of a row, and of an elementary function or division.
constexpr double kGateInstructions = 40, kFunctionInstructions = 25;

int functions_of(const ExprPool& pool, const RecurrentPhase& phase) {
  int count = 0;
  ExprWalk walk(pool);
  for (const RecurrentResult& result : phase.results) {
    walk.run(result.value, [&](ExprId id) {
      const Expr& e = pool[id];
      count += e.kind == Expr::Kind::kRandom || (e.kind == Expr::Kind::kOp && ir::cost_of(e.op).f32 > 1);
      return true;
    });
  }
  return count;
}

Load load_of(const RecurrentDesc& d, const RecurrentMapping& m, const GpuTarget& target) {
  const auto& model = target.model.recurrent;
  Load load;
  const double warps = m.threads / 32.0, schedulers = std::min(warps, 4.0);
  for (const RecurrentVector& v : d.vectors) load.vector_bytes += m.vector_bytes(v.length);
  load.vector_bytes += static_cast<int64_t>(d.phases.size()) * 16;
  for (const RecurrentPhase& phase : d.phases) {
    int64_t sums = 0;
    double chain = 0, issue = 0;
    for (const RecurrentProduct& p : phase.products) {
      const auto count = static_cast<int64_t>(p.sums.size());
      const int64_t length = d.vectors[p.vector].length, share = m.share(length);
      sums += count * m.rows;
      load.weights += share * count;
      const auto fmas = static_cast<double>(share * count * m.rows);
      issue += fmas * warps / schedulers;
      issue += static_cast<double>(share / m.width(length) * m.rows) * warps *
               std::max(1.0, m.lanes * m.width(length) / 32.0);
      if (!m.registers) issue += static_cast<double>(share * count) * warps;
      chain += std::max(4.0 * static_cast<double>(share), fmas) + model.load_cycles;
    }
    load.most_sums = std::max(load.most_sums, sums);
    double shuffles = 0;
    int64_t rows = m.rows;
    for (int distance = m.lanes / 2; distance > 0; distance /= 2) {
      if (rows > 1) rows /= 2;
      const double each = static_cast<double>(rows * sums / m.rows);
      shuffles += each;
      chain += sums > 0 ? model.shuffle_cycles + 2 * each : 0;
    }
    issue += 2 * shuffles * warps / schedulers;
    const int functions = functions_of(d.pool, phase);
    const double owned = std::max(1.0, static_cast<double>(m.rows) / m.lanes);
    const double gates = model.gates_cycles + model.function_cycles * functions;
    issue += (kGateInstructions + kFunctionInstructions * functions) * owned * warps / schedulers;
    chain += gates * std::max(1.0, owned * 0.5);
    const bool sends = std::any_of(phase.results.begin(), phase.results.end(),
                                   [](const RecurrentResult& r) { return !r.vectors.empty(); });
    if (sends) chain += m.cluster > 1 ? model.cluster_cycles : model.barrier_cycles;
    load.issue += issue;
    load.latency += std::max(chain, issue + (sends && m.cluster > 1 ? model.cluster_cycles : 0));
  }
  return load;
}

// The mapping with its memory and time, if it fits.
std::optional<RecurrentMapping> complete(const RecurrentDesc& d, RecurrentMapping m, int loops,
                                         const GpuTarget& target) {
  constexpr int kMostThreads = 1024, kBaseRegisters = 56, kMostRegisters = 255;
  constexpr int64_t kMostUnrolled = 2048;  // multiplications of a thread in the text
  int64_t teams = 1;
  for (const RecurrentPhase& phase : d.phases) teams = std::max<int64_t>(teams, m.units(phase.units));
  if (teams * m.lanes > kMostThreads) return std::nullopt;
  m.threads = static_cast<int>(ceil_div(teams * m.lanes, 32) * 32);
  const int64_t owned = std::max(m.rows / m.lanes, 1);
  Load load = load_of(d, m, target);
  const int64_t registers = kBaseRegisters + load.weights + 2 * load.most_sums + owned * 12;
  const int64_t most = std::min<int64_t>(kMostRegisters, target.registers_per_sm / m.threads / 8 * 8);
  m.registers = registers <= most && load.weights * m.rows <= kMostUnrolled;
  int64_t used = registers;
  m.shared_bytes = load.vector_bytes;
  if (!m.registers) {
    m.shared_bytes += load.weights * m.threads * 4;
    used = registers - load.weights;
    load = load_of(d, m, target);
  }
  if (m.shared_bytes > target.shared_bytes_per_block || used > most) return std::nullopt;
  const double blocks = static_cast<double>(loops * d.clusters_of(m) * m.cluster);
  const double each = std::ceil(blocks / target.sms);
  const double resident = std::max(
      1.0, std::floor(std::min(
               {2048.0 / m.threads, target.registers_per_sm / static_cast<double>(used * m.threads),
                static_cast<double>(target.shared_bytes_per_block) / static_cast<double>(m.shared_bytes + 1024)})));
  const double turns = std::ceil(each / resident);
  const double together = std::min(each, resident);
  m.step_us = turns * std::max(load.latency, together * load.issue) / (target.model.recurrent.clock_ghz * 1e3);
  return m;
}

}  // namespace

int RecurrentMapping::width(int64_t length) const {
  for (const int width : {4, 2}) {
    // Padding costs more than wide loads save.
    if (length % (int64_t{width} * lanes) == 0) return width;
  }
  return 1;
}

int RecurrentMapping::share(int64_t length) const {
  const int64_t piece = int64_t{width(length)} * lanes;
  return static_cast<int>((length + piece - 1) / piece * width(length));
}

std::optional<RecurrentMapping> map_recurrence(const RecurrentDesc& desc, int loops, const GpuTarget& target,
                                               std::string* why) {
  std::optional<RecurrentMapping> best;
  constexpr int kPortableCluster = 8;
  const int most_cluster = target.has_clusters() ? std::min(kPortableCluster, target.sms) : 1;
  for (int cluster = 1; cluster <= most_cluster; cluster *= 2) {
    for (int rows = 1; rows <= 16; rows *= 2) {
      if (rows > 1 && rows / 2 >= desc.rows) continue;
      for (int lanes = 1; lanes <= 32; lanes *= 2) {
        RecurrentMapping m;
        m.cluster = cluster, m.rows = rows, m.lanes = lanes;
        const auto made = complete(desc, m, loops, target);
        if (made && (!best || made->step_us < 0.98 * best->step_us)) best = made;
      }
    }
  }
  if (!best) *why = "its weights do not fit on the chip";
  return best;
}

Tensor pack_shares(const RecurrentDesc& desc, const RecurrentPhase& phase, const RecurrentProduct& product) {
  const RecurrentMapping& m = desc.mapping;
  const int64_t length = desc.vectors[product.vector].length;
  const int64_t share = m.share(length), width = m.width(length), units = m.units(phase.units);
  const auto sums = static_cast<int64_t>(product.sums.size());
  Tensor packed(DType::kF32, {m.cluster, share, sums, m.threads});
  float* to = packed.mutable_values<float>().data();
  // Sums may share a matrix. Different views of one storage may begin at the same address.
  std::map<std::tuple<const void*, size_t, DType>, ir::Array> matrices;
  for (int64_t s = 0; s < sums; ++s) {
    const RecurrentSum& sum = product.sums[static_cast<size_t>(s)];
    const Tensor& of = sum.matrix;
    const auto [found, fresh] = matrices.try_emplace({of.data(), of.bytes(), of.dtype()});
    if (fresh) found->second = ir::to_array(sum.matrix);
    const std::vector<double>& matrix = found->second.f();
    const int64_t row = sum.transposed ? 1 : sum.matrix.shape()[1], column = sum.transposed ? length : 1;
    for (int64_t block = 0; block < m.cluster; ++block) {
      for (int64_t i = 0; i < share; ++i) {
        for (int64_t thread = 0; thread < m.threads; ++thread) {
          const int64_t team = thread / m.lanes, lane = thread % m.lanes, unit = block * units + team;
          const int64_t k = (i / width * m.lanes + lane) * width + i % width;
          if (team >= units || unit >= phase.units || k >= length) continue;
          const double value = matrix[static_cast<size_t>(k * row + (unit + sum.offset) * column)];
          to[((block * share + i) * sums + s) * m.threads + thread] = static_cast<float>(value);
        }
      }
    }
  }
  return packed;
}

}  // namespace heddle::schedule
