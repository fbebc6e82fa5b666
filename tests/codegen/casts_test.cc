// Casts to types of floating point round once, whatever lies between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <type_traits>

#include "harness.h"

namespace heddle::testing {
namespace {

constexpr DType kFloats[] = {DType::kF32,        DType::kF16,    DType::kBF16,       DType::kF8E4M3,
                             DType::kF8E4M3Fnuz, DType::kF8E5M2, DType::kF8E5M2Fnuz, DType::kF4E2M1};
constexpr unsigned kSeed = 14;

// Beside the middle between two neighbours of the type, nearer than f32 tells, and on it.
std::vector<double> near_ties(DType type) {
  std::vector<double> values = {0,
                                -0.0,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                1e300,
                                -1e300,
                                1e-300,
                                FLT_MAX,
                                0x1p-160,
                                1 + 0x1p-11 + 0x1p-40,
                                0x1p-134 + 0x1p-165,
                                0x1.fffffffp15};
  std::mt19937 engine(kSeed);
  const uint32_t codes = type == DType::kF32 ? 0x7f7fffff : 0x7fff >> (16 - 8 * static_cast<int>(size_of(type)));
  for (int i = 0; i < 40; ++i) {
    double low = 0, high = 0;
    if (type == DType::kF32) {
      low = std::bit_cast<float>(static_cast<uint32_t>(engine() % codes));
      high = std::nextafterf(static_cast<float>(low), INFINITY);
    } else {
      const uint32_t code = engine() % codes;
      low = decode_float(type, code), high = decode_float(type, code + 1);
    }
    const double middle = (low + high) / 2;
    for (const double v : {middle, middle * (1 + 0x1p-42), middle * (1 - 0x1p-42)})
      values.insert(values.end(), {v, -v});
  }
  return values;
}

// Integers beside ties of bf16 and f32, up to the last ones.
template <typename T>
std::vector<T> long_integers() {
  std::vector<T> values = {0, 1, std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  std::mt19937_64 engine(kSeed);
  constexpr int kBits = std::numeric_limits<T>::digits;
  for (int bit = 24; bit < kBits; ++bit) {
    for (const int digits : {8, 24}) {
      if (bit < digits) continue;
      const auto unit = uint64_t{1} << (bit + 1 - digits);
      const uint64_t low = (uint64_t{1} << bit) + (engine() % (uint64_t{1} << (digits - 1))) * unit;
      for (const uint64_t v : {low + unit / 2, low + unit / 2 + 1, low + unit / 2 - 1}) {
        values.push_back(static_cast<T>(v));
        if (std::is_signed_v<T>) values.push_back(static_cast<T>(-v));
      }
    }
  }
  return values;
}

// Casts to these types in one kernel; only equal results will do.
template <typename T>
void add(Batch& batch, DType from, const std::vector<T>& values, std::span<const DType> to, bool saturate = true) {
  const auto count = static_cast<int64_t>(values.size());
  batch.add(
      fmt::format("from {}{}", to_string(from), saturate ? "" : ", not saturated"),
      [&](ir::Builder& b) {
        const auto x = b.constant(Tensor::of<T>(from, {count}, std::span(values)));
        for (const DType type : to) {
          const auto y = b.cast(x, type, saturate);
          // The comparison saturates.
          if (saturate) b.graph().output(std::string(to_string(type)), y);
          // In the middle of a kernel, too: the reference rounds to these types at once.
          if (size_of(type) == 1) b.graph().output("f32 of " + std::string(to_string(type)), b.cast(y, DType::kF32));
        }
      },
      1e-300);
}

TEST(Casts, DoublesRoundOnce) {
  std::vector<double> values;
  for (const DType type : kFloats) {
    const std::vector<double> some = near_ties(type);
    values.insert(values.end(), some.begin(), some.end());
  }
  Batch batch;
  add(batch, DType::kF64, values, kFloats);
  add(batch, DType::kF64, values, kFloats, false);
  batch.run();
}

TEST(Casts, IntegersRoundOnce) {
  Batch batch;
  add(batch, DType::kI64, long_integers<int64_t>(), kFloats);
  add(batch, DType::kU64, long_integers<uint64_t>(), kFloats);
  add(batch, DType::kI32, long_integers<int32_t>(), kFloats);
  add(batch, DType::kU32, long_integers<uint32_t>(), kFloats);
  batch.run();
}

// What the kernel reads itself is the product in f32, which bf16 does not hold.
TEST(Casts, ExcessPrecisionIsKeptWithinAKernel) {
  Batch batch;
  const std::vector<float> values = {1.001F, -3.1415F, 1e-20F, 7e30F, 0.3F};
  batch.add(
      "from f32",
      [&](ir::Builder& b) {
        const auto x = b.constant(Tensor::of<float>(DType::kF32, {5}, std::span(values)));
        const auto y = b.graph().emit(ir::Op::kCast, {x}, {{"to", DType::kBF16}, {"excess_precision", int64_t{1}}});
        b.graph().output("y", b.cast(y, DType::kF32));
      },
      1e-300);
  batch.run();
}

// If the kernel that computes quantised numbers also uses them, they need not become bytes, but their values must be
// the same.
TEST(Casts, BytesSaturateAndMayBeWidenedAgain) {
  std::vector<float> values = {NAN,   INFINITY, -INFINITY, 1e30F,  -1e30F,  0x1p31F, 0.5F,   1.5F,   -0.5F,
                               -0.0F, 127.5F,   254.5F,    255.5F, -127.5F, -128.5F, 251.5F, 129.5F, 130.5F};
  for (int i = -300; i <= 600; i += 7) values.push_back(static_cast<float>(i) + 0.25F);
  const auto count = static_cast<int64_t>(values.size());
  Batch batch;
  for (const DType byte : {DType::kU8, DType::kI8}) {
    for (const double zero : {0.0, 3.0, -126.0}) {
      batch.add(
          fmt::format("{} with zero point {}", to_string(byte), zero),
          [&](ir::Builder& b) {
            const auto x = b.constant(Tensor::of<float>(DType::kF32, {count}, std::span(values)));
            const auto sum = b.binary(ir::Op::kAdd, b.unary(ir::Op::kRound, x), zero);
            const auto bytes = b.cast(sum, byte);
            b.graph().output("bytes", bytes);
            const auto difference = b.binary(ir::Op::kSub, b.cast(bytes, DType::kI32), zero);
            b.graph().output("i32", difference);
            b.graph().output("i16", b.cast(difference, DType::kI16));
            b.graph().output("f32", b.binary(ir::Op::kMul, b.cast(b.cast(difference, DType::kI16), DType::kF32), 0.25));
          },
          1e-300);
    }
    batch.add(
        fmt::format("{} with a computed zero point", to_string(byte)),
        [&](ir::Builder& b) {
          const auto x = b.constant(Tensor::of<float>(DType::kF32, {count}, std::span(values)));
          const auto zero = b.broadcast(input(b, "zero", byte, {}), {count}, {});
          const auto bytes = b.cast(b.add(b.unary(ir::Op::kRound, x), b.cast(zero, DType::kF32)), byte);
          const auto difference = b.sub(b.cast(bytes, DType::kI32), b.cast(zero, DType::kI32));
          b.graph().output("i16", b.cast(difference, DType::kI16));
        },
        1e-300);
  }
  batch.run();
}

// Quotients by a scale, around all ties of the rounding that follows. The reference does not round them to f32 first,
// so those that are ties in f32 only are left out.
TEST(Casts, QuotientsRoundAsDivisions) {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 19);
  std::uniform_real_distribution<float> mantissa(1, 2);
  Batch batch;
  for (const DType byte : {DType::kU8, DType::kI8}) {
    for (int i = 0; i < 4; ++i) {
      const float scale = std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 20);
      const double zero = static_cast<int>(random() % 128);
      std::vector<float> values = {NAN, INFINITY, -INFINITY, 0.F, -0.F, 1e-45F};
      for (int k = -260; k < 260; ++k) {
        float x = (static_cast<float>(k) + 0.5F) * scale;
        for (int step = 0; step < 2; ++step) x = std::nextafter(x, -INFINITY);
        for (int step = 0; step < 5; ++step, x = std::nextafter(x, INFINITY)) {
          if (std::nearbyint(x * (1 / double{scale})) == std::nearbyint(x / scale)) values.push_back(x);
        }
      }
      const auto count = static_cast<int64_t>(values.size());
      batch.add(
          fmt::format("{} by {}", to_string(byte), scale),
          [&](ir::Builder& b) {
            const auto x = b.cast(b.constant(Tensor::of<float>(DType::kF32, {count}, std::span(values))), DType::kF64);
            const auto quotient = b.cast(b.binary(ir::Op::kMul, x, 1 / double{scale}), DType::kF32);
            const auto bytes = b.cast(b.binary(ir::Op::kAdd, b.unary(ir::Op::kRound, quotient), zero), byte);
            b.graph().output("bytes", bytes);
            const auto difference = b.binary(ir::Op::kSub, b.cast(bytes, DType::kI32), zero);
            b.graph().output("f32", b.binary(ir::Op::kMul, b.cast(difference, DType::kF32), 0.25));
          },
          1e-300);
    }
  }
  batch.run();
}

// The functions of a byte are a table: SiLU with its gate quantised before the product, of bytes in memory and of bytes
// that the kernel makes.
TEST(Casts, FunctionsOfBytesAreTables) {
  std::vector<float> values = {NAN, INFINITY, -INFINITY};
  for (int i = -140; i < 140; ++i) values.push_back(static_cast<float>(i) * 0.05F);
  const auto count = static_cast<int64_t>(values.size());
  Batch batch;
  for (const DType byte : {DType::kU8, DType::kI8}) {
    const double zero = byte == DType::kU8 ? 120 : -9;
    const auto quantised = [=](ir::Builder& b, ir::ValueId x, double scale, double z) {
      return b.cast(b.binary(ir::Op::kAdd, b.unary(ir::Op::kRound, b.binary(ir::Op::kMul, x, 1 / scale)), z), byte);
    };
    const auto number = [](ir::Builder& b, ir::ValueId q, double scale, double z) {
      return b.binary(ir::Op::kMul, b.cast(b.binary(ir::Op::kSub, b.cast(q, DType::kI32), z), DType::kF32), scale);
    };
    for (const bool in_memory : {false, true}) {
      batch.add(
          fmt::format("{}{}", to_string(byte), in_memory ? " in memory" : ""),
          [&](ir::Builder& b) {
            const auto x = b.constant(Tensor::of<float>(DType::kF32, {count}, std::span(values)));
            const auto q = in_memory ? input(b, "q", byte, {count}) : quantised(b, x, 0.05, zero);
            const auto v = number(b, q, 0.05, zero);
            const auto one = b.full(DType::kF32, {count}, 1);
            const auto gate = b.div(one, b.add(one, b.unary(ir::Op::kExp, b.unary(ir::Op::kNeg, v))));
            const auto y = b.mul(v, number(b, quantised(b, gate, 0.0041, 3), 0.0041, 3));
            const auto stored = quantised(b, y, 0.03, 11);
            b.graph().output("bytes", stored);
            b.graph().output("i16", b.cast(b.binary(ir::Op::kSub, b.cast(stored, DType::kI32), 11.0), DType::kI16));
            b.graph().output("f32", number(b, stored, 0.5, 11));
          },
          1e-300);
    }
  }
  batch.run();
}

}  // namespace
}  // namespace heddle::testing
