#include "emulator/wgmma.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "emulator/collectives.h"
#include "emulator/matrix.h"

namespace heddle::emulator {
namespace {

using emulated::WgmmaCall;

// A descriptor of an operand, in bytes.
struct Operand {
  uint32_t start, leading, stride;
  uint32_t swizzle;  // pieces of 16 bytes in a swizzled row: 1 (none), 2, 4, 8
};

Operand parse(Scheduler& s, uint64_t descriptor, Place place) {
  constexpr uint32_t kPieces[] = {1, 8, 4, 2};
  const auto field = [&](int at) { return static_cast<uint32_t>(descriptor >> at & 0x3fff) << 4; };
  if ((descriptor >> 49 & 7) != 0) {
    s.fail("wgmma: a descriptor with a base offset is not emulated ({}:{})", place.file, place.line);
  }
  return {field(0), field(16), field(32), kPieces[descriptor >> 62]};
}

// The piece of 16 bytes with `i` counting along m or n (rows, for k-major operands; pieces otherwise) and `k` along k
// (pieces, for k-major operands; rows otherwise). Canonical layouts, in bytes:
//   k-major      rows in groups of 8, `stride` apart; a row has `swizzle` pieces, without swizzle one: pieces of k are
//                then `leading` apart
//   m/n-major    rows of k in groups of 8; strips of `swizzle` pieces along m or n `leading` apart, groups `stride`
//                apart; without swizzle it is the other way round
// The swizzle is a property of the address: bits 4.. are xored with bits 7...
uint32_t address_of(const Operand& o, bool mn_major, uint32_t i, uint32_t k) {
  uint32_t address = o.start;
  if (!mn_major) {
    address += i / 8 * o.stride + i % 8 * o.swizzle * 16 + k * (o.swizzle == 1 ? o.leading : 16);
  } else if (o.swizzle == 1) {
    address += i * o.stride + k / 8 * o.leading + k % 8 * 16;
  } else {
    address += i / o.swizzle * o.leading + i % o.swizzle * 16 + k / 8 * o.stride + k % 8 * o.swizzle * 16;
  }
  return address ^ ((address >> 7 & (o.swizzle - 1)) << 4);
}

// Where a product reads, and from where it was asked for.
struct Reader {
  Scheduler& s;
  Block& block;
  const WgmmaCall& call;
  Place place;
};

// `rows` rows (of A, or columns of B) from `first` on, as to[k * rows + row].
template <typename T>
void read_operand(const Reader& reader, uint64_t descriptor, bool mn_major, uint32_t first, uint32_t rows, T* to) {
  const Operand o = parse(reader.s, descriptor, reader.place);
  T values[16];
  const auto piece = [&](uint32_t i, uint32_t k) {
    const uint8_t* at = shared_at(reader.s, reader.block, address_of(o, mn_major, i, k), 16, 16, "wgmma", reader.place);
    return decode(reader.call.type, at, values);
  };
  const uint32_t depth = 32 / element_bytes(reader.call.type);
  if (!mn_major) {
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t count = piece(first + row, half);
        for (uint32_t j = 0; j < count; ++j) to[(half * count + j) * rows + row] = values[j];
      }
    }
    return;
  }
  for (uint32_t k = 0; k < depth; ++k) {
    for (uint32_t row = 0; row < rows; row += 8) {
      piece((first + row) / 8, k);
      std::memcpy(to + k * rows + row, values, 8 * sizeof(T));
    }
  }
}

// The 16 rows of A that a warp has in registers, as to[k * 16 + row].
template <typename T>
void read_words(emulated::Element type, const uint32_t* const* lanes, T* to) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint8_t bytes[16];
    T values[16];
    std::memcpy(bytes, lanes[lane], sizeof bytes);
    const uint32_t count = decode(type, bytes, values), each = count / 4;  // elements of a word
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t word = i / each, row = lane / 4 + 8 * (word % 2);
      const uint32_t k = each * (lane % 4 + 4 * (word / 2)) + i % each;
      to[k * 16 + row] = values[i];
    }
  }
}

