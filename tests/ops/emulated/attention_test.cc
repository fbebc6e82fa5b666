// The client API of attention on the emulator: results, what it refuses.
#include "ops/attention.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "base/file/file.h"
#include "heddle/ops.h"
#include "ops/prepared_kernel.h"
#include "runtime/cuda/device.h"
#include "tests/error_of.h"
#include "tests/instances.h"
#include "tune/random_data.h"

namespace heddle::ops {
namespace {

using runtime::CudaBuffer;
using runtime::CudaContext;
using test::error_of;
using testing::HasSubstr;

class OpsAttention : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
    ::setenv("HEDDLE_EMULATED_SMS", "8", 1);
    cache_ = new TempDir;
    ::setenv("HEDDLE_CACHE_DIR", cache_->path().c_str(), 1);
  }
  static void TearDownTestSuite() { delete cache_; }

  struct Data {
    std::unique_ptr<CudaBuffer> buffer;
    std::vector<double> values;
    void* address() const { return reinterpret_cast<void*>(buffer->address()); }
  };
  Data make(DType dtype, const std::vector<uint8_t>& bytes) {
    const auto count = static_cast<int64_t>(bytes.size() / size_of(dtype));
    Data data{std::make_unique<CudaBuffer>(*context_, bytes.size() + 64), tune::as_doubles(bytes.data(), dtype, count)};
    data.buffer->write(bytes.data(), bytes.size());
    return data;
  }
  Data random(const OperandSpan& span, DType dtype, uint64_t seed) {
    std::vector<uint8_t> bytes(static_cast<size_t>(span.bytes));
    tune::fill_random(bytes.data(), dtype, span.bytes / static_cast<int64_t>(size_of(dtype)), seed);
    return make(dtype, bytes);
  }

  Data integers(const std::vector<int32_t>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return make(DType::kI32, bytes);
  }

