// The client API of attention on the emulator: results, what it refuses.
#include "ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/file/file.h"
#include "heddle/ops.h"
#include "runtime/cuda/device.h"
#include "tests/error_of.h"
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

  // Runs a problem on random data, and compares with sums in double; what lies between the elements of O stays.
  void check(const AttentionProblem& given, const std::vector<int32_t>& lengths = {}) {
    const ResolvedAttention resolved = resolve(given);
    const AttentionProblem& p = resolved.problem;
    std::vector<Data> data;
    for (size_t i = 0; i < resolved.spans.size(); ++i) {
      const DType type = resolved.desc.operands[i].dtype;
      if (type == DType::kI32) {
        std::vector<uint8_t> bytes(lengths.size() * sizeof(int32_t));
        std::memcpy(bytes.data(), lengths.data(), bytes.size());
        data.push_back(make(type, bytes));
      } else {
        data.push_back(random(resolved.spans[i], type, i + 1));
      }
    }
    AttentionOperands more{data[0].address(), data[1].address(), data[2].address(), data[3].address()};
    size_t next = 4;
    const Data *bias = nullptr, *sinks = nullptr;
    if (p.bias) bias = &data[next], more.bias = data[next++].address();
    if (p.sinks) sinks = &data[next], more.sinks = data[next++].address();
    if (p.lengths) more.lengths = data[next++].address();
    const Attention attention = Attention::prepare(given);
    SCOPED_TRACE(attention.config());
    for (int run = 0; run < 2; ++run) {  // what is counted has to be zero again
      attention(more, stream_);
    }
    context_->synchronize();
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
        sum += data[0].values[at(p.q, x.b, x.h, x.i, e)] * data[1].values[at(p.k, x.b, kv, key, e)];
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
        if (!std::isinf(s)) sum += std::exp(s - top) / all * data[2].values[at(p.v, x.b, kv, key, e)];
      }
      want[at(p.o, x.b, x.h, x.i, e)] = sum;
    }
  }

  static TempDir* cache_;
  std::shared_ptr<const CudaContext> context_ = CudaContext::of_device(0);
  void* stream_ = context_->stream();
};
TempDir* OpsAttention::cache_ = nullptr;

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
