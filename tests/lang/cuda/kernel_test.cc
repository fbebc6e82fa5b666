// Kernels of the tile language on the emulator against the interpreter. A file of `kernels/` says above its text on
// what grid it runs, and of each parameter how many elements lie there or what number it is.
#include "lang/cuda/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "../../emulator/fixture.h"
#include "heddle/dtype.h"
#include "jit/cuda/nvrtc.h"
#include "lang/cuda/unit.h"
#include "lang/interpret/interpret.h"
#include "lang/interpret/number.h"
#include "lang/ir/parse.h"
#include "runtime/cuda/launch.h"
#include "tests/instances.h"

namespace heddle::lang::cuda {
namespace {

struct Case {
  std::string name, text;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::map<std::string, double> numbers;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_TILE_KERNELS)) {
    if (entry.path().extension() != ".tile") continue;
    Case c;
    c.name = entry.path().stem();
    c.text = text_of(entry.path());
    std::istringstream lines(c.text);
    for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
      std::istringstream words(line.substr(3));
      std::string name;
      words >> name;
      if (name == "grid") {
        words >> c.grid[0] >> c.grid[1] >> c.grid[2];
      } else {
        words >> c.numbers[name];
      }
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

// Small numbers with a few bits, which every type holds.
std::vector<uint8_t> random_elements(Element element, size_t count, std::mt19937& random) {
  std::vector<uint8_t> bytes(count * static_cast<size_t>(size_of(element)));
  for (size_t i = 0; i < count; ++i) {
    const int whole = static_cast<int>(random() % 129) - 64;
    uint8_t* const at = bytes.data() + i * static_cast<size_t>(size_of(element));
    const float number = static_cast<float>(whole) / 32;
    if (element == Element::kF32) {
      std::memcpy(at, &number, 4);
    } else if (element == Element::kF16) {
      const auto bits = static_cast<uint16_t>(encode_float(DType::kF16, number));
      std::memcpy(at, &bits, 2);
    } else {
      const int64_t value = whole;
      std::memcpy(at, &value, static_cast<size_t>(size_of(element)));
    }
  }
  return bytes;
}

double number_at(Element element, const uint8_t* at) {
  if (element == Element::kF32) {
    float x;
    std::memcpy(&x, at, 4);
    return x;
  }
  if (element == Element::kF16) {
    uint16_t x;
    std::memcpy(&x, at, 2);
    return decode_float(DType::kF16, x);
  }
  int32_t x = 0;
  std::memcpy(&x, at, static_cast<size_t>(std::min<int64_t>(4, size_of(element))));
  return x;
}

class Kernels : public emulator::EmulatorTest {
 protected:
  void check(const Case& c, const Kernel& kernel, const CudaUnit& unit) {
    SCOPED_TRACE(c.name);
    std::mt19937 random(3);
    std::vector<std::vector<uint8_t>> host;
    std::vector<std::unique_ptr<runtime::CudaBuffer>> buffers;
    std::vector<Argument> arguments;
    std::vector<uint64_t> slots;
    host.reserve(kernel.parameters.size());
    for (const Kernel::Parameter& p : kernel.parameters) {
      const Type& type = kernel.type(p.value);
      const double number = c.numbers.at(kernel.values[static_cast<size_t>(p.value)].name);
      if (type.pointer) {
        host.push_back(random_elements(type.element, static_cast<size_t>(number), random));
        arguments.push_back(Argument::of(host.back().data()));
        buffers.push_back(std::make_unique<runtime::CudaBuffer>(*context, host.back().size()));
        buffers.back()->write(host.back().data(), host.back().size());
        slots.push_back(buffers.back()->address());
      } else if (is_float(type.element)) {
        const auto single = static_cast<float>(number);
        arguments.push_back(Argument::of_number(single));
        slots.push_back(0);
        std::memcpy(&slots.back(), &single, 4);
      } else {
        arguments.push_back(Argument::of(static_cast<int64_t>(number)));
        slots.push_back(static_cast<uint64_t>(static_cast<int64_t>(number)));
      }
    }
    run(c, unit, slots);
    if (HasFatalFailure()) return;
    interpret(kernel, c.grid, arguments);
    size_t buffer = 0;
    for (const Kernel::Parameter& p : kernel.parameters) {
      if (kernel.type(p.value).pointer) compare(kernel, p, host[buffer], *buffers[buffer]), ++buffer;
    }
  }

 protected:
  void run(const Case& c, const CudaUnit& unit, std::vector<uint64_t>& slots) {
    std::vector<void*> pointers;
    const auto described = describe_maps(unit, slots);
    ASSERT_TRUE(described.has_value());
    std::vector<runtime::TensorMap> maps(described->size());
    for (size_t i = 0; i < maps.size(); ++i) {
      const TensorMapDesc& map = (*described)[i];
      maps[i] = runtime::encode_tensor_map(*context, map, slots[static_cast<size_t>(map.operand)], unit.symbol.c_str());
      pointers.push_back(&maps[i]);
    }
    for (uint64_t& slot : slots) pointers.push_back(&slot);
    const CudaDriver& driver = context->driver();
    CudaLaunchConfig config;
    for (size_t d = 0; d < 3; ++d) config.grid[d] = static_cast<unsigned>(c.grid[d]);
    config.block[0] = static_cast<unsigned>(unit.threads);
    config.shared_bytes = static_cast<unsigned>(unit.shared_bytes);
    config.stream = context->stream();
    try {
      const auto function = module->function(unit.symbol, static_cast<uint32_t>(unit.shared_bytes));
      runtime::launch_kernel(*context, config, function, pointers.data(), unit.symbol.c_str());
      driver.check(driver.stream_synchronize(context->stream()), unit.symbol.c_str());
    } catch (const Error& error) {
      FAIL() << error.what();
    }
  }

  static void compare(const Kernel& kernel, const Kernel::Parameter& p, const std::vector<uint8_t>& want,
                      const runtime::CudaBuffer& buffer) {
    const Element element = kernel.type(p.value).element;
    const auto size = static_cast<size_t>(size_of(element));
    std::vector<uint8_t> got(want.size());
    buffer.read(got.data(), got.size());
    const double bound = element == Element::kF16 ? 4e-3 : is_float(element) ? 2e-4 : 0;
    int wrong = 0;
    for (size_t i = 0; i < want.size() && wrong < 4; i += size) {
      const double a = number_at(element, got.data() + i), b = number_at(element, want.data() + i);
      if (std::abs(a - b) <= bound * std::max(1.0, std::abs(b)) || (std::isnan(a) && std::isnan(b)) || a == b) continue;
      ++wrong;
      ADD_FAILURE() << kernel.value_name(p.value) << "[" << i / size << "] is " << a << ", not " << b;
    }
  }
};

TEST_F(Kernels, AgreeWithTheInterpreter) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  const std::vector<Case> cases = all_cases();
  const char* const only = std::getenv("HEDDLE_TILE_ONLY");
  std::vector<Kernel> kernels;
  std::vector<CudaUnit> units;
  // Those that say how many threads compute are compiled apart from those that do not.
  std::map<std::string, std::vector<size_t>> apart;
  for (size_t i = 0; i < cases.size(); ++i) {
    kernels.push_back(parse_and_verify(cases[i].text));
    units.push_back(cuda_unit(kernels.back(), context->device().target));
    const std::string& text = units.back().text;
    const bool is_drawn = apart.empty() || test::draws_instance(cases[i].name, 2);
    if (only == nullptr ? is_drawn : cases[i].name == only) apart[text.substr(0, text.find("#include"))].push_back(i);
  }
  for (const auto& [head, members] : apart) {
    std::string text;
    for (const size_t i : members) text += units[i].text;
    load(text);
    for (const size_t i : members) check(cases[i], kernels[i], units[i]);
  }
}

TEST_F(Kernels, CompileFromTextAndLaunch) {
  const std::string target = target_name(context->device().target);
  const CudaKernel add(parse_and_verify(R"(tile_ir 2
kernel @add_one(%x: ptr<f32>, %n: i32) {num_warps = 2} {
  %i = iota {start = 0} : tile<100xi32>
  %ns = splat %n : tile<100xi32>
  %inside = lt %i, %ns : tile<100xi1>
  %xs = splat %x : tile<100xptr<f32>>
  %p = addptr %xs, %i : tile<100xptr<f32>>
  %v = load %p, %inside : tile<100xf32>
  %one = constant {value = 1.0} : tile<100xf32>
  %r = add %v, %one : tile<100xf32>
  store %p, %r, %inside
}
)"),
                       target);
  std::vector<float> x(100, 2);
  auto memory = buffer(400);
  memory.write(x.data(), 400);
  const uint64_t slots[] = {memory.address(), 99};
  add.launch({1, 1, 1}, slots, context->stream());
  context->synchronize();
  const auto got = read<float>(memory);
  EXPECT_EQ(got[98], 3);
  EXPECT_EQ(got[99], 2);
  EXPECT_THROW(add.launch({1, 1, 1}, {}, nullptr), Error);
  EXPECT_THROW(CudaKernel(parse_and_verify("tile_ir 2\nkernel @k() {\n}\n"), "cuda-sm_75"), Error);
}

TEST_F(Kernels, PrintsNameProgramAndElement) {
  const CudaKernel prints(parse_and_verify(R"(tile_ir 2
kernel @prints(%n: i32) {num_warps = 1} {
  %i = iota {start = 9} : tile<22xi32>
  %m = reshape %i : tile<2x11xi32>
  print %m {prefix = " x: "}
  %h = constant {value = -1} : i16
  print %n, %h {prefix = " n: ", hex = 1}
  print {prefix = " done"}
}
)"),
                          target_name(context->device().target));
  const uint64_t slots[] = {12};
  ::testing::internal::CaptureStdout();
  prints.launch({1, 1, 1}, slots, context->stream());
  context->synchronize();
  std::istringstream text(::testing::internal::GetCapturedStdout());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 25u);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines[0], "pid (0, 0, 0) done");
  EXPECT_EQ(lines[1], "pid (0, 0, 0) idx () n: (operand 0) 0x0000000c");
  EXPECT_EQ(lines[2], "pid (0, 0, 0) idx () n: (operand 1) 0xffff");
  EXPECT_EQ(lines[3], "pid (0, 0, 0) idx (0,  0) x: 9");
  EXPECT_EQ(lines[24], "pid (0, 0, 0) idx (1, 10) x: 30");
}