  // Runs a problem on random data, by the first choice or by one of those whose reason begins like this, and compares
  // with sums in double; what lies between the elements of O stays. Pages that no entry of the table names are NaN.
  void check(const AttentionProblem& given, const std::vector<int32_t>& lengths = {},
             const std::vector<int32_t>& table = {}, const std::string& family = "") {
    const ResolvedAttention resolved = resolve(given);
    const AttentionProblem& p = resolved.problem;
    std::vector<Data> data;
    for (size_t i = 0; i < resolved.spans.size(); ++i) {
      const DType type = resolved.desc.operands[i].dtype;
      if (type == DType::kI32) {
        data.push_back(integers(resolved.spans[i].name == "attention: lengths" ? lengths : table));
      } else {
        data.push_back(random(resolved.spans[i], type, i + 1));
      }
    }
    if (p.pages) hide_pages(p, table, data);
    AttentionOperands more{data[0].address(), data[1].address(), data[2].address(), data[3].address()};
    size_t next = 4;
    const Data *bias = nullptr, *sinks = nullptr;
    if (p.bias) bias = &data[next], more.bias = data[next++].address();
    if (p.sinks) sinks = &data[next], more.sinks = data[next++].address();
    if (p.lengths) more.lengths = data[next++].address();
    if (p.pages) more.page_table = data[next++].address();
    std::string config;
    if (family.empty()) {
      const Attention attention = Attention::prepare(given);
      config = attention.config();
      for (int run = 0; run < 2; ++run) {  // what is counted has to be zero again
        attention(more, stream_);
      }
    } else {
      config = run_family(resolved, data, family);
    }
    SCOPED_TRACE(config);
    test::note_kind(
        fmt::format("emulated attention sm_{} {} {}", context_->device().target.sm, family, to_string(p.type)));
    context_->synchronize();
    table_ = &table;
    std::vector<double> want = data[3].values;
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t h = 0; h < p.heads; ++h) {
        for (int64_t i = 0; i < p.queries; ++i) {
          const int64_t keys = p.lengths ? lengths[static_cast<size_t>(b)] : p.keys;
          row(p, data, bias, sinks, {b, h, i}, std::min(keys, p.keys), i + keys - p.queries, want);
        }
      }
    }
    std::vector<uint8_t> bytes(want.size() * size_of(p.type));
    data[3].buffer->read(bytes.data(), bytes.size());
    const std::vector<double> got = tune::as_doubles(bytes.data(), p.type, static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], p.type == DType::kF16 ? 3e-3 : 2e-2) << "element " << i;
    }
  }

  // Some candidates of a family, of which each has other tiles than the one before.
  std::string run_family(const ResolvedAttention& resolved, const std::vector<Data>& data, const std::string& family) {
    std::vector<uint64_t> addresses;
    for (const Data& x : data) addresses.push_back(x.buffer->address());
    addresses.resize(addresses.size() + 2);
    std::vector<ConfigChoice> choices;
    for (schedule::Config& c : candidates(resolved, context_->device().target)) {
      if (c.reason.starts_with(family)) choices.push_back({std::move(c), ""});
    }
    EXPECT_FALSE(choices.empty()) << family;
    if (choices.empty()) return "";
    const ConfigChoice& choice = choices[next_choice_++ * 5 % choices.size()];
    const PreparedKernel kernel(context_, resolved.desc, {&choice, 1}, false);
    kernel.launch(addresses, static_cast<CudaDriver::Handle>(stream_));
    return choice.config.reason;
  }

  // NaN into all pages that the table does not name.
  void hide_pages(const AttentionProblem& p, const std::vector<int32_t>& table, std::vector<Data>& data) const {
    const std::set<int32_t> named(table.begin(), table.end());
    for (const auto& [operand, strides, elements] :
         {std::tuple{size_t{1}, p.k, p.depth}, std::tuple{size_t{2}, p.v, p.width}}) {
      std::vector<double>& values = data[operand].values;
      for (int64_t page = 0; page < p.pages->pages; ++page) {
        if (named.contains(static_cast<int32_t>(page))) continue;
        for (int64_t i = 0; i < p.kv_heads * p.pages->page * elements; ++i) {
          const int64_t line = i / elements;
          values[at(strides, page, line / p.pages->page, line % p.pages->page, i % elements)] = NAN;
        }
      }
      const uint16_t nan = p.type == DType::kF16 ? 0x7e00 : 0x7fc0;
      std::vector<uint16_t> bits(values.size());
      data[operand].buffer->read(bits.data(), bits.size() * sizeof(uint16_t));
      for (size_t i = 0; i < bits.size(); ++i) {
        if (std::isnan(values[i])) bits[i] = nan;
      }
      data[operand].buffer->write(bits.data(), bits.size() * sizeof(uint16_t));
    }
  }
  // An element of K or V; of a key in no page 0.
  static double element(const AttentionProblem& p, const Data& data, const AttentionStrides& s, int64_t b, int64_t kv,
                        int64_t key, int64_t e) {
    if (!p.pages) return data.values[at(s, b, kv, key, e)];
    const int32_t page = table_->at(static_cast<size_t>(b * p.pages->sequence + key / p.pages->page));
    if (page < 0 || page >= p.pages->pages) return 0;
    return data.values[at(s, page, kv, key % p.pages->page, e)];
  }

  struct Place {
    int64_t b, h, i;
  };
  static size_t at(const AttentionStrides& s, int64_t b, int64_t h, int64_t row, int64_t e) {
    return static_cast<size_t>(b * s.batch + h * s.head + row * s.row + e * s.element);
  }
  static void row(const AttentionProblem& p, const std::vector<Data>& data, const Data* bias, const Data* sinks,
                  const Place& x, int64_t keys, int64_t own, std::vector<double>& want) {
    const int64_t kv = x.h / (p.heads / p.kv_heads);
    std::vector<double> scores(static_cast<size_t>(p.keys), -INFINITY);
    double top = sinks == nullptr ? -INFINITY : sinks->values[static_cast<size_t>(x.h)];
    for (int64_t key = 0; key < keys; ++key) {
      if (p.causal && key > own) continue;
      if (p.window > 0 && std::abs(own - key) >= p.window) continue;
      double sum = 0;
      for (int64_t e = 0; e < p.depth; ++e) {
        sum += data[0].values[at(p.q, x.b, x.h, x.i, e)] * element(p, data[1], p.k, x.b, kv, key, e);
      }
      sum *= *p.scale;
      if (p.soft_cap > 0) sum = p.soft_cap * std::tanh(sum / p.soft_cap);
      if (bias != nullptr) {
        const AttentionBias& s = *p.bias;
        const double value =
            bias->values[static_cast<size_t>(x.b * s.batch + x.h * s.head + x.i * s.query + key * s.key)];
        if (s.dtype == DType::kBool && value == 0) continue;
        if (s.dtype != DType::kBool) sum += value;
      }
      scores[static_cast<size_t>(key)] = sum;
      top = std::max(top, sum);
    }
    const bool is_empty = std::isinf(top);
    double all = sinks == nullptr ? 0 : std::exp(sinks->values[static_cast<size_t>(x.h)] - top);
    for (const double s : scores) all += is_empty ? 0 : std::exp(s - top);
    for (int64_t e = 0; e < p.width; ++e) {
      double sum = 0;
      for (int64_t key = 0; key < keys && !is_empty; ++key) {
        const double s = scores[static_cast<size_t>(key)];
        if (!std::isinf(s)) sum += std::exp(s - top) / all * element(p, data[2], p.v, x.b, kv, key, e);
      }
      want[at(p.o, x.b, x.h, x.i, e)] = sum;
    }
  }

  static TempDir* cache_;
  static const std::vector<int32_t>* table_;
  size_t next_choice_ = 0;
  std::shared_ptr<const CudaContext> context_ = CudaContext::of_device(0);
  void* stream_ = context_->stream();
};
TempDir* OpsAttention::cache_ = nullptr;
const std::vector<int32_t>* OpsAttention::table_ = nullptr;

