#include "schedule/attention/pack_rows.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kFewRows = 64;  // of a warpgroup

// Rows are counted by `heads` first: of each of them there are `rows`.
void join(AttentionForm& form, int64_t heads, int64_t rows) {
  IndexPool& indices = form.scores.indices;
  const int64_t batches = form.batches();
  const VarId batch_var = indices.new_var(batches), row_var = indices.new_var(heads * rows);
  const auto batch_of = [=](IndexPool& pool, const Index& batch, const Index& row) {
    return pool.add(pool.scale(batch, heads), pool.div(row, rows));
  };
  const Index batch = indices.var(batch_var), row = indices.var(row_var);
  const std::map<VarId, Index> with = {{form.batch_var, batch_of(indices, batch, row)},
                                       {form.row_var, indices.mod(row, rows)}};
  form.softmax.score = form.scores.substitute(form.softmax.score, with, {});
  for (ExprId& sink : form.softmax.sinks) sink = form.scores.substitute(sink, with, {});
  form.batch_var = batch_var, form.row_var = row_var;
  form.result_at = [=, before = std::move(form.result_at)](IndexPool& pool, const Index& b, const Index& r,
                                                           const Index& column) {
    return before(pool, batch_of(pool, b, r), pool.mod(r, rows), column);
  };
}

}  // namespace

void pack_rows(AttentionForm& form) {
  while (form.rows < kFewRows) {
    while (!form.batch.empty() && form.batch.back().extent == 1) form.batch.pop_back();
    if (form.batch.empty()) return;
    const AttentionForm::Batch heads = form.batch.back();
    const bool in_line = form.rows == 1 || heads.q == form.rows * form.q.line;
    if (heads.k != 0 || heads.v != 0 || heads.table != 0 || !in_line) return;
    form.batch.pop_back();
    if (form.rows == 1) form.q.line = heads.q;
    join(form, heads.extent, form.rows);
    form.rows *= heads.extent;
  }
}

}  // namespace heddle::schedule
