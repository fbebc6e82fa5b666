#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lang/analysis/everywhere.h"
#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// Sets a result whose text has the layout `from`.
void declare_as(Emitter& e, const Op& op, ValueId v, const std::string& text, const Layout& from, bool pure = false) {
  e.declare(op, v, e.converted(text, from, e.layout(v), e.type(v)), pure);
}

int64_t element_bytes(const Type& type) {
  return type.pointer ? 8 : size_of(type.element);
}

// The letters of the parameters of a lambda.
std::string letter(size_t i) {
  return std::string(1, static_cast<char>('a' + i));
}

std::string axis_of(const Op& op) {
  return std::to_string(op.attributes.integer("axis"));
}

// Neighbouring registers that have the same element.
int64_t constant_run(const Emitter& e, ValueId v) {
  int64_t best = 1;
  const Layout& layout = e.layout(v);
  for (int d = 0; d < layout.rank(); ++d) {
    const int64_t run = layout.run(d), constant = e.facts_of(v).constant[static_cast<size_t>(d)];
    best = std::max(best, std::min(run & -run, constant & -constant));
  }
  return best;
}

void emit_broadcast(Emitter& e, const Op& op) {
  const Type &from = e.type(op.operands[0]), &to = e.type(op.results[0]);
  const Layout& result = e.layout(op.results[0]);
  // The layouts between, from that of the result inwards.
  std::vector<Layout> layouts{result};
  std::vector<int> axes;
  for (int d = 0; d < from.rank(); ++d) {
    if (from.shape[static_cast<size_t>(d)] == to.shape[static_cast<size_t>(d)]) continue;
    axes.push_back(d);
    layouts.push_back(squeeze(layouts.back(), d));
  }
  std::string text = e.tile(op.operands[0], layouts.back());
  for (size_t i = axes.size(); i-- > 0;) {
    text = fmt::format("block::broadcast<{}, {}>({})", e.layout_name(layouts[i]), axes[i], text);
  }
  e.declare(op, op.results[0], text, true);
}

void emit_reshape(Emitter& e, const Op& op) {
  const ValueId from = op.operands[0], to = op.results[0];
  if (e.type(from).is_scalar()) return e.bind_uniform(to, e.text(from));
  const Layout& layout = e.layout(from);
  if (e.type(to).is_scalar()) {
    const std::vector<int64_t> shape = e.type(from).shape;
    std::vector<int> order;
    for (size_t d = shape.size(); d-- > 0;) order.push_back(static_cast<int>(d));
    return e.declare(op, to, e.tile(from, blocked(shape, order, 1, e.warps)) + ".v[0]");
  }
  const std::optional<Layout> same = reshape(layout, e.type(to).shape);
  if (same && (same->type == e.layout(to).type || same_threads(*same, e.layout(to)))) {
    return declare_as(e, op, to, fmt::format("block::rename<{}>({})", e.layout_name(*same), e.tile(from)), *same);
  }
  e.need_shared(layout.elements() * element_bytes(e.type(from)));
  e.declare(op, to, fmt::format("block::reshape<{}>(kShared, {})", e.layout_name(e.layout(to)), e.tile(from)));
}

void emit_join(Emitter& e, const Op& op) {
  const ValueId result = op.results[0];
  if (e.type(op.operands[0]).is_scalar()) {
    return e.declare(op, result,
                     fmt::format("block::map([=](int32_t i) {{ return i == 0 ? {} : {}; }}, block::iota<{}>(0))",
                                 e.text(op.operands[0]), e.text(op.operands[1]), e.layout_name(e.layout(result))));
  }
  const Layout& half = e.common_layout(op);
  declare_as(e, op, result,
             fmt::format("block::join({}, {})", e.tile(op.operands[0], half), e.tile(op.operands[1], half)), join(half),
             true);
}

void emit_split(Emitter& e, const Op& op) {
  if (e.type(op.results[0]).is_scalar()) {
    // Every thread has both elements.
    const std::string both = e.fresh("both");
    e.statement(op, fmt::format("const auto {} = {}", both, e.tile(op.operands[0], blocked({2}, {0}, 2, e.warps))));
    for (size_t i = 0; i < 2; ++i) e.declare(op, op.results[i], fmt::format("{}.v[{}]", both, i), true);
    return;
  }
  const Layout& half = e.layout(op.results[0]);
  const std::string both = e.fresh("both");
  e.statement(op, fmt::format("const auto {} = {}", both, e.tile(op.operands[0], join(half))));
  for (size_t i = 0; i < 2; ++i) {
    e.declare(op, op.results[i], fmt::format("block::half_of<{}, {}>({})", e.layout_name(half), i, both), true);
  }
}

// Whether all of a mask is true, as text; "" where that is not seen. Worth a branch within loops, where most trips are
// far from a bound.
std::string whole_text(Emitter& e, const Op& op) {
  constexpr int64_t kLeastElements = 2048;
  const ValueId mask = op.operands[0];
  if (op.code != OpCode::kSelect || e.uniform(mask) || e.uniform(op.operands[1]) ||
      e.type(mask).elements() < kLeastElements || e.uses.region(op.results[0]) == &e.kernel.body) {
    return "";
  }
  const std::optional<std::vector<Polynomial>> all = true_everywhere(e.kernel, e.windows, mask);
  if (!all) return "";
  std::vector<std::string> parts;
  for (const Polynomial& p : *all) parts.push_back(sum_text(e, p, "int64_t") + " >= 0");
  return fmt::format("{}", fmt::join(parts, " && "));
}

}  // namespace

