#include "schedule/product/dot_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace heddle::schedule {
namespace {

// Joins neighbouring dimensions that are one for both operands; drops those of extent 1.
std::vector<DotDim> collapse(const std::vector<DotDim>& dims, bool a_affine, bool b_affine) {
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
  return result;
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

DotProblem::DotProblem(ContractionBuilder& builder, DotForm form)
    : a_view(builder.view_of(builder.anchor().inputs[form.swapped ? 1 : 0])),
      b_view(builder.view_of(builder.anchor().inputs[form.swapped ? 0 : 1])),
      swapped(form.swapped),
      builder_(builder),
      node_(builder.anchor()),
      roles_(roles_of(builder.graph(), builder.anchor())) {
  a_affine = a_view.affine && !has_packed_weights(builder, a_view.value);
  b_affine = b_view.affine;
  make_dims();
  if (form.lines == DotForm::Lines::kAll) {
    fold_batches();
  } else {
    spread(kRows, form.lines);
    spread(kColumns, form.lines);
  }
  batch = collapse(dims_of(loops_[kBatch]), a_affine, b_affine);
  m = collapse(dims_of(loops_[kRows]), a_affine, true);
  n = collapse(dims_of(loops_[kColumns]), true, b_affine);
  k = collapse(k, a_affine, b_affine);
}

const Shape& DotProblem::shape_of(size_t side) const {
  return builder_.graph().shape(node_.inputs[side]);
}

std::vector<DotDim> DotProblem::dims_of(const std::vector<size_t>& ids) const {
  std::vector<DotDim> dims;
  for (const size_t id : ids) dims.push_back(result_[id]);
  return dims;
}

void DotProblem::make_dims() {
  const View* views[2] = {swapped ? &b_view : &a_view, swapped ? &a_view : &b_view};
  const auto stride = [&](size_t side, int64_t d) {
    return views[side]->affine ? views[side]->strides[static_cast<size_t>(d)] : 0;
  };
  // The order of the terms of a sum is free: outermost first in the memory of the second operand.
  std::vector<size_t> order(roles_.contract[0].size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return stride(1, roles_.contract[1][x]) > stride(1, roles_.contract[1][y]);
  });
  for (auto& contract : roles_.contract) {
    const std::vector<int64_t> given = contract;
    for (size_t i = 0; i < order.size(); ++i) contract[i] = given[order[i]];
  }
  const auto dim = [&](int64_t extent, int64_t first, int64_t second) {
    return swapped ? DotDim{extent, second, first} : DotDim{extent, first, second};
  };
  const Roles& r = roles_;
  const auto add = [&](Loop loop, const DotDim& d) {
    loops_[loop].push_back(result_.size());
    result_.push_back(d);
  };
  for (size_t i = 0; i < r.batch[0].size(); ++i) {
    const int64_t d = r.batch[0][i];
    add(kBatch, dim(shape_of(0)[static_cast<size_t>(d)], stride(0, d), stride(1, r.batch[1][i])));
  }
  for (const int64_t d : r.free[0]) {
    add(swapped ? kColumns : kRows, dim(shape_of(0)[static_cast<size_t>(d)], stride(0, d), 0));
  }
  for (const int64_t d : r.free[1]) {
    add(swapped ? kRows : kColumns, dim(shape_of(1)[static_cast<size_t>(d)], 0, stride(1, d)));
  }
  for (size_t i = 0; i < r.contract[0].size(); ++i) {
    const int64_t d = r.contract[0][i];
    k.push_back(dim(shape_of(0)[static_cast<size_t>(d)], stride(0, d), stride(1, r.contract[1][i])));
  }
}

void DotProblem::fold_batches() {
  if (!a_affine || !b_affine || swapped) return;
  auto &batches = loops_[kBatch], &rows = loops_[kRows];
  while (!batches.empty() && result_[batches.back()].b == 0) {
    std::vector<size_t> joined = rows;
    joined.insert(joined.begin(), batches.back());
    if (collapse(dims_of(joined), true, true).size() > 1) return;
    rows = std::move(joined);
    batches.pop_back();
  }
}

void DotProblem::spread(Loop loop, DotForm::Lines lines) {
  std::vector<size_t>& ids = loops_[loop];
  const auto stays = [&](size_t first) {
    const std::vector<DotDim> dims = dims_of({ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end()});
    if (lines == DotForm::Lines::kOneStride) return collapse(dims, a_affine, b_affine).size() <= 1;
    return std::count_if(dims.begin(), dims.end(), [](const DotDim& d) { return d.extent != 1; }) <= 1;
  };
  size_t first = 0;
  while (!stays(first)) ++first;
  const auto kept = ids.begin() + static_cast<std::ptrdiff_t>(first);
  loops_[kBatch].insert(loops_[kBatch].end(), ids.begin(), kept);
  ids.erase(ids.begin(), kept);
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

// The indices of the result's dimensions that a loop runs over.
void DotProblem::place(IndexPool& pool, Loop loop, const Index& at, std::vector<Index>& to) const {
  Shape shape;
  for (const size_t id : loops_[loop]) shape.push_back(result_[id].extent);
  const std::vector<Index> indices = pool.delinear(at, shape);
  for (size_t i = 0; i < indices.size(); ++i) to[loops_[loop][i]] = indices[i];
}

ExprId DotProblem::element(ExprPool& pool, bool is_a, const Index& batch_at, const Index& line,
                           const Index& k_at) const {
  const size_t side = side_of(is_a), batches = roles_.batch[0].size();
  IndexPool& indices = pool.indices;
  // A dimension that the other operand's lines run over is none of this one's, or does not matter.
  std::vector<Index> result(result_.size());
  place(indices, kBatch, batch_at, result);
  place(indices, is_a ? kRows : kColumns, line, result);
  Shape terms;
  for (const int64_t d : roles_.contract[0]) {
    terms.push_back(std::max<int64_t>(shape_of(0)[static_cast<size_t>(d)], 1));
  }
  const std::vector<Index> contract = indices.delinear(k_at, terms);
  std::vector<Index> at(shape_of(side).size());
  const auto scatter = [&](const std::vector<int64_t>& dims, const Index* from) {
    for (const int64_t d : dims) at[static_cast<size_t>(d)] = *from++;
  };
  scatter(roles_.batch[side], result.data());
  scatter(roles_.free[side], result.data() + batches + (side == 1 ? roles_.free[0].size() : 0));
  scatter(roles_.contract[side], contract.data());
  return builder_.inline_operand(pool, node_.inputs[side], at, nullptr);
}

std::vector<Index> DotProblem::coordinates(IndexPool& pool, const Index& batch_at, const Index& row,
                                           const Index& column) const {
  std::vector<Index> at(result_.size());
  place(pool, kBatch, batch_at, at);
  place(pool, kRows, row, at);
  place(pool, kColumns, column, at);
  return at;
}

bool has_few_columns(const ir::Graph& graph, const ir::Node& dot) {
  constexpr int64_t kFew = 16;
  const auto lines = [&](size_t side, const char* batch, const char* contract) {
    int64_t count = 1;
    const Shape& shape = graph.shape(dot.inputs[side]);
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto is_in = [&](const char* name) {
        const auto& dims = dot.attrs.ints(name);
        return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
      };
      if (!is_in(batch) && !is_in(contract)) count *= shape[d];
    }
    return count;
  };
  const int64_t rows = lines(0, "lhs_batch", "lhs_contract"), columns = lines(1, "rhs_batch", "rhs_contract");
  return columns < kFew && rows > columns;
}

}  // namespace heddle::schedule
