#include "codegen/region/cuda/cached.h"

#include <algorithm>
#include <set>

#include "codegen/region/cuda/reduction_text.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {
namespace {

// The slot of this step of this thread.
std::string place_of(const SweepContext& c, const CudaStage& stage, const CachedValue& k) {
  const std::string step =
      c.steps(stage.layout) == 1 ? "0" : product("k", std::min(stage.layout.active, c.body.threads));
  const std::string slot = product(sum(step, c.body.cta_group > 1 ? "own" : "lane"), stage.layout.vector);
  return sum(c.emitter.names().buffers[k.buffer], slot);
}

// What a thread keeps of its present step.
std::string kept(const SweepContext& c, const CachedValue& keep) {
  return c.emitter.names().locals.at(keep.local).text;
}

}  // namespace

void declare_cached(SweepContext& c, const std::vector<CudaStage>& stages) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const CudaStage& stage : stages) {
    for (const CachedValue& k : stage.cached) {
      const int width = stage.layout.vector;
      const int64_t count = c.steps(stage.layout);
      const std::string name = fmt::format("h{}", k.local);
      const bool is_bool = k.dtype == DType::kBool;
      const std::string at = count > 1 && (!k.shared || is_bool) ? name + "[k]" : name;
      c.emitter.names().locals[k.local] = {at, k.dtype, width > 1, is_bool ? 1 : 0};
      if (k.stored) {
        const std::string& buffer = c.emitter.names().buffers[k.buffer];
        c.out.line("decltype(tile::load_stored<{}, 1>({})) {}{};", width, buffer, name,
                   count > 1 ? fmt::format("[{}]", count) : "");
        c.stored_texts[k.local] = at;
        c.emitter.names().locals[k.local].text = fmt::format("tile::decoded({})", at);
        continue;
      }
      if (k.shared && !is_bool) continue;
      variables.emplace_back(is_bool ? fmt::format("tile::mask<1, {}>", width)
                                     : fmt::format("tile::vec<{}, {}>", computed_type(k.dtype), width),
                             count > 1 ? fmt::format("{}[{}]", name, count) : name);
    }
  }
  declare_together(c.out, variables);
}

void declare_ahead(SweepContext& c) {
  for (const CudaStage& stage : c.body.ahead) {
    const int width = stage.layout.vector;
    const int64_t each = c.steps(stage.layout);
    for (const CachedValue& k : stage.cached) {
      const std::string& buffer = c.emitter.names().buffers[k.buffer];
      c.out.line("decltype(tile::load_stored<{}, 1>({})) n{}[{}];", width, buffer, k.local, each * c.body.turns);
      const std::string step = stage.layout.loops.empty() ? "0" : "k";
      const std::string at = c.body.turns > 1 ? sum(product("turn", each), step) : step;
      const std::string own = fmt::format("n{}[{}]", k.local, at);
      c.stored_texts[k.local] = own;
      c.emitter.names().locals[k.local] = {fmt::format("tile::decoded({})", own), k.dtype, width > 1};
    }
  }
}

void declare_carried(SweepContext& c) {
  for (const CudaStage& stage : c.body.stages) {
    for (const schedule::CudaReduction& r : stage.reductions) {
      if (r.over != schedule::CudaReduction::Over::kCarried) continue;
      c.out.line("{} a{}[{}];  {}", accumulator_type(c.body.pool, r, stage.layout.vector), r.local,
                 c.steps(stage.layout), comment_of(r.comment));
    }
  }
}

void load_cached(SweepContext& c, const CudaStage& stage) {
  std::set<uint32_t> used;
  schedule::ExprWalk walk(c.body.pool);
  for (const ExprId root : stage.roots()) {
    walk.run(root, [&](ExprId e) {
      if (c.body.pool[e].kind == schedule::Expr::Kind::kLocal) used.insert(c.body.pool[e].id);
      return true;
    });
  }
  const auto forget = [&](const CudaStage& from) {
    for (const CachedValue& k : from.cached) {
      if (k.stored && size_of(k.dtype) < 4 && used.count(k.local) != 0) {
        c.out.line("tile::forget_decoded({});", c.stored_texts.at(k.local));
      }
    }
  };
  for (const CudaStage& from : c.body.before) forget(from);
  for (const CudaStage& from : c.body.stages) {
    if (&from != &stage) forget(from);
    for (const CachedValue& k : from.cached) {
      if (!k.shared || used.count(k.local) == 0) continue;
      c.out.line("const auto h{0} = tile::load<{1}, {1}>({2});", k.local, stage.layout.vector, place_of(c, stage, k));
    }
  }
}

void write_cached(SweepContext& c, const CudaStage& stage, bool made) {
  const ThreadLayout& s = stage.layout;
  for (const CachedValue& k : stage.cached) {
    if (k.ahead) {
      const std::string at = c.body.turns > 1 ? fmt::format("turn * {} + k", c.steps(s)) : "k";
      c.out.line("n{}[{}] = {};", k.local, at, c.emitter.stored(k.value));
      continue;
    }
    if (made) break;
    if (k.stored) {
      const schedule::Expr& e = c.body.pool[k.value];
      const bool is_loaded = e.kind == schedule::Expr::Kind::kLocal;  // ahead
      c.out.line("{} = {};", c.stored_texts.at(k.local),
                 is_loaded ? c.stored_texts.at(e.id) : c.emitter.stored(k.value));
      continue;
    }
    if (k.shared) {
      c.out.line("tile::store<{}>({}, {});", s.vector, place_of(c, stage, k), c.emitter.vector(k.value));
    } else if (k.dtype == DType::kBool) {
      c.out.line("{} = tile::convert_mask<1>({});", kept(c, k), c.emitter.vector(k.value));
    } else {
      c.emitter.assign(kept(c, k), k.value);
    }
  }
}

const CachedValue* copied_operand(SweepContext& c, const CudaStage& stage) {
  if (stage.cached.size() != 1 || !stage.cached[0].shared || stage.layout.vector == 1) return nullptr;
  const CachedValue& k = stage.cached[0];
  const schedule::Expr& e = c.body.pool[k.value];
  const size_t operands = c.emitter.names().buffers.size() - c.body.scratch.size();
  const auto bytes = stage.layout.vector * static_cast<int64_t>(size_of(e.dtype));
  if (e.kind != schedule::Expr::Kind::kLoad || e.id >= operands || e.dtype == DType::kBool) return nullptr;
  if (bytes != 4 && bytes != 8 && bytes != 16) return nullptr;
  const bool outside = !c.emitter.has_lanes();
  if (outside) c.begin_lanes(stage.layout);
  const bool aligned = c.emitter.aligned_at(k.value);
  if (outside) c.end_lanes();
  return aligned ? &k : nullptr;
}

void write_copy(SweepContext& c, const CudaStage& stage) {
  const CachedValue& k = stage.cached[0];
  const auto bytes = stage.layout.vector * static_cast<int64_t>(size_of(c.body.pool[k.value].dtype));
  const std::string to = fmt::format("tile::cuda::shared_address({})", place_of(c, stage, k));
  if (bytes == 16 && c.body.evict_first.count(c.body.pool[k.value].id) != 0) {
    c.out.line("tile::sm80::copy_async_evict_first({}, {});", to, c.emitter.place(k.value));
  } else if (bytes == 16 && stage.async_copy) {
    c.out.line("tile::sm80::copy_async_l1_resident({}, {});", to, c.emitter.place(k.value));
  } else {
    c.out.line("tile::sm80::copy_async<{0}>({1}, {2}, {0});", bytes, to, c.emitter.place(k.value));
  }
}

void use_copy(SweepContext& c, const CudaStage& stage) {
  const CachedValue& k = stage.cached[0];
  c.out.line("const auto h{0} = tile::load<{1}, {1}>({2});", k.local, stage.layout.vector, place_of(c, stage, k));
  c.emitter.names().cached[k.value] = {fmt::format("h{}", k.local), k.dtype, true};
}

void drop_copy(SweepContext& c, const CudaStage& stage) {
  c.emitter.names().cached.erase(stage.cached[0].value);
}

}  // namespace heddle::codegen
