#include "emulator/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

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

int to_memory(const void* image, size_t bytes) {
  const int file = ::memfd_create("heddle-emulated", MFD_CLOEXEC);
  if (file < 0) return -1;
  const char* from = static_cast<const char*>(image);
  while (bytes > 0) {
    const ssize_t written = ::write(file, from, bytes);
    if (written <= 0) {
      ::close(file);
      return -1;
    }
    from += written;
    bytes -= static_cast<size_t>(written);
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
  module->descriptor_ = to_memory(image, bytes);
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
  if (!module->find_shared_slots(why)) return nullptr;
  return module;
}

// `extern __shared__` arrays are weak symbols that nobody defines: the unit reaches each through one word of its
// global offset table, which the emulator points at the memory of the block that runs.
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
