#include "jit/hip/metadata.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace heddle::jit {
namespace {

constexpr std::string_view kVendor = "AMDGPU";
constexpr uint32_t kMetadataNote = 32;

[[noreturn]] void no_code_object(const char* why) {
  fail(ErrorCode::kDamagedArtefact, "code object", why, "Compile the model again");
}

template <typename T>
T read(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) no_code_object("it is truncated");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The descriptor of the metadata note among the notes of a section; "" if they have none.
std::string_view metadata_in(std::string_view notes) {
  constexpr uint64_t kAlignment = 4;
  const auto padded = [](uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; };
  uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    const auto head = read<Elf64_Nhdr>(notes, at);
    const uint64_t name = at + sizeof(head), desc = name + padded(head.n_namesz), end = desc + padded(head.n_descsz);
    if (desc + head.n_descsz > notes.size()) no_code_object("a note of it is truncated");
    if (head.n_type == kMetadataNote && notes.substr(name).starts_with(kVendor)) {
      return notes.substr(desc, head.n_descsz);
    }
    at = end;
  }
  return {};
}

std::string_view metadata_of(std::string_view bytes) {
  const auto head = read<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) no_code_object("it is no ELF file");
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(bytes, head.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOTE) continue;
    if (section.sh_offset > bytes.size()) no_code_object("it is truncated");
    const std::string_view found = metadata_in(bytes.substr(section.sh_offset, section.sh_size));
    if (!found.empty()) return found;
  }
  no_code_object("it has no metadata");
}

}  // namespace

std::vector<HipKernel> kernels_of(std::string_view bytes) {
  const std::string_view packed = metadata_of(bytes);
  const nlohmann::json metadata = nlohmann::json::from_msgpack(packed.begin(), packed.end(), true, false);
  if (metadata.is_discarded() || !metadata.is_object()) no_code_object("its metadata is damaged");
  std::vector<HipKernel> kernels;
  for (const nlohmann::json& kernel : metadata.value("amdhsa.kernels", nlohmann::json::array())) {
    const auto number = [&](const char* key) { return kernel.value(key, 0); };
    kernels.push_back({kernel.value(".name", ""), number(".vgpr_count"), number(".sgpr_count"),
                       number(".vgpr_spill_count"), number(".group_segment_fixed_size"),
                       number(".private_segment_fixed_size")});
  }
  return kernels;
}

std::string resource_log(const std::vector<HipKernel>& kernels) {
  constexpr int kRegisterBytes = 4;
  std::string log;
  for (const HipKernel& k : kernels) {
    log += fmt::format("'{}': {} vector registers, {} scalar registers, {} bytes of LDS, {} bytes of memory a thread\n",
                       k.name, k.vector_registers, k.scalar_registers, k.lds_bytes, k.private_bytes);
    if (k.spilled > 0)
      log += fmt::format("{} bytes spill stores in function '{}'\n", kRegisterBytes * k.spilled, k.name);
  }
  return log;
}

}  // namespace heddle::jit
