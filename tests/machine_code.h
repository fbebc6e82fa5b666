// Which loads ptxas made of a unit: of what its text says, it may read less, and by other instructions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::test {

// A kernel's loads from global memory, in sm_80 and sm_90a alike: instructions of 128 bits whose lowest 12 are 0x981
// (LDG; LDGSTS is cp.async), bits 73 to 75 the size and 76 to 80 what else may happen to the memory. As nvdisasm
// (CUDA 13.0) reads them.
struct MachineCode {
  struct Load {
    int bytes;
    bool constant;  // ld.global.nc
    bool weights;   // load_weights_if() (tile/arch/sm80/stream.h): constant, and not kept in the L1 (bit 86)
    bool strong;    // relaxed, acquire or volatile
  };
  std::string kernel;
  std::vector<Load> loads;
  bool waits = false;   // griddepcontrol.wait
  bool before = false;  // the text reads something other than weights before its first wait
  bool tables = false;  // of the compiler's library, which are constants: in the fourth bank lie their addresses
};

inline MachineCode decode_machine_code(std::string name, std::string_view text) {
  constexpr uint64_t kLoad = 0x981, kCopy = 0xfae, kWait = 0x82e, kWeak = 1, kConstant = 9, kTables = 4;
  constexpr uint64_t kReadConstants[] = {0x624, 0xa02, 0xab9, 0xb82};  // IMAD.MOV, MOV, ULDC, LDC
  constexpr int kBytes[8] = {1, 1, 2, 2, 4, 8, 16, 16};
  MachineCode code;
  code.kernel = std::move(name);
  bool reads = false;
  for (size_t at = 0; at + 16 <= text.size(); at += 16) {
    uint64_t words[2];
    std::memcpy(words, text.data() + at, sizeof words);
    const uint64_t opcode = words[0] & 0xfff, order = words[1] >> 12 & 0x1f;
    const bool weights = opcode == kLoad && order == kConstant && (words[1] >> 22 & 1) != 0;
    reads = reads || (opcode == kLoad && !weights) || opcode == kCopy;
    if (opcode == kWait && !code.waits) code.waits = true, code.before = reads;
    for (const uint64_t reads : kReadConstants) {
      code.tables = code.tables || (opcode == reads && (words[0] >> 54 & 0x1f) == kTables);
    }
    if (opcode == kLoad) {
      code.loads.push_back(
          {kBytes[words[1] >> 9 & 7], order == kConstant, weights, order != kWeak && order != kConstant});
    }
  }
  return code;
}

// Of all kernels of a cubin, which is an ELF file with a section for each.
inline std::vector<MachineCode> decode_cubin(std::string_view cubin) {
  const auto read = [&]<typename T>(size_t at, T value) {
    if (at + sizeof value <= cubin.size()) std::memcpy(&value, cubin.data() + at, sizeof value);
    return value;
  };
  const auto sections = read(0x28, uint64_t{0});
  const size_t each = read(0x3a, uint16_t{0}), count = read(0x3c, uint16_t{0}), names = read(0x3e, uint16_t{0});
  const auto content = [&](size_t section) {
    const size_t header = sections + section * each;
    return cubin.substr(read(header + 0x18, uint64_t{0}), read(header + 0x20, uint64_t{0}));
  };
  std::vector<MachineCode> kernels;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = content(names).substr(read(sections + i * each, uint32_t{0})).data();
    constexpr std::string_view kText = ".text.";
    if (name.starts_with(kText)) kernels.push_back(decode_machine_code(name.substr(kText.size()), content(i)));
  }
  return kernels;
}

// Describes a forbidden read of a kernel; "" if there is none. A kernel that begins early must not use ld.global.nc,
// except for weights. Before it waits, it may read only weights and what TMA brings (tile/arch/sm90/dependent.h). No
// kernel may read only a part of what another block stored as a whole (tile/arch/sm80/global.h).
inline std::string find_wrong_loads(std::string_view cubin) {
  for (const MachineCode& code : decode_cubin(cubin)) {
    if (code.before) return code.kernel + " begins early and reads before it waits";
    for (const MachineCode::Load& load : code.loads) {
      if (load.constant && !load.weights && code.waits && !code.tables)
        return code.kernel + " begins early and reads by ld.global.nc";
      if (load.strong && load.bytes != 16) {
        return fmt::format("{} reads {} bytes of what is handed over in 16", code.kernel, load.bytes);
      }
    }
  }
  return {};
}

}  // namespace heddle::test
