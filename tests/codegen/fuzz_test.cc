#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "harness.h"

namespace heddle::testing {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// Random graphs of memory-bound nodes on small shapes whose extents divide each other often, so that reshapes,
// reductions and broadcasts meet. Values stay near 1; nothing discontinuous reads a computed float.
class Generator {
 public:
  Generator(Builder& b, unsigned seed, DType dtype) : b_(b), random_(seed), dtype_(dtype) {}

  void run() {
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      values_.push_back(b_.graph().parameter("x" + std::to_string(i), {dtype_, shape()}));
    }
    const int steps = pick(2, 14);
    for (int i = 0; i < steps; ++i) {
      const ValueId v = step(values_[static_cast<size_t>(pick(0, static_cast<int>(values_.size()) - 1))]);
      if (element_count(b_.shape(v)) <= 20000) values_.push_back(v);
    }
    const int outputs = pick(1, 3);
    std::vector<ValueId> made;
    for (ValueId v : values_) {
      if (b_.graph().producer(v).op != Op::kParameter) made.push_back(v);
    }
    if (made.empty()) made.push_back(b_.unary(Op::kTanh, values_[0]));
    for (int i = 0; i < outputs; ++i) {
      const ValueId v = i == 0 ? made.back() : made[static_cast<size_t>(pick(0, static_cast<int>(made.size()) - 1))];
      b_.graph().output("y" + std::to_string(i), v);
    }
  }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  int64_t extent() {
    static const int64_t kExtents[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 5, 7, 36, 48};
    return kExtents[pick(0, 12)];
  }
  Shape shape() {
    Shape s(static_cast<size_t>(pick(1, 4)));
    do {
      for (int64_t& e : s) e = extent();
    } while (element_count(s) > 8000);
    return s;
  }
  int64_t dim(ValueId v) { return pick(0, b_.rank(v) - 1); }

  ValueId step(ValueId x) {
    const int choice = pick(0, 15);
    if (b_.rank(x) == 0 || element_count(b_.shape(x)) == 0) return b_.unary(Op::kTanh, x);
    switch (choice) {
      case 0:
        return b_.unary(Op::kTanh, x);
      case 1:
        return b_.unary(Op::kExp, b_.unary(Op::kTanh, x));
      case 2:
        return b_.sigmoid(x);
      case 3:
        return combine(x);
      case 4:
        return combine(x);
      case 5:
        return reshape(x);
      case 6: {
        ir::Ints perm(static_cast<size_t>(b_.rank(x)));
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), random_);
        return b_.transpose(x, perm);
      }
      case 7:
        return slice(x);
      case 8:
        return pad(x);
      case 9: {
        const int64_t d = dim(x);
        const std::vector<ValueId> parts = {x, b_.unary(Op::kNeg, x), x};
        return b_.concat(std::span(parts).first(static_cast<size_t>(pick(1, 3))), d);
      }
      case 10:
        return b_.softmax(x, {dim(x)});
      case 11: {
        const int64_t d = dim(x);
        const ValueId m = b_.mean(x, {d}, true);
        return pick(0, 1) ? b_.sub(x, m) : m;
      }
      case 12: {
        static const char* kKinds[] = {"max", "min", "sum"};
        ir::Ints dims = {dim(x)};
        if (b_.rank(x) > 1 && pick(0, 2) == 0) dims = {0, b_.rank(x) - 1};
        return b_.binary(Op::kMul, b_.reduce(kKinds[pick(0, 2)], x, dims, pick(0, 1) != 0), 0.125);
      }
      case 13:
        return gather(x);
      case 14:
        return b_.emit(Op::kReverse, {x}, {{"dims", ir::Ints{dim(x)}}});
      default: {
        const int64_t d = dim(x);
        const auto at = b_.iota(DType::kI32, b_.shape(x), d);
        const auto limit = b_.full(DType::kI32, b_.shape(x), static_cast<double>(pick(0, 8)));
        return b_.select(b_.binary(Op::kLt, at, limit), x, b_.binary(Op::kMul, x, 0.5));
      }
    }
  }

  ValueId combine(ValueId x) {
    static const Op kOps[] = {Op::kAdd, Op::kSub, Op::kMax, Op::kMin, Op::kMul};
    const Op op = kOps[pick(0, 4)];
    std::vector<ValueId> fits;
    for (ValueId v : values_) {
      const Shape &a = b_.shape(x), &s = b_.shape(v);
      bool good = s.size() <= a.size();
      for (size_t i = 0; good && i < s.size(); ++i)
        good = s[s.size() - 1 - i] == a[a.size() - 1 - i] || s[s.size() - 1 - i] == 1;
      if (good) fits.push_back(v);
    }
    const ValueId other = fits[static_cast<size_t>(pick(0, static_cast<int>(fits.size()) - 1))];
    return b_.unary(Op::kTanh, b_.binary(op, x, other));
  }

  ValueId reshape(ValueId x) {
    int64_t left = element_count(b_.shape(x));
    Shape to;
    for (int i = pick(0, 3); i > 0; --i) {
      const int64_t e = extent();
      if (left % e != 0) continue;
      to.push_back(e);
      left /= e;
    }
    to.insert(to.begin() + pick(0, static_cast<int>(to.size())), left);
    return b_.reshape(x, to);
  }

  ValueId slice(ValueId x) {
    ir::Ints starts, limits, strides;
    for (int64_t e : b_.shape(x)) {
      const int64_t start = pick(0, static_cast<int>(e) - 1);
      starts.push_back(pick(0, 1) ? start : 0);
      limits.push_back(pick(0, 1) ? e : std::max<int64_t>(starts.back() + 1, e - 1));
      strides.push_back(pick(0, 3) == 0 ? 2 : 1);
    }
    return b_.slice(x, starts, limits, strides);
  }

  ValueId pad(ValueId x) {
    static const char* kModes[] = {"constant", "edge", "reflect", "wrap"};
    ir::Ints low, high;
    for (int i = 0; i < b_.rank(x); ++i) {
      low.push_back(pick(0, 2) == 0 ? pick(0, 3) : 0);
      high.push_back(pick(0, 2) == 0 ? pick(0, 3) : 0);
    }
    return b_.emit(Op::kPad, {x, b_.scalar(dtype_, 0.5)},
                   {{"low", low}, {"high", high}, {"mode", std::string(kModes[pick(0, 3)])}});
  }

  ValueId gather(ValueId x) {
    const int64_t d = dim(x), extent = b_.shape(x)[static_cast<size_t>(d)], n = pick(1, 5);
    std::vector<int64_t> at;
    for (int64_t i = 0; i < n; ++i) at.push_back(pick(static_cast<int>(-extent), static_cast<int>(extent) - 1));
    return b_.gather(x, b_.ints(at), d);
  }

  Builder& b_;
  std::mt19937 random_;
  DType dtype_;
  std::vector<ValueId> values_;
};