// sums[16][n] += a[depth][16] b[depth][n].
template <typename T>
inline __attribute__((always_inline)) void multiply_add(T* sums, const T* a, const T* b, uint32_t n, uint32_t depth) {
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t k = 0; k < depth; ++k) {
      const T factor = a[k * 16 + row];
      T* __restrict to = sums + row * n;
      const T* __restrict from = b + k * n;
      for (uint32_t column = 0; column < n; ++column) to[column] += factor * from[column];
    }
  }
}
__attribute__((target("avx2,fma"))) void multiply_add_avx2(float* sums, const float* a, const float* b, uint32_t n,
                                                           uint32_t depth) {
  multiply_add(sums, a, b, n, depth);
}
__attribute__((target("avx2,fma"))) void multiply_add_avx2(uint32_t* sums, const uint32_t* a, const uint32_t* b,
                                                           uint32_t n, uint32_t depth) {
  multiply_add(sums, a, b, n, depth);
}

// Sum (row, column) of the warp's 16 x n: of which lane, which of its registers.
struct Holder {
  uint32_t lane, index;
};
Holder holder_of(uint32_t row, uint32_t column) {
  return {row % 8 * 4 + column % 8 / 2, column / 8 * 4 + row / 8 * 2 + column % 2};
}

template <typename T>
void execute(Scheduler& s, Block& block, const Product& product, Place place) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;  // integers wrap
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const WgmmaCall& call = product.call;
  const uint32_t depth = 32 / element_bytes(call.type), n = call.n;
  static std::vector<T> a, b;
  static std::vector<Wide> sums;
  a.resize(depth * 16);
  b.resize(depth * n);
  sums.resize(16 * n);
  const Reader reader{s, block, call, place};
  // Beside unsigned bytes, B has signed ones.
  WgmmaCall second = call;
  if (call.type == emulated::Element::kUint8) second.type = emulated::Element::kInt8;
  read_operand(Reader{s, block, second, place}, call.b, call.mn_b, 0, n, b.data());
  for (uint32_t warp = 0; warp < 4; ++warp) {
    if (call.words != nullptr) {
      read_words(call.type, product.words.data() + warp * 32, a.data());
    } else {
      read_operand(reader, call.a, call.mn_a, warp * 16, 16, a.data());
    }
    std::fill(sums.begin(), sums.end(), Wide{});
    void* const* lanes = product.sums.data() + warp * 32;
    for (uint32_t i = 0; call.accumulate && i < 16 * n; ++i) {
      const Holder h = holder_of(i / n, i % n);
      sums[i] = static_cast<Wide>(static_cast<const T*>(lanes[h.lane])[h.index]);
    }
    const auto* wide_a = reinterpret_cast<const Wide*>(a.data());
    const auto* wide_b = reinterpret_cast<const Wide*>(b.data());
    if (avx2) {
      multiply_add_avx2(sums.data(), wide_a, wide_b, n, depth);
    } else {
      multiply_add(sums.data(), wide_a, wide_b, n, depth);
    }
    for (uint32_t i = 0; i < 16 * n; ++i) {
      const Holder h = holder_of(i / n, i % n);
      static_cast<T*>(lanes[h.lane])[h.index] = static_cast<T>(sums[i]);
    }
  }
}

Warpgroup& warpgroup_of(Scheduler& s, uint32_t* warp_in_group) {
  Block& block = *s.current().owner;
  const auto number = static_cast<uint32_t>(s.current().warp - block.warps.data());
  *warp_in_group = number % 4;
  return block.warpgroups[number / 4];
}

// Products that all four warps asked for happen, in order, until `until` have.
void run_products(Scheduler& s, Warpgroup& group, uint64_t until, Place place) {
  Block& block = *s.current().owner;
  while (group.done < until && !group.products.empty() && group.products.front().warps == 4) {
    const Product& product = group.products.front();
    if (is_integer(product.call.type)) {
      execute<int32_t>(s, block, product, place);
    } else {
      execute<float>(s, block, product, place);
    }
    group.products.pop_front();
    ++group.done;
  }
}

