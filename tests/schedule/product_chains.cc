#include "product_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace heddle::testing {
namespace {

class ProductWriter {
 public:
  explicit ProductWriter(const ProductChain& c) : c_(c) {}

  std::string text() {
    if (c_.conv) {
      convs();
    } else {
      dots();
    }
    return fmt::format("graph g({}) {{\n{}  return \"y\" = %{}\n}}", inputs_, text_, last_);
  }

 private:
  std::string input(const std::string& name, const std::string& shape) {
    inputs_ += fmt::format("{}%{}: {}{}", inputs_.empty() ? "" : ", ", name, c_.type, shape);
    return name;
  }
  void matrix(const std::string& name, const std::string& shape) {
    if (c_.constant) {
      text_ += fmt::format("  %{} = constant {{value = {}{}{{1}}}}\n", name, c_.type, shape);
    } else {
      input(name, shape);
    }
  }
  void line(const std::string& name, const std::string& what, const std::string& shape) {
    text_ += fmt::format("  %{} = {} : {}{}\n", name, what, c_.type, shape);
    last_ = name;
  }

  void dots() {
    input("a", shape_of(c_.m, c_.k));
    matrix("w0", c_.w0_along_k ? shape_of(c_.n0, c_.k) : shape_of(c_.k, c_.n0));
    matrix("w1", c_.w1_along_k ? shape_of(c_.n1, c_.n0) : shape_of(c_.n0, c_.n1));
    line("d0", dot("a", "w0", c_.w0_along_k), shape_of(c_.m, c_.n0));
    between(shape_of(c_.m, c_.n0));
    line("d1", dot(last_, "w1", c_.w1_along_k), shape_of(c_.m, c_.n1));
    behind(shape_of(c_.m, c_.n1));
  }
  std::string shape_of(int64_t rows, int64_t columns) const {
    return c_.batch == 0 ? fmt::format("[{},{}]", rows, columns) : fmt::format("[{},{},{}]", c_.batch, rows, columns);
  }
  std::string dot(const std::string& x, const std::string& w, bool along_k) const {
    const int first = c_.batch == 0 ? 0 : 1;
    return fmt::format("dot(%{}, %{}) {{lhs_batch = {}, rhs_batch = {}, lhs_contract = [{}], rhs_contract = [{}]}}", x,
                       w, first == 0 ? "[]" : "[0]", first == 0 ? "[]" : "[0]", first + 1, first + (along_k ? 1 : 0));
  }

  void convs() {
    const int64_t high = (c_.height - 1) / c_.stride + 1, wide = (c_.width - 1) / c_.stride + 1, pad = c_.window / 2;
    const auto image = [&](int64_t h, int64_t w, int64_t channels) {
      return fmt::format("[{},{},{},{}]", c_.images, h, w, channels);
    };
    const auto conv = [](const std::string& x, const std::string& w, int64_t stride, int64_t pad, int64_t groups) {
      return fmt::format(
          "conv(%{}, %{}) {{strides = [{},{}], low = [{},{}], high = [{},{}], dilations = [1,1], lhs_dilations = "
          "[1,1], groups = {}, layout = \"nhwc\"}}",
          x, w, stride, stride, pad, pad, pad, pad, groups);
    };
    input("a", image(c_.height, c_.width, c_.k));
    matrix("w0", fmt::format("[{},{},{},{}]", c_.n0, c_.k / c_.groups, c_.window, c_.window));
    matrix("w1", fmt::format("[{},{},1,1]", c_.n1, c_.n0));
    line("d0", conv("a", "w0", c_.stride, pad, c_.groups), image(high, wide, c_.n0));
    between(image(high, wide, c_.n0));
    line("d1", conv(last_, "w1", 1, 0, 1), image(high, wide, c_.n1));
    behind(image(high, wide, c_.n1));
  }

