#include "running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "lang/interpret/number.h"
#include "lang/ir/parse.h"

namespace heddle::lang::testing {
namespace {

constexpr size_t kGuard = 64;
constexpr std::byte kSentinel{0xa5};

void encode_at(const Operand& operand, size_t i, void* to) {
  const Cell cell = is_float(operand.element)
                        ? Cell{.f = round_float(operand.element, operand.values[i])}
                        : Cell{.i = wrap_int(operand.element, static_cast<int64_t>(operand.values[i]))};
  const uint64_t bits = encode(operand.element, cell);
  std::memcpy(to, &bits, static_cast<size_t>(size_of(operand.element)));
}

double decode_at(Element element, const void* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size_of(element)));
  const Cell cell = decode(element, bits);
  return is_float(element) ? cell.f : static_cast<double>(cell.i);
}

// The arrays of a case in memory, sentinels around each.
class Arrays {
 public:
  explicit Arrays(const Case& c) : case_(c) {
    for (const Operand& operand : c.operands) {
      const auto size = static_cast<size_t>(size_of(operand.element));
      auto& bytes = memory_.emplace_back(operand.values.size() * size + 2 * kGuard, kSentinel);
      for (size_t i = 0; i < operand.values.size(); ++i) {
        encode_at(operand, i, bytes.data() + kGuard + i * size);
      }
    }
  }

  std::vector<Argument> arguments() {
    std::vector<Argument> list;
    for (size_t i = 0; i < memory_.size(); ++i) {
      const Operand& operand = case_.operands[i];
      if (operand.is_array) {
        list.push_back(Argument::of(static_cast<const void*>(memory_[i].data() + kGuard)));
      } else {
        list.push_back({static_cast<int64_t>(operand.scalar), operand.scalar});
      }
    }
    return list;
  }

  std::vector<Allocation> allocations() const {
    std::vector<Allocation> list;
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (case_.operands[i].is_array) {
        list.push_back({reinterpret_cast<uint64_t>(memory_[i].data() + kGuard), memory_[i].size() - 2 * kGuard,
                        fmt::format("operand {}", i)});
      }
    }
    return list;
  }

  std::vector<std::vector<double>> results() const {
    std::vector<std::vector<double>> all;
    for (size_t i = 0; i < memory_.size(); ++i) {
      const Operand& operand = case_.operands[i];
      auto& list = all.emplace_back();
      const auto size = static_cast<size_t>(size_of(operand.element));
      for (size_t k = 0; k < operand.values.size(); ++k) {
        list.push_back(decode_at(operand.element, memory_[i].data() + kGuard + k * size));
      }
    }
    return all;
  }

  bool intact() const {
    for (const auto& bytes : memory_) {
      for (size_t i = 0; i < kGuard; ++i) {
        if (bytes[i] != kSentinel || bytes[bytes.size() - 1 - i] != kSentinel) return false;
      }
    }
    return true;
  }

 private:
  const Case& case_;
  std::vector<std::vector<std::byte>> memory_;
};

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a));
}

}  // namespace

std::string kernel_text(std::string_view parameters, std::string_view body, std::string_view name) {
  return fmt::format("tile_ir 2\nfile 0 \"k.py\"\nkernel @{}({}) {{\n{}}}\n", name, parameters, body);
}

Operand random_array(std::mt19937& random, Element element, int64_t count, double low, double high) {
  std::uniform_real_distribution<double> values(low, high);
  Operand operand{element, {}, true, 0};
  for (int64_t i = 0; i < count; ++i) operand.values.push_back(values(random));
  return operand;
}

Operand filled(Element element, int64_t count, double value) {
  return {element, std::vector<double>(static_cast<size_t>(count), value), true, 0};
}

Operand scalar(double value) {
  return {Element::kF64, {}, false, value};
}

ThreadPool& pool() {
  static ThreadPool threads(2);
  return threads;
}

std::vector<std::vector<double>> interpreted(const Case& c) {
  Arrays arrays(c);
  InterpretOptions options;
  options.allocations = arrays.allocations();
  interpret(parse_and_verify(c.text), c.grid, arrays.arguments(), options);
  EXPECT_TRUE(arrays.intact()) << c.name;
  return arrays.results();
}

void expect_close(const Case& c, const std::vector<std::vector<double>>& want,
                  const std::vector<std::vector<double>>& got, const std::string& text) {
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t k = 0; k < want[i].size(); ++k) {
      if (close(want[i][k], got[i][k], c.tolerance)) continue;
      ADD_FAILURE() << c.name << ": operand " << i << ", element " << k << " is " << got[i][k]
                    << ", the interpreter's is " << want[i][k] << "\n"
                    << c.text << "\n"
                    << text;
      return;
    }
  }
}

std::vector<std::vector<uint8_t>> encoded(const Case& c) {
  std::vector<std::vector<uint8_t>> all;
  for (const Operand& operand : c.operands) {
    auto& bytes = all.emplace_back();
    if (!operand.is_array) continue;
    const auto size = static_cast<size_t>(size_of(operand.element));
    bytes.resize(operand.values.size() * size);
    for (size_t i = 0; i < operand.values.size(); ++i) encode_at(operand, i, bytes.data() + i * size);
  }
  return all;
}

std::vector<double> decoded(Element element, const std::vector<uint8_t>& bytes) {
  const auto size = static_cast<size_t>(size_of(element));
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += size) values.push_back(decode_at(element, bytes.data() + at));
  return values;
}

unsigned variable(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

void expect_same(const std::vector<Case>& cases) {
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(parse_and_verify(c.text));
  const auto compiled = cpu::CpuKernel::compile_all(std::move(kernels), Target::host_cpu(2));
  for (size_t i = 0; i < cases.size(); ++i) {
    Arrays arrays(cases[i]);
    compiled[i]->launch(cases[i].grid, arrays.arguments(), pool());
    EXPECT_TRUE(arrays.intact()) << cases[i].name << ": it wrote outside of its arrays\n" << compiled[i]->text();
    expect_close(cases[i], interpreted(cases[i]), arrays.results(), compiled[i]->text());
  }
}

}  // namespace heddle::lang::testing