TEST(StitchFuzz, RandomGraphs) {
  // HEDDLE_FUZZ_SEED and HEDDLE_FUZZ_COUNT widen the search by hand.
  const char* first = std::getenv("HEDDLE_FUZZ_SEED");
  const char* count = std::getenv("HEDDLE_FUZZ_COUNT");
  const unsigned seed = first ? static_cast<unsigned>(std::atoi(first)) : 1;
  const unsigned graphs = count ? static_cast<unsigned>(std::atoi(count)) : 48;
  for (unsigned at = 0; at < graphs; at += 24) {
    // Tiny thresholds make small graphs take the ways of large ones: several tasks, split reductions.
    Target target = test_target(2);
    if (at % 48 != 0) {
      target.cpu.barrier_us = 1e-6;
      target.cpu.copy_gbps = 1e-4;
      target.cpu.l3_bytes = 4096;
      target.cuda.model.chip.copy_tbps = target.cuda.model.chip.sm_gbps = 1e-6;
      target.cuda.model.chip.graph_boundary_us = 1e-3;
      target.cuda.model.chip.last_step_us = 0;
    }
    Batch batch(target);
    for (unsigned k = at; k < std::min(graphs, at + 24); ++k) {
      // Most in f32. Kernels keep intermediate values of 16-bit types in f32, as the reference does here.
      const DType dtype = k % 4 != 3    ? DType::kF32
                          : k % 8 == 3  ? DType::kBF16
                          : k % 16 == 7 ? DType::kF16
                                        : DType::kF64;
      const double tolerance = dtype == DType::kBF16 ? 5e-2 : dtype == DType::kF16 ? 8e-3 : 1e-3;
      batch.add(
          "seed " + std::to_string(seed + k), [&](Builder& b) { Generator(b, seed + k, dtype).run(); }, tolerance);
    }
    batch.run();
  }
}

}  // namespace
}  // namespace heddle::testing
