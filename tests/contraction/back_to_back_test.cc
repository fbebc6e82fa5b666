// Contractions back to back as one kernel on a CPU: sizes that fill no tile, layouts, what lies between.
#include "schedule/back_to_back/back_to_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <random>

#include "testing.h"
#include "tests/codegen/harness.h"

namespace heddle {
namespace {

// Writes a graph of contractions, each followed by elementwise work.
class ChainText {
 public:
  explicit ChainText(std::string type = "f32") : type_(std::move(type)) {}

  // The first value; `shape` "29,67".
  void input(const std::vector<int64_t>& shape) {
    shape_ = shape;
    at_ = parameter(shape);
  }
  // [.., k] times a constant [k, n].
  void dot(int64_t n) {
    const std::string w = constant({shape_.back(), n});
    const size_t rank = shape_.size();
    shape_.back() = n;
    define(fmt::format("dot({}, {}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [{}], rhs_contract = [0]}}", at_,
                       w, rank - 1));
  }
  // [b, m, k] times a constant [b, k, n].
  void batched_dot(int64_t n) {
    const std::string w = constant({shape_[0], shape_[2], n});
    shape_.back() = n;
    define(fmt::format("dot({}, {}) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}}", at_,
                       w));
  }
  // Of [n, h, w, c], with `kernel` x `kernel` windows and as much padding as keeps the centres; depthwise where
  // groups = c.
  void conv(int64_t channels, int64_t kernel, int64_t stride = 1, bool depthwise = false) {
    const int64_t c = shape_[3], groups = depthwise ? c : 1, pad = kernel / 2;
    const std::string w = constant({channels, c / groups, kernel, kernel});
    for (const size_t d : {size_t{1}, size_t{2}}) shape_[d] = (shape_[d] + 2 * pad - kernel) / stride + 1;
    shape_[3] = channels;
    define(
        fmt::format("conv({}, {}) {{strides = [{s},{s}], low = [{p},{p}], high = [{p},{p}], dilations = [1,1], "
                    "lhs_dilations = [1,1], groups = {}, layout = \"nhwc\"}}",
                    at_, w, groups, fmt::arg("s", stride), fmt::arg("p", pad)));
  }
  void bias() {
    const std::string b = constant({shape_.back()}), c = "%" + name();
    line(fmt::format("{} = broadcast({}) {{shape = [{}], dims = [{}]}}", c, b, fmt::join(shape_, ","),
                     shape_.size() - 1));
    define(fmt::format("add({}, {})", at_, c));
  }
  void residual() {
    const std::string r = parameter(shape_);
    define(fmt::format("add({}, {})", at_, r));
  }
  void relu() {
    const std::string zero = "%" + name();
    line(fmt::format("{} = constant {{value = {}[{}]{{0}}}}", zero, type_, fmt::join(shape_, ",")));
    define(fmt::format("max({}, {})", at_, zero));
  }
  void gelu() {
    const std::string x = at_;
    define(fmt::format("erf({})", at_));
    define(fmt::format("mul({}, {})", at_, x));
  }
  void reshape(const std::vector<int64_t>& shape) {
    shape_ = shape;
    define(fmt::format("reshape({}) {{shape = [{}]}}", at_, fmt::join(shape, ",")));
  }
  void transpose(const std::vector<int64_t>& perm) {
    std::vector<int64_t> to;
    for (const int64_t d : perm) to.push_back(shape_[static_cast<size_t>(d)]);
    shape_ = to;
    define(fmt::format("transpose({}) {{perm = [{}]}}", at_, fmt::join(perm, ",")));
  }
  void elementwise(unsigned kind) {
    if (kind & 1) bias();
    if (kind & 2) gelu();
    if (kind & 4) residual();
    if (kind & 8) relu();
  }
  const std::vector<int64_t>& shape() const { return shape_; }
  std::string text() const {
    return fmt::format("graph g({}) {{\n{}  return \"y\" = {}\n}}", fmt::join(parameters_, ", "), lines_, at_);
  }