AttentionProblem sized(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t depth) {
  AttentionProblem p;
  p.batch = batch, p.heads = heads, p.queries = queries, p.keys = keys, p.depth = depth;
  return p;
}

TEST_F(OpsAttention, DenseAndStrided) {
  check(sized(2, 3, 37, 77, 40));
  // [batch][row][head][element] with room between rows, values of another width, heads that share keys.
  AttentionProblem p = sized(2, 6, 21, 50, 32);
  p.type = DType::kBF16;
  p.kv_heads = 2, p.width = 24;
  p.q = {21 * 200, 32, 200}, p.k = {50 * 64, 32, 64}, p.v = {50 * 72, 32, 72}, p.o = {21 * 160, 24, 160};
  check(p);
  // Rows that begin at multiples of 2 bytes; K by columns.
  p = sized(1, 2, 20, 33, 19);
  p.k = {2 * 19 * 33, 19 * 33, 1, 33};
  check(p);
}

// Values with more columns than a block holds; latent attention, whose values are the first elements of its keys.
TEST_F(OpsAttention, WideHeads) {
  check(sized(1, 2, 70, 90, 512));
  AttentionProblem p = sized(2, 3, 20, 130, 320);
  p.type = DType::kBF16, p.width = 264, p.causal = true;
  check(p);
  p = sized(2, 16, 1, 300, 576);
  p.width = 512, p.kv_heads = 1, p.lengths = true;
  check(p, {300, 77});
}

TEST_F(OpsAttention, MasksAndScores) {
  AttentionProblem p = sized(1, 2, 70, 90, 32);
  p.causal = true, p.soft_cap = 2, p.scale = 0.7;
  check(p);
  p.window = 17, p.causal = false, p.soft_cap = 0;
  p.sinks = DType::kF32;
  check(p);
  p.window = 0;
  p.bias = AttentionBias{DType::kF16, 0, 70 * 90, 90, 1};
  check(p);
  p.bias = AttentionBias{DType::kBool, 0, 0, 90, 1};
  check(p);
}