std::string sum_text(const Emitter& e, const Polynomial& p, const std::string& type) {
  std::vector<std::string> terms;
  for (const auto& [product, factor] : p.terms()) {
    std::vector<std::string> factors;
    for (const ValueId v : product) factors.push_back(fmt::format("{}({})", type, e.text(v)));
    if (factor != 1 || factors.empty()) factors.push_back(fmt::format("{}({})", type, factor));
    terms.push_back(fmt::format("{}", fmt::join(factors, " * ")));
  }
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

bool emit_elementwise(Emitter& e, const Op& op) {
  if (!info_of(op.code).has(kElementwise) || op.code == OpCode::kConstant || !op.regions.empty()) return false;
  const ValueId result = op.results[0];
  std::vector<std::string> texts;
  bool all_uniform = true;
  for (const ValueId v : op.operands) {
    texts.push_back(e.text(v));
    all_uniform = all_uniform && (e.type(v).is_scalar() || e.uniform(v));
  }
  if (op.code == OpCode::kHint) {
    if (all_uniform && e.type(result).is_tile()) return e.bind_uniform(result, texts[0]), true;
    return e.bind(result, texts[0]), true;
  }
  if (all_uniform) {
    for (size_t i = 0; i < texts.size(); ++i) texts[i] = codegen::factor(texts[i]);
    e.declare(op, result, expression(e.kernel, op, texts), true);
    if (e.type(result).is_tile()) e.bind_uniform(result, e.text(result));
    return true;
  }
  if (const std::string whole = whole_text(e, op); !whole.empty()) {
    e.declare(op, result, fmt::format("block::select_unless({}, {})", whole, fmt::join(texts, ", ")), true);
    return true;
  }
  std::vector<std::string> letters, parameters;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    letters.push_back(letter(i));
    parameters.push_back(fmt::format("{} {}", scalar_type(e.type(op.operands[i]).scalar_type()), letters.back()));
  }
  const int64_t same = e.type(result).element == Element::kI1 ? constant_run(e, result) : 1;
  const std::string callee = same > 1 ? fmt::format("map_runs<{}>", same) : "map";
  e.declare(op, result,
            fmt::format("block::{}([]({}) {{ return {}; }}, {})", callee, fmt::join(parameters, ", "),
                        expression(e.kernel, op, letters), fmt::join(texts, ", ")),
            true);
  return true;
}

bool emit_shape(Emitter& e, const Op& op) {
  const ValueId result = op.results.empty() ? 0 : op.results[0];
  const auto from = [&](size_t i = 0) { return op.operands[i]; };
  const auto bytes_of = [&](ValueId v) { return e.type(v).elements() * element_bytes(e.type(v)); };
  switch (op.code) {
    case OpCode::kConstant: {
      const std::string text = literal(*op.attributes.find("value"), e.type(result));
      e.type(result).is_tile() ? e.bind_uniform(result, text) : e.bind(result, text);
      return true;
    }
    case OpCode::kProgramId:
    case OpCode::kNumPrograms: {
      const char* const of = op.code == OpCode::kProgramId ? "blockIdx" : "gridDim";
      const char axis = "xyz"[op.attributes.integer("axis")];
      return e.declare(op, result, fmt::format("int32_t({}.{})", of, axis), true), true;
    }
    case OpCode::kSplat:
      return e.bind_uniform(result, e.text(from())), true;
    case OpCode::kIota: {
      const std::string element = element_type(e.type(result).element);
      return e.declare(op, result,
                       fmt::format("block::iota<{}, 0, {}>({})", e.layout_name(e.layout(result)), element,
                                   op.attributes.integer("start")),
                       true),
             true;
    }
    case OpCode::kExpandDims:
    case OpCode::kBroadcast:
    case OpCode::kPermute:
      // What is the same everywhere is so in any shape.
      if (e.uniform(from())) return e.bind_uniform(result, e.text(from())), true;
      if (op.code == OpCode::kBroadcast) return emit_broadcast(e, op), true;
      if (op.code == OpCode::kExpandDims) {
        const Layout to = expand(e.layout(from()), static_cast<int>(op.attributes.integer("axis")));
        declare_as(e, op, result, fmt::format("block::expand<{}>({})", axis_of(op), e.tile(from())), to, true);
      } else {
        const std::vector<int64_t> order = op.attributes.list("order");
        declare_as(e, op, result, fmt::format("block::permute<{}>({})", fmt::join(order, ", "), e.tile(from())),
                   permute(e.layout(from()), order), true);
      }
      return true;
    case OpCode::kReshape:
      if (e.type(from()).is_tile() && e.uniform(from()) && e.type(result).is_tile()) {
        return e.bind_uniform(result, e.text(from())), true;
      }
      return emit_reshape(e, op), true;
    case OpCode::kJoin:
      return emit_join(e, op), true;
    case OpCode::kSplit:
      return emit_split(e, op), true;
    case OpCode::kCat:
      e.need_shared(bytes_of(result));
      e.declare(op, result,
                fmt::format("block::cat<{}>(kShared, {}, {})", e.layout_name(e.layout(result)), e.tile(from(0)),
                            e.tile(from(1))));
      return true;
    case OpCode::kSlice:
      e.need_shared(bytes_of(from()));
      e.declare(op, result,
                fmt::format("block::extract<{}, {}>(kShared, {}, {})", e.layout_name(e.layout(result)), axis_of(op),
                            e.tile(from()), op.attributes.integer("start")));
      return true;
    case OpCode::kFlip:
      e.need_shared(bytes_of(from()));
      e.declare(op, result, fmt::format("block::flip<{}>(kShared, {})", axis_of(op), e.tile(from(), e.layout(result))));
      return true;
    case OpCode::kGather:
      e.need_shared(bytes_of(from()));
      e.declare(op, result,
                fmt::format("block::gather<{}>(kShared, {}, {})", axis_of(op), e.tile(from(0)),
                            e.tile(from(1), e.layout(result))));
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::lang::cuda
