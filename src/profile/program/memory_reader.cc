#include "profile/program/memory_reader.h"

#include <sys/uio.h>
#include <unistd.h>

namespace heddle::profile {

bool read_memory(uint64_t address, void* to, size_t bytes) {
  const iovec local = {to, bytes}, remote = {reinterpret_cast<void*>(address), bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace heddle::profile
