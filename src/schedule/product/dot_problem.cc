#include "schedule/product/dot_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace heddle::schedule {
namespace {

// Joins neighbouring dimensions that are one for both operands; drops those of extent 1.
void collapse(std::vector<DotDim>& dims, bool a_affine, bool b_affine) {
  std::vector<DotDim> result;
  for (const DotDim& d : dims) {
    if (d.extent == 1) continue;
    if (!result.empty()) {
      DotDim& outer = result.back();
      if ((!a_affine || outer.a == d.a * d.extent) && (!b_affine || outer.b == d.b * d.extent)) {
        outer = {outer.extent * d.extent, d.a, d.b};
        continue;
      }
    }
    result.push_back(d);
  }
  dims = std::move(result);
}

}  // namespace

DotProblem::Roles DotProblem::roles_of(const ir::Graph& graph, const ir::Node& node) {
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

DotProblem::DotProblem(ContractionBuilder& builder, bool allow_swap)
    : a_view(builder.view_of(builder.anchor().inputs[0])),
      b_view(builder.view_of(builder.anchor().inputs[1])),
      builder_(builder),
      node_(builder.anchor()),
      roles_(roles_of(builder.graph(), builder.anchor())) {
  make_dims();
  a_affine = a_view.affine, b_affine = b_view.affine;
  swapped = allow_swap && count(n) < 16 && count(m) > count(n);
  if (swapped) {
    std::swap(m, n);
    for (auto* dims : {&batch, &m, &n, &k}) {
      for (DotDim& d : *dims) std::swap(d.a, d.b);
    }
    std::swap(a_affine, b_affine);
    std::swap(a_view, b_view);
  }
  fold_batches();
  collapse(batch, a_affine, b_affine);
  collapse(m, a_affine, true);
  collapse(n, true, b_affine);
  collapse(k, a_affine, b_affine);
}

const Shape& DotProblem::shape_of(size_t side) const {
  return builder_.graph().shape(node_.inputs[side]);
}

Shape DotProblem::pick(size_t side, const std::vector<int64_t>& dims) const {
  Shape result;
  for (int64_t d : dims) result.push_back(shape_of(side)[static_cast<size_t>(d)]);
  return result;
}

void DotProblem::make_dims() {
  const Shape &lhs = shape_of(0), &rhs = shape_of(1);
  const auto stride = [](const View& v, int64_t d) { return v.affine ? v.strides[static_cast<size_t>(d)] : 0; };
  // The order of the terms of a sum is free: outermost first in the memory of B.
  std::vector<size_t> order(roles_.contract[0].size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return stride(b_view, roles_.contract[1][x]) > stride(b_view, roles_.contract[1][y]);
  });
  for (auto& contract : roles_.contract) {
    const std::vector<int64_t> given = contract;
    for (size_t i = 0; i < order.size(); ++i) contract[i] = given[order[i]];
  }
  const Roles& r = roles_;
  for (size_t i = 0; i < r.batch[0].size(); ++i) {
    batch.push_back(
        {lhs[static_cast<size_t>(r.batch[0][i])], stride(a_view, r.batch[0][i]), stride(b_view, r.batch[1][i])});
  }
  for (int64_t d : r.free[0]) m.push_back({lhs[static_cast<size_t>(d)], stride(a_view, d), 0});
  for (int64_t d : r.free[1]) n.push_back({rhs[static_cast<size_t>(d)], 0, stride(b_view, d)});
  for (size_t i = 0; i < r.contract[0].size(); ++i) {
    k.push_back({lhs[static_cast<size_t>(r.contract[0][i])], stride(a_view, r.contract[0][i]),
                 stride(b_view, r.contract[1][i])});
  }
}

void DotProblem::fold_batches() {
  if (!a_affine || !b_affine || swapped) return;
  while (!batch.empty() && batch.back().b == 0) {
    std::vector<DotDim> rows = m;
    rows.insert(rows.begin(), batch.back());
    std::vector<DotDim> joined = rows;
    collapse(joined, true, true);
    if (joined.size() > 1) return;
    m = std::move(rows);
    batch.pop_back();
    ++folded_;
  }
}

int64_t DotProblem::count(const std::vector<DotDim>& dims) {
  int64_t n = 1;
  for (const DotDim& d : dims) n *= d.extent;
  return n;
}

double DotProblem::operations() const {
  double product = 2;
  for (const auto* dims : {&batch, &m, &n, &k}) product *= static_cast<double>(count(*dims));
  return product;
}

std::string DotProblem::label() const {
  return fmt::format("gemm {}{}x{}x{}", count(batch) > 1 ? fmt::format("{}x", count(batch)) : "", count(m), count(n),
                     count(k));
}

// The indices of the batch dimensions; folded ones follow from the row (or do not matter: B does not have them).
std::vector<Index> DotProblem::batch_index(IndexPool& pool, const Index& at, const Index* row) const {
  Shape shape = pick(0, roles_.batch[0]);
  const Shape folded(shape.end() - static_cast<int64_t>(folded_), shape.end());
  shape.resize(shape.size() - folded_);
  std::vector<Index> result = pool.delinear(at, shape);
  if (folded_ == 0) return result;
  const int64_t rows = element_count(pick(0, roles_.free[0]));
  const std::vector<Index> rest = pool.delinear(row ? pool.div(*row, rows) : IndexPool::constant(0), folded);
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

// The indices of an operand's free dimensions at a row of A or a column of B.
std::vector<Index> DotProblem::line_index(IndexPool& pool, bool is_a, const Index& line) const {
  const size_t side = side_of(is_a);
  const Shape free = pick(side, roles_.free[side]);
  return pool.delinear(is_a && folded_ > 0 ? pool.mod(line, element_count(free)) : line, free);
}

ExprId DotProblem::element(ExprPool& pool, bool is_a, const Index& batch_at, const Index& line,
                           const Index& k_at) const {
  const size_t side = side_of(is_a);
  IndexPool& indices = pool.indices;
  Shape terms = pick(0, roles_.contract[0]);
  for (int64_t& extent : terms) extent = std::max<int64_t>(extent, 1);
  const std::vector<Index> contract = indices.delinear(k_at, terms), free = line_index(indices, is_a, line);
  const std::vector<Index> batches = batch_index(indices, batch_at, is_a ? &line : nullptr);
  std::vector<Index> at(shape_of(side).size());
  const auto scatter = [&](const std::vector<int64_t>& dims, const std::vector<Index>& from) {
    for (size_t i = 0; i < dims.size(); ++i) at[static_cast<size_t>(dims[i])] = from[i];
  };
  scatter(roles_.batch[side], batches);
  scatter(roles_.free[side], free);
  scatter(roles_.contract[side], contract);
  return builder_.inline_operand(pool, node_.inputs[side], at, nullptr);
}

std::vector<Index> DotProblem::coordinates(IndexPool& pool, const Index& batch_at, const Index& row,
                                           const Index& column) const {
  std::vector<Index> at = batch_index(pool, batch_at, &row);
  const std::vector<Index> rows = line_index(pool, true, row), columns = line_index(pool, false, column);
  const auto append = [&](const std::vector<Index>& more) { at.insert(at.end(), more.begin(), more.end()); };
  append(swapped ? columns : rows);
  append(swapped ? rows : columns);
  return at;
}

}  // namespace heddle::schedule