  void bias(int64_t columns, const std::string& shape, int number) {
    const int64_t rank = c_.conv ? 4 : c_.batch == 0 ? 2 : 3;
    matrix(fmt::format("b{}", number), fmt::format("[{}]", columns));
    text_ += fmt::format("  %v{} = broadcast(%b{}) {{shape = {}, dims = [{}]}} : {}{}\n", number, number, shape,
                         rank - 1, c_.type, shape);
    line(fmt::format("s{}", number), fmt::format("add(%{}, %v{})", last_, number), shape);
  }
  void residual(const std::string& shape, int number) {
    input(fmt::format("r{}", number), shape);
    line(fmt::format("t{}", number), fmt::format("add(%{}, %r{})", last_, number), shape);
  }
  void between(const std::string& shape) {
    if (c_.bias0) bias(c_.n0, shape, 0);
    if (c_.residual0) residual(shape, 0);
    if (c_.activation == "max") {
      text_ += fmt::format(
          "  %zero = constant {{value = {}[]{{0}}}}\n  %zeros = broadcast(%zero) {{shape = {}, dims = []}} : {}{}\n",
          c_.type, shape, c_.type, shape);
      line("f", fmt::format("max(%{}, %zeros)", last_), shape);
    } else if (!c_.activation.empty()) {
      line("f", fmt::format("{}(%{})", c_.activation, last_), shape);
    }
  }
  void behind(const std::string& shape) {
    if (c_.bias1) bias(c_.n1, shape, 1);
    if (c_.residual1) residual(shape, 1);
    if (c_.out.empty()) return;
    text_ += fmt::format("  %y = cast(%{}) {{to = {}}} : {}{}\n", last_, c_.out, c_.out, shape);
    last_ = "y";
  }

  const ProductChain& c_;
  std::string inputs_, text_, last_;
};

}  // namespace

std::string ProductChain::text() const {
  return ProductWriter(*this).text();
}

int64_t ProductChain::rows() const {
  return conv ? images * ((height - 1) / stride + 1) * ((width - 1) / stride + 1) : m;
}

std::string ProductChain::name() const {
  std::string name = conv ? fmt::format("{} conv {}x{}x{}x{} k{} s{} g{} -> {} -> {}", type, images, height, width, k,
                                        window, stride, groups, n0, n1)
                          : fmt::format("{} {}x{}x{} -> {} -> {}", type, batch, m, k, n0, n1);
  const auto add = [&](bool flag, const std::string& text) { name += flag ? " " + text : ""; };
  add(!activation.empty(), activation), add(bias0, "bias0"), add(bias1, "bias1"), add(residual0, "residual0");
  add(residual1, "residual1"), add(!constant, "inputs"), add(w0_along_k, "w0 along k"), add(w1_along_k, "w1 along k");
  add(!out.empty(), "to " + out);
  return name;
}

ProductChain ProductChain::random(uint32_t seed) {
  std::mt19937 engine(seed);
  const auto up_to = [&](int64_t most) { return 1 + static_cast<int64_t>(engine() % static_cast<uint32_t>(most)); };
  const auto often = [&](uint32_t of) { return engine() % of == 0; };
  ProductChain c;
  c.type = often(3) ? "bf16" : "f16";
  c.conv = often(2);
  const auto columns = [&](int64_t most) { return often(3) ? up_to(most) : 8 * up_to(most / 8); };
  c.k = columns(80), c.n0 = columns(144), c.n1 = columns(144);
  c.m = up_to(150);
  if (!c.conv && often(4)) c.batch = up_to(3);
  c.images = up_to(2), c.height = up_to(9), c.width = up_to(9), c.window = often(3) ? 1 : 3, c.stride = up_to(2);
  constexpr const char* kActivations[] = {"", "max", "tanh", "abs"};
  c.activation = kActivations[engine() % 4];
  c.bias0 = !often(3), c.bias1 = !often(3), c.residual0 = often(4), c.residual1 = often(4);
  c.constant = !often(3), c.w0_along_k = often(2), c.w1_along_k = often(2);
  // Lines of a matrix that is no constant are cut at powers of two, of which a block holds so many.
  if (!c.constant) c.n0 = std::min<int64_t>(c.n0, 128);
  if (often(5)) c.out = "f32";
  return c;
}

}  // namespace heddle::testing
