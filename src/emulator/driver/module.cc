#include "emulator/driver/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace heddle::emulator {
namespace {

// cuModuleLoadData() gets no size: the section table is the last thing in a shared object as linkers write it.
size_t image_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN || header.e_machine != EM_X86_64) {
    return 0;
  }
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

template <typename T>
T* table_at(std::string& image, uint64_t offset, uint64_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset ? reinterpret_cast<T*>(image.data() + offset)
                                                                  : nullptr;
}

// `extern __shared__` arrays are symbols that nobody defines. Made weak, the loader leaves them at address 0.
void weaken_shared_arrays(std::string& image) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image.data());
  const auto* sections = table_at<Elf64_Shdr>(image, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
  for (int i = 0; sections != nullptr && i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_RELA || section.sh_link >= header->e_shnum) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    const auto* relocations = table_at<Elf64_Rela>(image, section.sh_offset, section.sh_size);
    auto* symbols = table_at<Elf64_Sym>(image, names.sh_offset, names.sh_size);
    if (relocations == nullptr || symbols == nullptr) continue;
    for (size_t j = 0; j < section.sh_size / sizeof(Elf64_Rela); ++j) {
      const size_t which = ELF64_R_SYM(relocations[j].r_info);
      // Functions are reached through another table.
      if (ELF64_R_TYPE(relocations[j].r_info) != R_X86_64_GLOB_DAT) continue;
      if (which >= names.sh_size / sizeof(Elf64_Sym) || symbols[which].st_shndx != SHN_UNDEF) continue;
      symbols[which].st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbols[which].st_info));
    }
  }
}

int to_memory(std::string_view bytes) {
  const int file = ::memfd_create("heddle-emulated", MFD_CLOEXEC);
  if (file < 0) return -1;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written <= 0) {
      ::close(file);
      return -1;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

}  // namespace

std::unique_ptr<Module> Module::load(const void* image, std::string* why) {
  const size_t bytes = image_bytes(image);
  if (bytes == 0) {
    *why = "it is no shared object for this machine: an emulated GPU runs code of architecture emulated_sm_*";
    return nullptr;
  }
  std::unique_ptr<Module> module(new Module());
  std::string copy(static_cast<const char*>(image), bytes);
  weaken_shared_arrays(copy);
  module->descriptor_ = to_memory(copy);
  if (module->descriptor_ >= 0) {
    const std::string path = "/proc/self/fd/" + std::to_string(module->descriptor_);
    module->handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (module->handle_ == nullptr) {
    const char* reason = ::dlerror();
    *why = reason == nullptr ? "it cannot be loaded" : reason;
    return nullptr;
  }
  module->info_ = static_cast<const emulated::ModuleInfo*>(::dlsym(module->handle_, "heddle_emulated_module"));
  if (module->info_ == nullptr || module->info_->abi != emulated::kAbi) {
    *why = "it was not compiled for this emulator";
    return nullptr;
  }
  const char* races = std::getenv("HEDDLE_EMULATOR_RACES");
  if (races != nullptr && std::string_view(races) == "1" && !module->info_->reports_accesses) {
    *why =
        "it was compiled without HEDDLE_EMULATOR_RACES=1, so races cannot be found: compile it again, without cached "
        "plans (--no-cache)";
    return nullptr;
  }
  if (!module->find_shared_slots(why)) return nullptr;
  return module;
}

// The unit reaches each shared array through one word of its global offset table, which the emulator points at the
// memory of the block that runs.
bool Module::find_shared_slots(std::string* why) {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) {
    *why = "its relocations cannot be read";
    return false;
  }
  const Elf64_Sym* symbols = nullptr;
  const Elf64_Rela* relocations = nullptr;
  size_t bytes = 0;
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_RELA) relocations = reinterpret_cast<const Elf64_Rela*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_RELASZ) bytes = entry->d_un.d_val;
  }
  if (symbols == nullptr || relocations == nullptr) return true;
  for (size_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) {
    const Elf64_Sym& symbol = symbols[ELF64_R_SYM(relocations[i].r_info)];
    const bool weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK && symbol.st_shndx == SHN_UNDEF;
    if (!weak || ELF64_R_SYM(relocations[i].r_info) == 0) continue;
    if (ELF64_R_TYPE(relocations[i].r_info) != R_X86_64_GLOB_DAT) {
      *why = "a variable is initialised with the address of dynamic shared memory";
      return false;
    }
    shared_slots_.push_back(reinterpret_cast<uint8_t**>(map->l_addr + relocations[i].r_offset));
  }
  return true;
}

Module::~Module() {
  if (handle_ != nullptr) ::dlclose(handle_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Kernel* Module::find(const std::string& name) {
  for (const auto& kernel : kernels_) {
    if (kernel->name == name) return kernel.get();
  }
  const void* info = ::dlsym(handle_, ("heddle_kernel_" + name).c_str());
  if (info == nullptr) return nullptr;
  kernels_.push_back(std::make_unique<Kernel>());
  kernels_.back()->name = name;
  kernels_.back()->info = static_cast<const emulated::KernelInfo*>(info);
  kernels_.back()->module = this;
  return kernels_.back().get();
}

}  // namespace heddle::emulator
