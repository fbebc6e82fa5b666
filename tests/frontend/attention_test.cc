// Attention of ONNX against a plain loop over its definition: which keys a query sees, and rows that see none.
#include <cmath>
#include <limits>

#include "microsoft_testing.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kBatch = 2, kDepth = 4;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Problem {
  int64_t heads = 2, groups = 2, queries = 3, keys = 5, past = 0;
  bool causal = false, packed = false;
  std::string mask = {};  // "bool": 0 hides, "float": added; of [queries, keys of the mask]
  std::vector<float> mask_values = {};
  std::vector<int64_t> lengths = {};  // nonpad_kv_seqlen
  float softcap = 0;
  int64_t mode = 0, opset = 24;

  int64_t all_keys() const { return past + keys; }
  int64_t mask_keys() const { return static_cast<int64_t>(mask_values.size()) / queries; }
};

Tensor bools(Shape shape, const std::vector<float>& values) {
  Tensor result(DType::kBool, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) static_cast<uint8_t*>(result.mutable_data())[i] = values[i] != 0;
  return result;
}

// Element (batch, head, row, at) of [B, heads, rows, D], or of [B, rows, heads * D] where packed.
double element(const Tensor& x, bool packed, int64_t heads, int64_t b, int64_t h, int64_t row, int64_t at) {
  const Shape& s = x.shape();
  const int64_t rows = packed ? s[1] : s[2];
  const int64_t index =
      packed ? ((b * rows + row) * heads + h) * kDepth + at : ((b * heads + h) * rows + row) * kDepth + at;
  return x.values<float>()[static_cast<size_t>(index)];
}

struct Expected {
  std::vector<double> y, stage;  // [B, heads, queries, D], [B, heads, queries, keys]
};

class Definition {
 public:
  Definition(const Problem& p, const Tensors& in) : p_(p), in_(in) {}

  Expected run() const {
    Expected result;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t h = 0; h < p_.heads; ++h) {
        for (int64_t row = 0; row < p_.queries; ++row) add_row(b, h, row, result);
      }
    }
    return result;
  }

 private:
  // Keys and values of the past come first.
  double cached(const char* past, const char* now, int64_t b, int64_t g, int64_t key, int64_t at) const {
    if (key < p_.past) return element(in_.at(past), false, p_.groups, b, g, key, at);
    return element(in_.at(now), p_.packed, p_.groups, b, g, key - p_.past, at);
  }
  double bias(int64_t b, int64_t row, int64_t key) const {
    double value = 0;
    if (!p_.mask.empty()) {
      if (key >= p_.mask_keys()) return kHidden;
      const float m = p_.mask_values[static_cast<size_t>(row * p_.mask_keys() + key)];
      value = p_.mask == "float" ? m : m != 0 ? 0 : kHidden;
    }
    const int64_t length = p_.lengths.empty() ? p_.all_keys() : p_.lengths[static_cast<size_t>(b)];
    const int64_t offset = p_.lengths.empty() || p_.past > 0 ? p_.past : length - p_.queries;
    const bool seen = key < length && (!p_.causal || key <= row + offset);
    return seen ? value : kHidden;
  }
  void add_row(int64_t b, int64_t h, int64_t row, Expected& result) const {
    const int64_t g = h / (p_.heads / p_.groups), n = p_.all_keys();
    std::vector<double> stages[4];
    for (int64_t key = 0; key < n; ++key) {
      double score = 0;
      for (int64_t d = 0; d < kDepth; ++d) {
        score += element(in_.at("q"), p_.packed, p_.heads, b, h, row, d) * cached("pk", "k", b, g, key, d);
      }
      score /= std::sqrt(static_cast<double>(kDepth));
      stages[0].push_back(score);
      if (p_.softcap > 0) score = p_.softcap * std::tanh(score / p_.softcap);
      stages[1].push_back(score);
      stages[2].push_back(score + bias(b, row, key));
    }
    double sum = 0;
    for (const double score : stages[2]) sum += std::exp(score);
    for (const double score : stages[2]) stages[3].push_back(sum == 0 ? 0 : std::exp(score) / sum);
    for (int64_t d = 0; d < kDepth; ++d) {
      double value = 0;
      for (int64_t key = 0; key < n; ++key)
        value += stages[3][static_cast<size_t>(key)] * cached("pv", "v", b, g, key, d);
      result.y.push_back(value);
    }
    const auto& stage = stages[p_.mode];
    result.stage.insert(result.stage.end(), stage.begin(), stage.end());
  }

  const Problem& p_;
  const Tensors& in_;
};

// [B, rows, heads * D] as [B, heads, rows, D]
std::vector<double> heads_first(const ir::Array& y, int64_t heads) {
  const int64_t rows = y.shape[1];
  std::vector<double> result;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = y.f().begin() + ((b * rows + row) * heads + h) * kDepth;
        result.insert(result.end(), at, at + kDepth);
      }
    }
  }
  return result;
}