void add_product(Scheduler& s, const uint64_t* lanes, Place place) {
  Warp& warp = *s.current().warp;
  uint32_t number = 0;
  Warpgroup& group = warpgroup_of(s, &number);
  const auto& first = *reinterpret_cast<const WgmmaCall*>(lanes[0]);
  if (!warp.fenced) s.fail("wgmma without a fence before it ({}:{})", place.file, place.line);
  const size_t at = warp.products++ - group.done;
  if (at == group.products.size()) group.products.push_back({first, {}, {}});
  Product& product = group.products[at];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const auto& call = *reinterpret_cast<const WgmmaCall*>(lanes[lane]);
    const WgmmaCall& same = product.call;
    if (call.a != same.a || call.b != same.b || call.accumulate != same.accumulate || call.n != same.n) {
      s.fail("wgmma: the threads of a warpgroup give different operands ({}:{})", place.file, place.line);
    }
    product.sums[number * 32 + lane] = call.d;
    product.words[number * 32 + lane] = call.words;
  }
  if (++product.warps < 4) return;
  constexpr uint64_t kAll = ~uint64_t{0};
  if (group.waiting.empty() && !s.random().one_in(4)) return;
  run_products(s, group, kAll, place);
  for (Thread* thread : group.waiting) s.wake(thread);
  group.waiting.clear();
}

}  // namespace

void wgmma(Scheduler& s, const WgmmaCall& call, Place place) {
  const size_t threads = s.current().owner->threads.size();
  if (s.current().linear / 128 * 128 + 128 > threads) {
    s.fail("wgmma of the last {} threads of a block, which are no warpgroup ({}:{})", threads % 128, place.file,
           place.line);
  }
  whole_warp(s, Collective::kWgmma, reinterpret_cast<uint64_t>(&call), place, &add_product);
}

void wgmma_wait(Scheduler& s, uint32_t pending, Place place) {
  whole_warp(s, Collective::kWgmmaWait, pending, place, nullptr);
  uint32_t number = 0;
  Warpgroup& group = warpgroup_of(s, &number);
  const std::vector<uint64_t>& commits = s.current().warp->commits;
  if (commits.size() <= pending) return;
  const uint64_t until = commits[commits.size() - 1 - pending];
  for (run_products(s, group, until, place); group.done < until; run_products(s, group, until, place)) {
    group.waiting.push_back(&s.current());
    s.wait(Wait::kProducts, 0, place);
  }
}

void set_registers(Scheduler& s, uint32_t count, Place place) {
  if (count % 8 != 0 || count < 24 || count > 256) {
    s.fail("setmaxnreg: {} registers ({}:{})", count, place.file, place.line);
  }
  whole_warp(s, Collective::kRegisters, count, place, [](Scheduler& s, const uint64_t* lanes, Place) {
    Block& block = *s.current().owner;
    Warp& own = *s.current().warp;
    own.registers_wanted = static_cast<uint32_t>(lanes[0]);
    const auto settle_warp = [&](Warp& warp) {
      if (warp.registers_wanted > warp.registers + block.free_registers / 32) return;
      block.free_registers += 32 * warp.registers;
      block.free_registers -= 32 * warp.registers_wanted;
      warp.registers = warp.registers_wanted;
      warp.registers_wanted = 0;
      for (Thread* thread : warp.waiting) s.wake(thread);
      warp.waiting.clear();
    };
    settle_warp(own);
    for (Warp& warp : block.warps) {
      if (warp.registers_wanted != 0) settle_warp(warp);
    }
  });
  Warp& warp = *s.current().warp;
  while (warp.registers_wanted != 0) {
    warp.waiting.push_back(&s.current());
    s.wait(Wait::kRegisters, count, place);
  }
}

}  // namespace heddle::emulator
