#include "codegen/region/cpu/context.h"

#include "codegen/text/numbers.h"

namespace heddle::codegen {

std::string StitchContext::number(int64_t n) const {
  return marked ? codegen::marked(n) : fmt::format("{}", n);
}
std::string StitchContext::any_number(int64_t n) const {
  return marked ? marked_always(n) : fmt::format("{}", n);
}

std::string StitchContext::value(schedule::ExprId e, DType dtype) {
  const std::string text = emitter.vector(e);
  return dtype == DType::kBool ? fmt::format("tile::from_mask<uint8_t>({})", text) : text;
}

std::pair<std::string, std::string> StitchContext::bounds(VarId v, schedule::Range range) const {
  const GridDim* d = body.blocked(v);
  if (d == nullptr || (body.blocks_of(*d) == 1 && !marked)) return {number(range.lo), number(range.hi + 1)};
  const std::string start = fmt::format("b{}", v);
  std::string lo = start, hi = fmt::format("{} + {}", start, number(d->block));
  if (range.lo > 0) lo = fmt::format("tile::larger({}, {})", start, number(range.lo));
  if (marked || range.hi + 1 < extent(v) || extent(v) % d->block != 0)
    hi = fmt::format("tile::smaller({}, {})", hi, number(range.hi + 1));
  return {lo, hi};
}

std::string StitchContext::count_of(VarId v) const {
  const auto [lo, hi] = bounds(v);
  if (lo == "0") return hi;
  const int64_t block = body.blocked(v)->block;
  return !marked && extent(v) % block == 0 ? number(block) : fmt::format("{} - {}", hi, lo);
}

void StitchContext::open_loop(VarId v, const std::string& lo, const std::string& hi) {
  const std::string name = fmt::format("i{}", v);
  out.open(fmt::format("for (int64_t {0} = {1}; {0} < {2}; ++{0}) {{", name, lo, hi));
  emitter.names().vars[v] = name;
  emitter.push_scope();
  bound |= uint64_t{1} << v;
}
void StitchContext::close_loop(VarId v) {
  emitter.pop_scope();
  emitter.names().vars.erase(v);
  bound &= ~(uint64_t{1} << v);
  out.close();
}

void StitchContext::open_lanes(VarId v, const std::pair<std::string, std::string>& bounds, bool unrolls,
                               const std::string& head, const std::string& settle, bool pairs) {
  const std::string name = fmt::format("i{}", v);
  const bool settles = !settle.empty();
  const std::string walk = settles        ? fmt::format("_settled<W, {}>", unroll)
                           : unrolls      ? fmt::format("_unrolled<W, {}>", unroll)
                           : pairs        ? "<2 * W>"
                           : head.empty() ? "<W>"
                                          : "_from<W>";
  out.open(
      fmt::format("tile::for_lanes{}({}{}, {}, {}[&]<int W>(int64_t {}, auto n{}) __attribute__((always_inline)) {{",
                  walk, head.empty() ? "" : head + ", ", bounds.first, bounds.second,
                  settles ? fmt::format("[&](int64_t k) __attribute__((always_inline)) {{ {} }}, ", settle) : "", name,
                  unrolls ? ", auto u" : ""));
  emitter.names().vars[v] = name;
  emitter.set_lanes(Lanes{v, "W", "n"});
  emitter.push_scope();
}
void StitchContext::close_lanes(VarId v) {
  emitter.pop_scope();
  emitter.set_lanes(std::nullopt);
  emitter.names().vars.erase(v);
  out.close("});");
}

void StitchContext::hoist(const schedule::Stage& stage, const schedule::Piece& piece) {
  for (const schedule::ExprId e : piece.values) emitter.hoist(e, bound);
  if (stage.scan) return;  // what is stored is what the step makes
  for (const schedule::Store& s : piece.stores) emitter.hoist(s.value, bound);
}

}  // namespace heddle::codegen