// What NVRTC gives for an H100 neither spills nor waits for each instruction of the tensor cores.
TEST(KernelsOnAnH100, KeepTheTensorCoresBusy) {
  try {
    jit::find_nvrtc();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const CudaTarget target = CudaTarget::pinned(90);
  const ::testing::ScopedTrace seed = test::trace_seed();
  std::map<std::string, std::string> units;
  for (const Case& c : all_cases()) {
    if (c.text.find("= dot ") == std::string::npos) continue;
    if (!units.empty() && !test::draws_instance(c.name)) continue;
    const std::string text = cuda_unit(parse_and_verify(c.text), target).text;
    units[text.substr(0, text.find("#include"))] += text;
  }
  ASSERT_FALSE(units.empty());
  for (const auto& [head, text] : units) EXPECT_NO_THROW(jit::compile_cubin(text, target.architecture(), true));
}

// No tensor map has rows that run backwards: the kernel without maps runs.
TEST_F(Kernels, RowsThatRunBackwards) {
  const Kernel kernel = parse_and_verify(text_of(std::filesystem::path(HEDDLE_TILE_KERNELS) / "matmul_groups.tile"));
  const CudaKernel matmul(kernel, target_name(context->device().target));
  ASSERT_FALSE(matmul.unit().maps.empty());
  constexpr int64_t kM = 70, kN = 48, kK = 64, kGrid = 2;
  std::mt19937 random(5);
  std::vector<uint8_t> a = random_elements(Element::kF16, kM * kK, random),
                       b = random_elements(Element::kF16, kK * kN, random), c(2 * kM * kN, 0x55);
  auto memory_a = buffer(a.size()), memory_b = buffer(b.size()), memory_c = buffer(c.size());
  memory_a.write(a.data(), a.size());
  memory_b.write(b.data(), b.size());
  memory_c.write(c.data(), c.size());
  constexpr size_t kLast = 2 * (kM - 1) * kK;
  const int64_t numbers[] = {kM, kN, kK, -kK, kN, kN};
  std::vector<uint64_t> slots{memory_c.address(), memory_a.address() + kLast, memory_b.address()};
  std::vector<Argument> arguments{Argument::of(c.data()), Argument::of(a.data() + kLast), Argument::of(b.data())};
  for (const int64_t n : numbers) {
    slots.push_back(static_cast<uint64_t>(n));
    arguments.push_back(Argument::of(n));
  }
  matmul.launch({kGrid, 1, 1}, slots, context->stream());
  context->synchronize();
  interpret(kernel, {kGrid, 1, 1}, arguments);
  compare(kernel, kernel.parameters[0], c, memory_c);
}

}  // namespace
}  // namespace heddle::lang::cuda
