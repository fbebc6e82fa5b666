#include <algorithm>

#include "base/check.h"
#include "schedule/contraction_builder.h"
#include "schedule/packing.h"

namespace heddle::schedule {
namespace {

// A dimension of the problem with the strides of both operands (0 where an operand does not have it).
struct Dim {
  int64_t extent, a, b;
};

struct Problem {
  std::vector<Dim> batch, m, n, k;
  bool a_affine = true, b_affine = true;  // else its strides are void
  int64_t a_offset = 0, b_offset = 0;
};

// The operands of the dot by their dimensions: for each operand, which of its dimensions each loop of the problem is.
struct Roles {
  std::vector<int64_t> batch[2], free[2], contract[2];
};

Roles roles_of(const ir::Graph& graph, const ir::Node& node) {
  Roles r;
  const char* names[2][2] = {{"lhs_batch", "lhs_contract"}, {"rhs_batch", "rhs_contract"}};
  for (size_t side = 0; side < 2; ++side) {
    r.batch[side] = node.attrs.ints(names[side][0]);
    r.contract[side] = node.attrs.ints(names[side][1]);
    const auto has = [](const std::vector<int64_t>& list, int64_t d) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    const auto rank = static_cast<int64_t>(graph.shape(node.inputs[side]).size());
    for (int64_t d = 0; d < rank; ++d) {
      if (!has(r.batch[side], d) && !has(r.contract[side], d)) r.free[side].push_back(d);
    }
  }
  return r;
}

Shape pick(const Shape& shape, const std::vector<int64_t>& dims) {
  Shape result;
  for (int64_t d : dims) result.push_back(shape[static_cast<size_t>(d)]);
  return result;
}

// Joins neighbouring dimensions that are one for both operands; drops those of extent 1.
void collapse(std::vector<Dim>& dims, bool a_affine, bool b_affine) {
  std::vector<Dim> result;
  for (const Dim& d : dims) {
    if (d.extent == 1) continue;
    if (!result.empty()) {
      Dim& outer = result.back();
      if ((!a_affine || outer.a == d.a * d.extent) && (!b_affine || outer.b == d.b * d.extent)) {
        outer = {outer.extent * d.extent, d.a, d.b};
        continue;
      }
    }
    result.push_back(d);
  }
  dims = std::move(result);
}

Problem make_problem(const ir::Graph& graph, const ir::Node& node, const Roles& r, const View& a, const View& b) {
  Problem p;
  p.a_affine = a.affine, p.b_affine = b.affine;
  p.a_offset = a.offset, p.b_offset = b.offset;
  const Shape& lhs = graph.shape(node.inputs[0]);
  const Shape& rhs = graph.shape(node.inputs[1]);
  const auto stride = [](const View& v, int64_t d) { return v.affine ? v.strides[static_cast<size_t>(d)] : 0; };
  for (size_t i = 0; i < r.batch[0].size(); ++i) {
    p.batch.push_back({lhs[static_cast<size_t>(r.batch[0][i])], stride(a, r.batch[0][i]), stride(b, r.batch[1][i])});
  }
  for (int64_t d : r.free[0]) p.m.push_back({lhs[static_cast<size_t>(d)], stride(a, d), 0});
  for (int64_t d : r.free[1]) p.n.push_back({rhs[static_cast<size_t>(d)], 0, stride(b, d)});
  for (size_t i = 0; i < r.contract[0].size(); ++i) {
    p.k.push_back(
        {lhs[static_cast<size_t>(r.contract[0][i])], stride(a, r.contract[0][i]), stride(b, r.contract[1][i])});
  }
  // The order of the terms of a sum is free: outermost first in the memory of B.
  std::stable_sort(p.k.begin(), p.k.end(), [](const Dim& x, const Dim& y) { return x.b > y.b; });
  return p;
}

int64_t count(const std::vector<Dim>& dims) {
  int64_t n = 1;
  for (const Dim& d : dims) n *= d.extent;
  return n;
}

std::vector<Index> concat(std::vector<Index> a, const std::vector<Index>& b, const std::vector<Index>& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// Scatters indices given by role to the dimensions of an operand.
std::vector<Index> operand_index(const Roles& r, size_t side, const std::vector<Index>& batch,
                                 const std::vector<Index>& free, const std::vector<Index>& contract) {
  std::vector<Index> at(batch.size() + free.size() + contract.size());
  for (size_t i = 0; i < batch.size(); ++i) at[static_cast<size_t>(r.batch[side][i])] = batch[i];
  for (size_t i = 0; i < free.size(); ++i) at[static_cast<size_t>(r.free[side][i])] = free[i];
  for (size_t i = 0; i < contract.size(); ++i) at[static_cast<size_t>(r.contract[side][i])] = contract[i];
  return at;
}

class DotScheduler {
 public:
  explicit DotScheduler(ContractionBuilder& builder)
      : builder_(builder), graph_(builder.graph()), node_(builder.anchor()), roles_(roles_of(graph_, node_)) {}

  ScheduledGroup run() {
    View views[2] = {builder_.view_of(node_.inputs[0]), builder_.view_of(node_.inputs[1])};
    lhs_ = graph_.shape(node_.inputs[0]), rhs_ = graph_.shape(node_.inputs[1]);
    Problem p = make_problem(graph_, node_, roles_, views[0], views[1]);
    // Few columns and many rows: the transposed product has its lanes along the rows.
    swapped_ = count(p.n) < 16 && count(p.m) > count(p.n);
    if (swapped_) {
      std::swap(p.m, p.n);
      for (auto* dims : {&p.batch, &p.m, &p.n, &p.k}) {
        for (Dim& d : *dims) std::swap(d.a, d.b);
      }
      std::swap(p.a_affine, p.b_affine);
      std::swap(p.a_offset, p.b_offset);
      std::swap(views[0], views[1]);
    }
    fold_batches(p);
    collapse(p.batch, p.a_affine, p.b_affine);
    collapse(p.m, p.a_affine, true);
    collapse(p.n, true, p.b_affine);
    collapse(p.k, p.a_affine, p.b_affine);
    const bool loops = p.k.size() > 1 || p.batch.size() > tile::kBatchDims;
    GemmDesc desc;
    set_shape(desc.shape, p, loops);
    const DType compute = *contraction_compute(graph_.dtype(node_.inputs[0]), graph_.dtype(node_.inputs[1]),
                                               graph_.dtype(node_.outputs[0]));
    builder_.desc().compute = compute;
    const Config config = choose_config(builder_.configs(), problem_text(desc.shape, compute, p, views, loops),
                                        [&] { return gemm_candidates(desc, compute, builder_.target()); });
    const int64_t width = config.micro_n;
    make_a(desc, p, views[0], compute, width, loops);
    make_b(desc, p, views[1], width, loops);
    make_epilogue(desc.shape, compute);
    const tile::GemmShape& s = desc.shape;
    const double flops = 2.0 * static_cast<double>(s.batches()) * static_cast<double>(s.m) * static_cast<double>(s.n) *
                         static_cast<double>(s.k);
    const std::string label = fmt::format("gemm {}{}x{}x{}{}", s.batches() > 1 ? fmt::format("{}x", s.batches()) : "",
                                          s.m, s.n, s.k, builder_.epilogue_label());
    builder_.desc().problem = std::move(desc);
    ScheduledGroup result;
    result.notes.push_back(label + ": " + config.reason);
    result.kernels.push_back(builder_.finish(config, label, flops));
    return result;
  }

 private:
  // Batch dimensions that the weights do not have become rows, where the rows stay one stride apart.
  void fold_batches(Problem& p) {
    if (!p.a_affine || !p.b_affine || swapped_) return;
    while (!p.batch.empty() && p.batch.back().b == 0) {
      std::vector<Dim> rows = p.m;
      rows.insert(rows.begin(), p.batch.back());
      std::vector<Dim> joined = rows;
      collapse(joined, true, true);
      if (joined.size() > 1) return;
      p.m = std::move(rows);
      p.batch.pop_back();
      ++folded_;
    }
  }

  std::string problem_text(const tile::GemmShape& s, DType compute, const Problem& p, const View (&views)[2],
                           bool loops) const {
    const auto dim = [](const std::vector<Dim>& dims) { return dims.empty() ? Dim{1, 0, 0} : dims[0]; };
    std::string a = "computed", b = "computed";
    if (p.a_affine && p.m.size() <= 1 && !loops) a = gemm_operand_text(graph_, views[0].value, dim(p.m).a, dim(p.k).a);
    if (p.b_affine && p.n.size() <= 1 && !loops) b = gemm_operand_text(graph_, views[1].value, dim(p.k).b, dim(p.n).b);
    return gemm_problem_text(s, compute, a, b);
  }

  void set_shape(tile::GemmShape& s, const Problem& p, bool loops) {
    s.m = count(p.m), s.n = count(p.n), s.k = count(p.k);
    if (loops) {
      s.batch[tile::kBatchDims - 1] = count(p.batch);
      return;
    }
    const size_t first = tile::kBatchDims - p.batch.size();
    for (size_t i = 0; i < p.batch.size(); ++i) s.batch[first + i] = p.batch[i].extent;
  }

  size_t a_side() const { return swapped_ ? 1 : 0; }

  // The indices of the batch dimensions; folded ones follow from the row (or do not matter: B does not have them).
  std::vector<Index> batch_index(IndexPool& pool, const Index& batch, const Index* row) const {
    Shape shape = pick(lhs_, roles_.batch[0]);
    const Shape folded(shape.end() - static_cast<int64_t>(folded_), shape.end());
    shape.resize(shape.size() - folded_);
    std::vector<Index> at = pool.delinear(batch, shape);
    if (folded_ == 0) return at;
    const int64_t rows = element_count(pick(lhs_, roles_.free[0]));
    const std::vector<Index> rest = pool.delinear(row ? pool.div(*row, rows) : IndexPool::constant(0), folded);
    at.insert(at.end(), rest.begin(), rest.end());
    return at;
  }
  std::vector<Index> row_index(IndexPool& pool, const Index& row) const {
    const Shape free = pick(a_side() == 0 ? lhs_ : rhs_, roles_.free[a_side()]);
    return pool.delinear(folded_ > 0 ? pool.mod(row, element_count(free)) : row, free);
  }
  std::vector<Index> column_index(IndexPool& pool, const Index& column) const {
    return pool.delinear(column, pick(a_side() == 0 ? rhs_ : lhs_, roles_.free[1 - a_side()]));
  }

  // An operand as an expression of its loops: (batch, row, k) or (batch, k, column).
  void compute(GemmDesc& desc, GemmOperand& operand, bool is_a) {
    IndexPool& pool = desc.pool.indices;
    const tile::GemmShape& s = desc.shape;
    operand.form = GemmOperand::Form::kComputed;
    const int64_t extents[3] = {s.batches(), is_a ? s.m : s.k, is_a ? s.k : s.n};
    std::vector<Index> loops;
    for (size_t i = 0; i < 3; ++i) {
      operand.vars[i] = pool.new_var(std::max<int64_t>(extents[i], 1));
      loops.push_back(pool.var(operand.vars[i]));
    }
    const Index& k = loops[is_a ? 2 : 1];
    const size_t side = is_a ? a_side() : 1 - a_side();
    const std::vector<Index> free = is_a ? row_index(pool, loops[1]) : column_index(pool, loops[2]);
    Shape terms = pick(lhs_, roles_.contract[0]);
    for (int64_t& extent : terms) extent = std::max<int64_t>(extent, 1);
    const std::vector<Index> contract = pool.delinear(k, terms);
    const std::vector<Index> batch = batch_index(pool, loops[0], is_a ? &loops[1] : nullptr);
    operand.element = builder_.inline_operand(desc.pool, node_.inputs[side],
                                              operand_index(roles_, side, batch, free, contract), nullptr);
  }

  void set_strides(GemmOperand& operand, const Problem& p, bool is_a) {
    const size_t first = tile::kBatchDims - p.batch.size();
    for (size_t i = 0; i < p.batch.size(); ++i) operand.batch[first + i] = is_a ? p.batch[i].a : p.batch[i].b;
    operand.offset = is_a ? p.a_offset : p.b_offset;
    const int64_t k = p.k.empty() ? 1 : is_a ? p.k[0].a : p.k[0].b;
    operand.row = is_a ? (p.m.empty() ? 0 : p.m[0].a) : k;
    operand.col = is_a ? k : (p.n.empty() ? 1 : p.n[0].b);
  }

  void make_a(GemmDesc& desc, const Problem& p, const View& view, DType compute_dtype, int64_t width, bool loops) {
    if (!p.a_affine || p.m.size() > 1 || loops) return compute(desc, desc.a, true);
    set_strides(desc.a, p, true);
    desc.a.dtype = graph_.dtype(view.value);
    desc.a.operand = builder_.input(view.value);
    const int64_t element = static_cast<int64_t>(size_of(compute_dtype));
    const int64_t rows = tile::split_rows(desc.shape.m, micro_limits(builder_.target()).rows).mr;
    const bool collide = tile::rows_collide(desc.a.row * element, rows) && desc.shape.n > width;
    const bool in_place = desc.a.dtype == compute_dtype && desc.a.col == 1 && !collide;
    desc.a.form = in_place ? GemmOperand::Form::kDirect : GemmOperand::Form::kCopied;
  }

  void make_b(GemmDesc& desc, const Problem& p, const View& view, int64_t width, bool loops) {
    if (!p.b_affine || p.n.size() > 1 || loops) return compute(desc, desc.b, false);
    set_strides(desc.b, p, false);
    desc.b.dtype = graph_.dtype(view.value);
    desc.b.form = GemmOperand::Form::kCopied;
    std::vector<size_t> batched;
    for (size_t d = 0; d < tile::kBatchDims; ++d) {
      if (desc.b.batch[d] != 0) batched.push_back(d);
    }
    if (graph_.constant_of(view.value) == nullptr || batched.size() > 1) {
      desc.b.operand = builder_.input(view.value);
      return;
    }
    tile::PanelSource source{1, 0, 1, 0, desc.shape.k, desc.b.row, desc.shape.n, desc.b.col};
    if (!batched.empty()) {
      source.groups = desc.shape.batch[batched[0]], source.group_stride = desc.b.batch[batched[0]];
      desc.b.batch[batched[0]] = tile::packed_elements(source, width) / std::max<int64_t>(source.groups, 1);
    }
    desc.b.form = GemmOperand::Form::kPacked;
    desc.b.operand = builder_.input(view.value, panel_packing(source, desc.b.offset, width));
    desc.b.offset = 0;
  }

  void make_epilogue(const tile::GemmShape& s, DType compute_dtype) {
    const int64_t lanes = micro_limits(builder_.target()).vector_bytes / static_cast<int64_t>(size_of(compute_dtype));
    builder_.make_epilogue(
        s.batches(), s.m, s.n, lanes,
        [this](IndexPool& pool, const Index& batch, const Index& row, const Index& column) -> std::vector<Index> {
          const std::vector<Index> rows = row_index(pool, row), columns = column_index(pool, column);
          const std::vector<Index> batches = batch_index(pool, batch, &row);
          return swapped_ ? concat(batches, columns, rows) : concat(batches, rows, columns);
        });
  }

  ContractionBuilder& builder_;
  const ir::Graph& graph_;
  const ir::Node& node_;
  Roles roles_;
  Shape lhs_, rhs_;
  bool swapped_ = false;
  size_t folded_ = 0;  // innermost batch dimensions that became rows
};

}  // namespace

ScheduledGroup schedule_dot(ContractionBuilder& builder) {
  return DotScheduler(builder).run();
}

}  // namespace heddle::schedule