// Sequences of fewer keys than there is memory for, none among them; few queries of heads that share keys are one tile.
TEST_F(OpsAttention, Lengths) {
  AttentionProblem p = sized(5, 8, 1, 700, 64);
  p.kv_heads = 2, p.lengths = true;
  check(p, {700, 1, 0, 333, 64});
  p.queries = 40, p.heads = 2, p.causal = true;
  check(p, {700, 40, 3, 333, 64});
}

// As many pages of a pool as sequences have, in an order of no kind; some of the pool are nobody's. Entries behind
// `lengths` name no page.
std::vector<int32_t> table_of(const AttentionProblem& p, const std::vector<int32_t>& lengths = {}) {
  const int64_t page = p.pages->page, entries = (p.keys + page - 1) / page;
  std::vector<int32_t> pages(static_cast<size_t>(p.pages->pages)), table;
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(static_cast<unsigned>(p.keys + page)));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t i = 0; i < std::max(entries, p.pages->sequence); ++i) {
      const bool is_used = i < entries && (lengths.empty() || i * page < lengths[static_cast<size_t>(b)]);
      const int32_t none[] = {-1, static_cast<int32_t>(p.pages->pages), std::numeric_limits<int32_t>::min()};
      table.push_back(is_used ? pages.at(static_cast<size_t>(b * entries + i)) : none[(b + i) % 3]);
    }
  }
  return table;
}
AttentionProblem in_pages(AttentionProblem p, int64_t page) {
  p.pages = AttentionPages{.page = page, .pages = p.batch * ((p.keys + page - 1) / page) + 3};
  return p;
}

// Pages smaller than tiles of keys, as large, larger; dense ones, those of vLLM ([page][key][head][element]), and K and
// V in one page. An ordinary run gives each family pages that are smaller than its tiles and pages that are larger.
TEST_F(OpsAttention, Pages) {
  const bool all = test::takes_all_instances();
  size_t turn = 0;
  const auto takes_turn = [&] { return all || turn++ % 2 == 0; };
  for (const int64_t page : {16, 64, 256, 128}) {
    for (const char* family : {"few rows", "mma", "64x"}) {
      if (!takes_turn()) continue;
      SCOPED_TRACE(fmt::format("pages of {} keys, {}", page, family));
      AttentionProblem p = sized(3, 4, 3, 600, 64);
      p.kv_heads = 2, p.causal = true;
      p = in_pages(p, page);
      if (all || page < 128) check(p, {}, table_of(p), family);
      p.type = DType::kBF16, p.lengths = true;
      p.k = p.v = {page * 2 * 64, 64, 2 * 64};
      if (all || page >= 128) check(p, {600, 1, 317}, table_of(p, {600, 1, 317}), family);
    }
    for (const char* family : {"mma", "128x"}) {
      if (!takes_turn()) continue;
      SCOPED_TRACE(fmt::format("pages of {} keys, {}", page, family));
      AttentionProblem p = sized(2, 2, 130, 300, 32);
      p.lengths = p.causal = true, p.width = 48;
      p = in_pages(p, page);
      p.k = {2 * page * 2 * 48, 48, 2 * 48}, p.v = {2 * page * 2 * 48, 48, 2 * 48};
      check(p, {300, 132}, table_of(p, {300, 132}), family);
    }
  }
}

