#pragma once

#include "ir/ops/parallel.h"
#include "ir/schema.h"

namespace heddle::ir {

// Reference evaluation of elementwise ops.
std::vector<Array> eval_unary(const EvalContext& c);
std::vector<Array> eval_binary(const EvalContext& c);
std::vector<Array> eval_select(const EvalContext& c);
std::vector<Array> eval_cast(const EvalContext& c);
std::vector<Array> eval_bitcast(const EvalContext& c);

// Costs per element for parallel_for(): kCheap for a few instructions, kLibrary for a call into libm.
inline constexpr int64_t kCheap = 1, kLibrary = 16;

// Computes out[i] = f(in[i]...) on all threads. `cost` is the cost per element, as for parallel_for().
template <typename Out, typename F, typename... In>
void map_elements(std::vector<Out>& out, int64_t cost, const F& f, const std::vector<In>&... in) {
  parallel_for(static_cast<int64_t>(out.size()), cost, [&](int64_t begin, int64_t end) {
    Out* to = out.data();
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<Out>(f(in.data()[i]...));
  });
}

}  // namespace heddle::ir
