// Random programs on the emulator, or a GPU, against the interpreter. $HEDDLE_TILE_PROGRAMS: how many programs;
// $HEDDLE_TILE_SEED: the first seed.
#include <gtest/gtest.h>

#include <cstring>

#include "../../emulator/fixture.h"
#include "../random_program.h"
#include "../running.h"
#include "lang/cuda/kernel.h"
#include "lang/ir/parse.h"

namespace heddle::lang::cuda {
namespace {

class Programs : public emulator::EmulatorTest {
 protected:
  void check(const testing::Case& c) {
    SCOPED_TRACE(c.name);
    const Kernel kernel = parse_and_verify(c.text);
    const CudaKernel compiled(kernel, target_name(context->device().target));
    const std::vector<std::vector<uint8_t>> arrays = testing::encoded(c);
    std::vector<std::unique_ptr<runtime::CudaBuffer>> buffers;
    std::vector<uint64_t> slots;
    for (size_t i = 0; i < arrays.size(); ++i) {
      buffers.push_back(nullptr);
      if (!c.operands[i].is_array) {
        slots.push_back(number(kernel.type(kernel.parameters[i].value).element, c.operands[i].scalar));
        continue;
      }
      buffers.back() = std::make_unique<runtime::CudaBuffer>(*context, arrays[i].size());
      buffers.back()->write(arrays[i].data(), arrays[i].size());
      slots.push_back(buffers.back()->address());
    }
    compiled.launch(c.grid, slots, context->stream());
    context->synchronize();
    std::vector<std::vector<double>> got;
    for (size_t i = 0; i < arrays.size(); ++i) {
      std::vector<uint8_t> bytes(arrays[i].size());
      if (buffers[i] != nullptr) buffers[i]->read(bytes.data(), bytes.size());
      got.push_back(testing::decoded(c.operands[i].element, bytes));
    }
    testing::expect_close(c, testing::interpreted(c), got, compiled.unit().text);
  }

 private:
  static uint64_t number(Element element, double value) {
    if (!is_float(element)) return static_cast<uint64_t>(static_cast<int64_t>(value));
    const auto single = static_cast<float>(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &single, sizeof(single));
    return bits;
  }
};

TEST_F(Programs, WhoseValuesAreUsedTwiceAreLookedAtOnce) {
  check(testing::doubled_values());
}

TEST_F(Programs, AtRandomAgreeWithTheInterpreter) {
  const unsigned count = testing::variable("HEDDLE_TILE_PROGRAMS", 8), first = testing::variable("HEDDLE_TILE_SEED", 1);
  for (unsigned seed = first; seed < first + count; ++seed) check(testing::random_program(seed));
}

}  // namespace
}  // namespace heddle::lang::cuda