 private:
  std::string name() { return fmt::format("v{}", count_++); }
  void line(const std::string& text) { lines_ += "  " + text + "\n"; }
  void define(const std::string& value) {
    at_ = "%" + name();
    line(at_ + " = " + value);
  }
  std::string parameter(const std::vector<int64_t>& shape) {
    const std::string x = "%" + name();
    parameters_.push_back(fmt::format("{}: {}[{}]", x, type_, fmt::join(shape, ",")));
    return x;
  }
  std::string constant(const std::vector<int64_t>& shape) {
    const std::string w = "%" + name();
    line(fmt::format("{} = constant {{value = {}[{}]{{1}}}}", w, type_, fmt::join(shape, ",")));
    return w;
  }

  const std::string type_;
  std::vector<int64_t> shape_;
  std::vector<std::string> parameters_;
  std::string lines_, at_;
  int count_ = 0;
};

void check(const ChainText& chain, const testing::RunOptions& options = {}, double tolerance = 2e-5) {
  testing::RunOptions with = options;
  with.kind = ir::GroupKind::kBackToBack;
  SCOPED_TRACE(chain.text());
  testing::check_graph(testing::parse_with_random_weights(chain.text(), 5), tolerance, with);
}

TEST(CpuBackToBack, Products) {
  unsigned choice = 0;
  for (const int64_t m : {1, 2, 7, 29, 64, 197, 211}) {
    for (const auto& [k, n0, n1] : {std::array<int64_t, 3>{1, 1, 4}, {67, 33, 45}, {16, 64, 16}, {40, 5, 7}}) {
      ChainText chain;
      chain.input({m, k});
      chain.dot(n0);
      chain.elementwise(choice % 16);
      chain.dot(n1);
      chain.elementwise(choice / 2 % 16);
      check(chain, {.threads = 1 + static_cast<int>(choice % 3), .choice = choice});
      ++choice;
    }
  }
}

TEST(CpuBackToBack, Batches) {
  for (const unsigned choice : {0U, 1U, 2U}) {
    ChainText flat, batched, mixed;
    flat.input({3, 13, 20});
    flat.dot(24), flat.gelu(), flat.dot(9);
    batched.input({3, 13, 20});
    batched.batched_dot(24), batched.relu(), batched.batched_dot(9);
    mixed.input({3, 13, 20});
    mixed.batched_dot(24), mixed.bias(), mixed.dot(9);
    for (const ChainText* chain : {&flat, &batched, &mixed}) check(*chain, {.threads = 2, .choice = choice});
  }
}

TEST(CpuBackToBack, ConvolutionsAndOnePixel) {
  unsigned choice = 0;
  for (const auto& [h, w, c, o, kernel, stride] : {std::array<int64_t, 6>{9, 11, 3, 16, 3, 2},
                                                   {13, 8, 20, 24, 3, 1},
                                                   {16, 16, 16, 40, 3, 1},
                                                   {5, 7, 8, 8, 5, 1},
                                                   {7, 7, 12, 17, 1, 1},
                                                   {14, 9, 6, 11, 1, 2},
                                                   {1, 12, 8, 8, 3, 1}}) {
    for (const int threads : {1, 2}) {
      ChainText chain;
      chain.input({2, h, w, c});
      chain.conv(o, kernel, stride), chain.bias(), chain.relu();
      chain.conv(o + 3, 1), chain.bias(), chain.residual();
      check(chain, {.threads = threads, .choice = choice++});
    }
  }
}

TEST(CpuBackToBack, DepthwiseAndOnePixel) {
  unsigned choice = 0;
  for (const auto& [h, w, c, kernel, stride] :
       {std::array<int64_t, 5>{9, 11, 16, 3, 1}, {14, 14, 24, 3, 2}, {7, 5, 37, 5, 1}, {1, 1, 8, 3, 1}}) {
    for (const int threads : {1, 3}) {
      ChainText chain;
      chain.input({2, h, w, c});
      chain.conv(c, kernel, stride, true), chain.bias(), chain.relu();
      chain.conv(19, 1), chain.bias();
      check(chain, {.threads = threads, .choice = choice++});
    }
  }
}

// The inverted residual: one pixel, depthwise, one pixel.
TEST(CpuBackToBack, ThreeOfThem) {
  unsigned choice = 0;
  for (const auto& [h, w, c, expanded, stride] :
       {std::array<int64_t, 5>{9, 11, 5, 16, 1}, {14, 14, 8, 24, 2}, {7, 5, 12, 37, 1}, {20, 8, 4, 12, 1}}) {
    for (const int threads : {1, 3}) {
      ChainText chain;
      chain.input({2, h, w, c});
      chain.conv(expanded, 1), chain.bias(), chain.relu();
      chain.conv(expanded, 3, stride, true), chain.relu();
      chain.conv(c, 1), chain.bias(), chain.residual();
      check(chain, {.threads = threads, .choice = choice++});
    }
  }
}

// What is handed on has to be worth it: not between products of deep K, nor where weights come at run time.
TEST(CpuBackToBack, TakesWhatIsFaster) {
  const Target target = Target::host_cpu(1);
  const auto is_one_kernel = [&](const ChainText& chain, std::string* reason) {
    const ir::Graph graph = testing::parse_with_random_weights(chain.text(), 5);
    return schedule::can_run_back_to_back(graph, testing::whole_graph(graph, ir::GroupKind::kBackToBack), target,
                                          reason);
  };
  std::string reason;
  ChainText block, products;
  block.input({1, 56, 56, 24});
  block.conv(144, 1), block.bias(), block.conv(144, 3, 1, true);
  EXPECT_TRUE(is_one_kernel(block, &reason)) << reason;
  products.input({512, 768});
  products.dot(768), products.bias(), products.dot(768);
  EXPECT_FALSE(is_one_kernel(products, &reason)) << reason;
}

TEST(CpuBackToBack, InstructionSetsAndTypes) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      ChainText products(type), images(type);
      products.input({37, 20});
      products.dot(24), products.bias(), products.gelu(), products.dot(19);
      images.input({1, 10, 9, 8});
      images.conv(16, 3), images.relu(), images.conv(12, 1);
      const double tolerance = std::string(type) == "f32" ? 2e-5 : std::string(type) == "f16" ? 4e-3 : 3e-2;
      check(products, {.threads = 2, .isa = isa}, tolerance);
      check(images, {.threads = 2, .isa = isa}, tolerance);
    }
  }
}