void check(const Problem& p) {
  const auto shape = [&](int64_t heads, int64_t rows) {
    return p.packed ? Shape{kBatch, rows, heads * kDepth} : Shape{kBatch, heads, rows, kDepth};
  };
  Tensors in = {{"q", random(shape(p.heads, p.queries))},
                {"k", random(shape(p.groups, p.keys))},
                {"v", random(shape(p.groups, p.keys))}};
  std::vector<std::string> names = {"q", "k", "v", "", "", "", ""};
  if (!p.mask.empty()) {
    const Shape plane = {p.queries, p.mask_keys()};
    in["m"] = p.mask == "bool" ? bools(plane, p.mask_values) : floats(plane, p.mask_values);
    names[3] = "m";
  }
  if (p.past > 0) {
    in["pk"] = random({kBatch, p.groups, p.past, kDepth}), in["pv"] = random({kBatch, p.groups, p.past, kDepth});
    names[4] = "pk", names[5] = "pv";
  }
  if (!p.lengths.empty()) in["l"] = longs({kBatch}, p.lengths), names[6] = "l";
  Attributes attributes = {{"is_causal", int64_t{p.causal}}, {"qk_matmul_output_mode", p.mode}};
  if (p.packed) attributes["q_num_heads"] = p.heads, attributes["kv_num_heads"] = p.groups;
  if (p.softcap > 0) attributes["softcap"] = p.softcap;
  const Arrays out = run({{"Attention", names, {"y", "k2", "v2", "s"}, attributes}}, in, {"y", "s"}, {}, p.opset);
  const Expected expected = Definition(p, in).run();
  const auto near = [](const std::vector<double>& values) {
    return ::testing::Pointwise(::testing::NanSensitiveDoubleNear(1e-6), values);
  };
  EXPECT_THAT(p.packed ? heads_first(out.at("y"), p.heads) : out.at("y").f(), near(expected.y));
  EXPECT_THAT(out.at("s").f(), near(expected.stage));
}

constexpr float kOut = -std::numeric_limits<float>::infinity();
const std::vector<float> kBools = {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1};
const std::vector<float> kFloats = {0, 1, kOut, -2, 0, kOut, kOut, kOut, kOut, kOut, 0, kOut, 3, 0, 1};

// The last query sits on the last valid key. Fewer keys than queries leave the first ones without any.
TEST(Attention, LengthsAlignCausalityWithTheEndOfTheKeys) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{5, 3}, {4, 2}, {1, 0}, {3, 5}}) {
    check({.causal = true, .lengths = lengths});
    check({.causal = true, .packed = true, .lengths = lengths});
    check({.heads = 4, .groups = 2, .causal = true, .lengths = lengths, .softcap = 1.5F, .mode = 3});
    check({.causal = true, .mask = "bool", .mask_values = kBools, .lengths = lengths, .mode = 2});
    check({.causal = true, .mask = "float", .mask_values = kFloats, .lengths = lengths, .mode = 3});
    check({.queries = 1, .causal = true, .lengths = lengths});
    check({.lengths = lengths, .mode = 1});
  }
}

// Without lengths the queries follow the past, or begin with the first key.
TEST(Attention, CausalityBeginsBehindThePast) {
  check({.causal = true, .mode = 3});
  check({.keys = 3, .past = 4, .causal = true, .mode = 2});
  check({.heads = 4, .keys = 3, .past = 2, .causal = true, .packed = true, .opset = 23});
  check({.keys = 3, .past = 2, .causal = true, .mask = "bool", .mask_values = kBools, .mode = 3});
}

TEST(Attention, RowsWithoutAKeyAreZero) {
  for (const int64_t opset : {int64_t{23}, int64_t{24}}) {
    for (int64_t mode = 0; mode < 4; ++mode) {
      check({.mask = "bool", .mask_values = kBools, .mode = mode, .opset = opset});
      check({.heads = 4,
             .packed = true,
             .mask = "float",
             .mask_values = kFloats,
             .softcap = 2,
             .mode = mode,
             .opset = opset});
    }
    check({.causal = true, .mask = "bool", .mask_values = {0, 1, 1, 0, 0, 1, 0, 0, 0}, .opset = opset});
  }
}

// ONNX Runtime's operators keep the order of a row that is hidden by a finite number, and have NaN behind minus
// infinity.
TEST(Attention, HiddenRowsOfOnnxRuntimesOperators) {
  const Tensors in = {{"q", random({1, 2, 8})}, {"k", random({1, 3, 8})}, {"v", random({1, 3, 8})}};
  const auto y = [&](Tensors more, const std::vector<std::string>& names) {
    more.insert(in.begin(), in.end());
    return run({microsoft("MultiHeadAttention", names, {"y"}, {{"num_heads", int64_t{2}}})}, more, {"y"}).at("y");
  };
  const ir::Array plain = y({}, {"q", "k", "v"});
  expect_near(y({{"m", ints({1, 3}, {0, 0, 0})}}, {"q", "k", "v", "", "m"}), plain);
  const Tensor bias = floats({1, 2, 2, 3}, std::vector<float>(12, kOut));
  const ir::Array none = y({{"b", bias}}, {"q", "k", "v", "", "", "b"});
  EXPECT_THAT(none.f(), ::testing::Each(::testing::IsNan()));
}

}  // namespace
}  // namespace heddle::onnx
