#include <algorithm>

#include "codegen/region/cuda/sweep.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {

using schedule::CachedValue;
using schedule::CudaStage;
using schedule::ExprId;
using schedule::Store;

// ---- What threads keep in shared memory

// The slot of this step of this thread.
std::string CudaSweepWriter::place_of(const CudaStage& stage, const CachedValue& k) const {
  const std::string step = steps(stage.layout) == 1 ? "0" : product("k", std::min(stage.layout.active, body_.threads));
  const std::string slot = product(sum(step, body_.cta_group > 1 ? "own" : "lane"), stage.layout.vector);
  return sum(emitter_.names().buffers[k.buffer], slot);
}

// Values that lie in shared memory are loaded where they are used.
void CudaSweepWriter::name_keeps(const CudaStage& stage) {
  std::set<uint32_t> used;
  schedule::ExprWalk walk(body_.pool);
  for (const ExprId root : stage.roots()) {
    walk.run(root, [&](ExprId e) {
      if (body_.pool[e].kind == schedule::Expr::Kind::kLocal) used.insert(body_.pool[e].id);
      return true;
    });
  }
  for (const CudaStage& from : body_.stages) {
    for (const CachedValue& k : from.cached) {
      if (!k.shared || used.count(k.local) == 0) continue;
      out_.line("const auto h{0} = tile::load<{1}, {1}>({2});", k.local, stage.layout.vector, place_of(stage, k));
    }
  }
}

// The operand that a sweep keeps in shared memory, where it can be copied there without waiting for it.
const CachedValue* CudaSweepWriter::copied(const CudaStage& stage) {
  if (stage.cached.size() != 1 || !stage.cached[0].shared || stage.layout.vector == 1) return nullptr;
  const CachedValue& k = stage.cached[0];
  const schedule::Expr& e = body_.pool[k.value];
  const size_t operands = emitter_.names().buffers.size() - body_.scratch.size();
  const auto bytes = stage.layout.vector * static_cast<int64_t>(size_of(e.dtype));
  if (e.kind != schedule::Expr::Kind::kLoad || e.id >= operands || e.dtype == DType::kBool) return nullptr;
  if (bytes != 4 && bytes != 8 && bytes != 16) return nullptr;
  const bool bound = !emitter_.has_lanes();
  if (bound) begin_lanes(stage.layout);
  const bool aligned = emitter_.aligned_at(k.value);
  if (bound) end_lanes();
  return aligned ? &k : nullptr;
}

// All copies are under way before the first of them is waited for.
void CudaSweepWriter::write_copies(const CudaStage& stage, const Point& p) {
  const int64_t most = stage.async_copy ? 1 : 4;  // groups
  const int64_t inner = body_.inner_steps(stage.layout), each = (inner + most - 1) / most;
  const int64_t groups = (inner + each - 1) / each, full = body_.full_steps(stage.layout);
  for (const Pass pass : {Pass::kCopy, Pass::kUse}) {
    if (pass == Pass::kUse && stage.async_copy) return;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t from = g * each, to = std::min(inner, from + each);
      if (pass == Pass::kUse) out_.line("tile::sm80::wait_copies<{}>();", groups - 1 - g);
      if (!p.inner_valid.empty() && full > from && full < to) {
        write_steps(stage, p, from, full, pass);
        write_steps(stage, p, full, to, pass);
      } else {
        write_steps(stage, p, from, to, pass);
      }
      if (pass == Pass::kCopy) out_.line("tile::sm80::commit_copies();");
    }
  }
}

}  // namespace heddle::codegen