// What the first choice is: a step of decoding, a prompt, a sequence without keys, lines of a table with room behind
// them, keys without a page, K by columns, rows that begin anywhere, one page.
TEST_F(OpsAttention, PagesOfManyKinds) {
  AttentionProblem p = sized(5, 8, 1, 700, 64);
  p.kv_heads = 2, p.lengths = true;
  p = in_pages(p, 32);
  p.pages->sequence = 25;
  check(p, {700, 1, 0, 333, 64}, table_of(p, {700, 1, 0, 333, 64}));
  p = in_pages(sized(2, 2, 130, 130, 128), 16);
  p.causal = true, p.window = 50;
  check(p, {}, table_of(p));
  p = in_pages(sized(2, 2, 9, 96, 40), 48);
  check(p, {}, table_of(p, {48, 96}));
  p = in_pages(sized(2, 2, 9, 90, 40), 32);
  p.k = {2 * 40 * 32, 40 * 32, 1, 32}, p.v = {2 * 40 * 32, 40 * 32, 1, 32};
  check(p, {}, table_of(p));
  p = in_pages(sized(2, 3, 20, 150, 19), 32);
  check(p, {}, table_of(p));
  p = sized(3, 1, 5, 16, 64);
  p.pages = AttentionPages{.page = 16, .pages = 1};
  check(p, {}, {0, 0, 0});
}

TEST_F(OpsAttention, RefusesWrongPages) {
  const auto why = [](const AttentionProblem& p) {
    return std::string(error_of([&] { Attention::prepare(p); }).what());
  };
  AttentionProblem p = sized(1, 2, 4, 64, 16);
  p.pages = AttentionPages{.page = 20, .pages = 4};
  EXPECT_THAT(why(p), HasSubstr("multiple of 16 keys"));
  p.pages = AttentionPages{.page = 16, .pages = 0};
  EXPECT_THAT(why(p), HasSubstr("the pool has 0 pages"));
  p.pages = AttentionPages{.page = 16, .pages = 4, .sequence = -1};
  EXPECT_THAT(why(p), HasSubstr("from sequence to sequence"));
  p.pages = AttentionPages{.page = 16, .pages = 4};
  const Attention attention = Attention::prepare(p);
  const Data pool = random(resolve(p).spans[1], p.type, 1), o = random(resolve(p).spans[3], p.type, 1);
  EXPECT_THAT(std::string(error_of([&] {
                            attention({pool.address(), pool.address(), pool.address(), o.address()}, stream_);
                          }).what()),
              HasSubstr("attention: page_table"));
}

TEST_F(OpsAttention, NothingToCompute) {
  AttentionProblem p = sized(0, 2, 4, 4, 16);
  Attention::prepare(p)({}, stream_);
}

TEST_F(OpsAttention, RefusesWhatItCannotDo) {
  const auto why = [](const AttentionProblem& p) {
    return std::string(error_of([&] { Attention::prepare(p); }).what());
  };
  AttentionProblem p = sized(1, 6, 4, 4, 16);
  p.kv_heads = 4;
  EXPECT_THAT(why(p), HasSubstr("6 heads of queries cannot share 4"));
  p = sized(1, 2, 4, 0, 16);
  EXPECT_THAT(why(p), HasSubstr("keys is 0"));
  p = sized(1, 2, 4, 4, 577);
  EXPECT_THAT(why(p), HasSubstr("576 elements"));
  p = sized(1, 2, 4, 4, 16);
  p.type = DType::kF32;
  EXPECT_THAT(why(p), HasSubstr("no kernel for f32"));
  p = sized(1, 2, 4, 4, 16);
  p.o = {0, 64, 16};
  p.o.head = 16;
  EXPECT_THAT(why(p), HasSubstr("two elements of O"));
  p = sized(1, 1, 4, 4, 16);
  const Attention attention = Attention::prepare(p);
  const auto call_error = [](const auto& call) { return std::string(error_of(call).what()); };
  const Data q = random(resolve(p).spans[0], p.type, 1);
  EXPECT_THAT(call_error([&] {
                attention({q.address(), q.address(), q.address(), q.address()}, stream_);
              }),
              HasSubstr("it overlaps O"));
  EXPECT_THAT(call_error([&] {
                attention({nullptr, q.address(), q.address(), q.address()}, stream_);
              }),
              HasSubstr("attention: Q"));
}

}  // namespace
}  // namespace heddle::ops
