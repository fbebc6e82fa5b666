#include "gated_graphs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <random>

#include "ir/reference/eval.h"
#include "ir/rewrite.h"
#include "ir/text/text.h"

namespace heddle::testing {
namespace {

// What `act` makes of %g, as %a.
std::string act_text(const std::string& act, const std::string& type, const std::string& shape) {
  const auto number = [&](const char* name, double v) {
    return fmt::format(
        "%{0}0 = constant {{value = {1}[]{{{2}}}}}\n%{0} = broadcast(%{0}0) {{shape = {3}, dims = []}}\n", name, type,
        v, shape);
  };
  if (act == "silu") {
    return number("one", 1) + "%a1 = neg(%g)\n%a2 = exp(%a1)\n%a3 = add(%one, %a2)\n%a = div(%g, %a3)\n";
  }
  if (act == "gelu") {
    return number("half", 0.5) + number("root", 0.70710678) +
           "%a1 = mul(%g, %root)\n%a2 = erf(%a1)\n%a3 = mul(%g, %half)\n%a4 = mul(%a3, %a2)\n%a = add(%a3, %a4)\n";
  }
  if (act == "relu") return number("zero", 0) + "%a = max(%g, %zero)\n";
  return number("zero", 0) + "%a = add(%g, %zero)\n";
}

std::string shape_text(Shape shape, int64_t last) {
  shape.push_back(last);
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace

std::string gated_text(const GatedForm& p) {
  const std::string y = shape_text(p.lead, p.n), wide = shape_text(p.lead, 2 * p.n);
  const auto rank = p.lead.size();
  std::string text = fmt::format("graph g(%x: {}{}", p.type, shape_text(p.lead, p.k));
  text += p.residual ? fmt::format(", %r: {}{}) {{\n", p.type, y) : ") {\n";
  const auto product = [&](const char* name, int64_t n, const std::string& shape) {
    text += fmt::format("%w{0} = constant {{value = {1}[{2},{3}]{{1}}}}\n", name, p.type, p.along_k ? n : p.k,
                        p.along_k ? p.k : n);
    text += fmt::format(
        "%d{0} = dot(%x, %w{0}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [{1}], rhs_contract = [{2}]}} : "
        "{3}{4}\n",
        name, rank, p.along_k ? 1 : 0, p.type, shape);
    if (!p.bias) return fmt::format("%d{}", name);
    text += fmt::format(
        "%b{0} = constant {{value = {1}[{2}]{{1}}}}\n%e{0} = broadcast(%b{0}) {{shape = {3}, dims = [{4}]}}\n"
        "%s{0} = add(%d{0}, %e{0})\n",
        name, p.type, n, shape, rank);
    return fmt::format("%s{}", name);
  };
  const std::string zero = fmt::format("[{}]", fmt::join(std::vector<int>(rank + 1, 0), ","));
  const std::string one = fmt::format("[{}]", fmt::join(std::vector<int>(rank + 1, 1), ","));
  const auto view = [&](const char* name, const std::string& of, int64_t first) {
    if (!p.split) return fmt::format("%{0} = reshape({1}) {{shape = {2}}}\n", name, of, y);
    Shape at(rank, 0);
    return fmt::format("%{} = slice({}) {{starts = {}, limits = {}, strides = {}}}\n", name, of, shape_text(at, first),
                       shape_text(p.lead, first + p.n), one);
  };
  if (p.split) {
    const std::string all = product("0", 2 * p.n, wide);
    text += view("g", all, p.up_first ? p.n : 0) + view("u", all, p.up_first ? 0 : p.n);
  } else {
    // The product with U may come first.
    const std::string one_of = product(p.up_first ? "1" : "0", p.n, y), other = product(p.up_first ? "0" : "1", p.n, y);
    text += view("g", p.up_first ? other : one_of, 0) + view("u", p.up_first ? one_of : other, 0);
  }
  text += act_text(p.act, p.type, y);
  text += p.up_first ? "%y = mul(%u, %a)\n" : "%y = mul(%a, %u)\n";
  if (!p.residual) return text + "return \"y\" = %y }";
  text += fmt::format(
      "%c = constant {{value = {0}[{1}]{{1}}}}\n%c1 = broadcast(%c) {{shape = {2}, dims = [{3}]}}\n%y1 = add(%y, %c1)\n"
      "%y2 = add(%y1, %r)\nreturn \"y\" = %y2 }}",
      p.type, p.n, y, rank);
  return text;
}

std::string name_of(const GatedForm& p) {
  return fmt::format("{} {} n {} k {} {}{}{}{}{}{}", p.type, fmt::join(p.lead, "x"), p.n, p.k, p.act,
                     p.bias ? " bias" : "", p.up_first ? " up first" : "", p.split ? " split" : "",
                     p.along_k ? " along k" : "", p.residual ? " residual" : "");
}

GatedForm GatedForm::random(unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](unsigned n) { return static_cast<int64_t>(random() % n); };
  GatedForm p;
  p.type = std::array{"f16", "bf16", "f32"}[static_cast<size_t>(any(3))];
  p.lead = any(2) == 0 ? Shape{1 + any(90)} : Shape{1 + any(3), 1 + any(40)};
  p.n = 8 * (1 + any(20)), p.k = 1 + any(130);
  p.act = std::array{"silu", "gelu", "relu", ""}[static_cast<size_t>(any(4))];
  p.bias = any(2) == 0, p.up_first = any(2) == 0, p.split = any(2) == 0, p.along_k = any(2) == 0;
  p.residual = any(3) == 0;
  return p;
}

ir::Graph gated_graph(const GatedForm& form, unsigned seed) {
  std::mt19937 random(seed);
  const ir::Graph graph = ir::parse(gated_text(form));
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const ir::Node& node) -> std::optional<std::vector<ir::ValueId>> {
    const Tensor* constant = graph.constant_of(node.outputs[0]);
    if (constant == nullptr || constant->rank() == 0) return std::nullopt;
    ir::Array values(constant->dtype(), constant->shape());
    for (double& v : values.f()) v = std::uniform_real_distribution<double>(-1, 1)(random);
    return std::vector<ir::ValueId>{r.constant(ir::to_tensor(values))};
  });
}

}  // namespace heddle::testing