// HEDDLE_CHAINS: how many, from HEDDLE_SEED on; all of them run with HEDDLE_ALL_INSTANCES.
TEST(CpuBackToBack, RandomChains) {
  const int first = testing::setting("HEDDLE_SEED", 1), count = testing::setting("HEDDLE_CHAINS", 16);
  for (int seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
    ChainText chain;
    if (random() % 2 == 0) {
      if (random() % 2 == 0) {
        chain.input({1 + below(200), 1 + below(90)});
      } else {
        chain.input({1 + below(4), 1 + below(60), 1 + below(90)});
      }
      chain.dot(1 + below(90)), chain.elementwise(static_cast<unsigned>(below(16)));
      chain.dot(1 + below(90)), chain.elementwise(static_cast<unsigned>(below(16)));
    } else {
      chain.input({1 + below(3), 1 + below(20), 1 + below(20), 1 + below(24)});
      const bool depthwise = random() % 3 == 0;
      chain.conv(depthwise ? chain.shape()[3] : 1 + below(40), 1 + 2 * below(3), 1 + below(2), depthwise);
      chain.elementwise(static_cast<unsigned>(below(16)));
      chain.conv(1 + below(40), 1), chain.elementwise(static_cast<unsigned>(below(16)));
    }
    const unsigned choice = random() % 8;
    check(chain, {.threads = 1 + static_cast<int>(below(3)),
                  .pieces = 1 + static_cast<int>(below(4)),
                  .isa = random() % 2 != 0 ? CpuIsa::kAvx512 : CpuIsa::kPortable,
                  .choice = choice});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle
