#include "codegen/region/cuda/context.h"

#include <algorithm>
#include <utility>

namespace heddle::codegen {

SweepContext::SweepContext(const CudaStitchDesc& kernel, Writer& text)
    : body(kernel), out(text), emitter(kernel.pool, Names{}, text), memory(schedule::shared_memory(kernel)) {
  Style style;
  style.cuda = true;
  style.index = index_type();
  for (const GridDim& d : body.grid) {
    if (d.block > 1) style.multiples[d.start] = d.block;
  }
  emitter.set_style(std::move(style));
}

std::string SweepContext::next_slot() {
  const auto slot = static_cast<int64_t>(next_slot_++);
  return body.team <= body.lanes ? "" : ", " + shared(memory.slots + slot * schedule::SharedMemory::kSlotBytes);
}

void SweepContext::sync(int team) {
  if (team > 1) out.line("tile::team_sync<{}>();", team);
  if (team == body.team) columns_dirty = false;
}

void SweepContext::begin_lanes(const ThreadLayout& s) {
  if (s.vector > 1) {
    emitter.set_lanes(Lanes{s.loops.back(), std::to_string(s.vector), "0", s.vector});
  } else {
    emitter.set_lanes(std::nullopt);
  }
}

void SweepContext::decode(const ThreadLayout& s, size_t first, size_t last, const std::string& position) {
  int64_t below = 1;
  std::vector<std::pair<std::string, std::string>> variables;
  for (size_t k = last; k-- > first;) {
    const VarId v = s.loops[k];
    const bool lane = k + 1 == s.loops.size();
    const int64_t extent = body.extent(v), count = lane ? (extent + s.vector - 1) / s.vector : extent;
    const std::string quotient = below > 1 ? fmt::format("{} / {}", factor(position), below) : position;
    std::string text = k > first ? fmt::format("{} % {}", factor(quotient), count) : quotient;
    if (count == 1) text = "0";
    if (lane) text = product(text, s.vector);
    if (body.blocked(v) != nullptr) text = sum(fmt::format("b{}", v), text);
    const std::string name = fmt::format("i{}", v);
    // Bounds of blocked variables go by the name.
    emitter.names().vars[v] = text == "0" && body.blocked(v) == nullptr ? text : name;
    variables.emplace_back(name, text);
    below *= count;
  }
  for (auto v = variables.rbegin(); v != variables.rend(); ++v) out.declare(index_type(), v->first, v->second);
}

void SweepContext::forget(const ThreadLayout& s, size_t first, size_t last) {
  for (size_t k = first; k < last; ++k) emitter.names().vars.erase(s.loops[k]);
}

std::string SweepContext::bounds_of(const ThreadLayout& s, size_t first, size_t last) const {
  std::string text;
  for (size_t k = first; k < last; ++k) {
    const VarId v = s.loops[k];
    const GridDim* d = body.blocked(v);
    if (d == nullptr || body.pool.indices.extent(v) % d->block == 0) continue;
    text += fmt::format("{}i{} < {}", text.empty() ? "" : " && ", v, body.pool.indices.extent(v));
  }
  return text;
}

std::string SweepContext::number(ExprId e, DType dtype) {
  const std::string text = emitter.vector(e);
  return dtype == DType::kBool ? fmt::format("tile::from_mask<uint8_t>({})", text) : text;
}

void SweepContext::hoist(const CudaStage& stage, uint64_t known) {
  for (const CudaReduction& r : stage.reductions) emitter.hoist(r.value, known);
  for (const CachedValue& k : stage.cached) {
    if (!k.stored) emitter.hoist(k.value, known);
  }
  if (stage.scan) return;  // what is stored is what its steps make
  for (const Store& s : stage.stores) emitter.hoist(s.value, known);
}

void SweepContext::write_stores(const CudaStage& stage) {
  const size_t operands = emitter.names().buffers.size() - body.scratch.size();
  const bool rounds = std::all_of(stage.stores.begin(), stage.stores.end(), [&](const Store& s) {
    return s.buffer < operands && (s.dtype == DType::kF16 || s.dtype == DType::kBF16);
  });
  for (const Store& s : stage.stores) {
    const bool guarded = has_live && s.buffer < operands;
    if (rounds) {
      ExprId value = s.value;
      while (body.pool[value].kind == schedule::Expr::Kind::kOp && body.pool[value].op == ir::Op::kCast) {
        value = body.pool[value].args[0];
      }
      emitter.set_rounded(value);
    }
    emitter.value(s.value);
    if (guarded) {
      out.open("if (live) {");
      emitter.push_scope();
    }
    emitter.store(emitter.names().buffers[s.buffer], s.dtype, s.at, s.value);
    if (guarded) {
      emitter.pop_scope();
      out.close();
    }
  }
  emitter.set_rounded(std::nullopt);
}

}  // namespace heddle::codegen
