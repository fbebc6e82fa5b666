#include "profile/program/memory_reader.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace heddle::profile {

bool read_memory(uint64_t address, void* to, size_t bytes) {
  const iovec local = {to, bytes}, remote = {reinterpret_cast<void*>(address), bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

size_t read_pieces(std::span<const uint64_t> addresses, void* to, size_t bytes) {
  std::array<iovec, kMostPieces> remote;
  for (size_t i = 0; i < addresses.size(); ++i) remote[i] = {reinterpret_cast<void*>(addresses[i]), bytes};
  const iovec local = {to, bytes * addresses.size()};
  const ssize_t read = ::process_vm_readv(::getpid(), &local, 1, remote.data(), addresses.size(), 0);
  return read <= 0 ? 0 : static_cast<size_t>(read) / bytes;
}

bool read_pieces(std::span<const MemoryPiece> pieces) {
  std::array<iovec, kMostPieces> local, remote;
  ssize_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    local[i] = {pieces[i].to, pieces[i].bytes};
    remote[i] = {reinterpret_cast<void*>(pieces[i].address), pieces[i].bytes};
    bytes += static_cast<ssize_t>(pieces[i].bytes);
  }
  return ::process_vm_readv(::getpid(), local.data(), pieces.size(), remote.data(), pieces.size(), 0) == bytes;
}

bool NearbyMemory::read(uint64_t address, void* to, size_t bytes) {
  if (address < begin_ || address + bytes > end_) {
    begin_ = end_ = 0;
    const uint64_t end = address + bytes;
    if (end < block_.size() || bytes > block_.size() ||
        !read_memory(end - block_.size(), block_.data(), block_.size())) {
      return read_memory(address, to, bytes);
    }
    begin_ = end - block_.size(), end_ = end;
  }
  std::memcpy(to, block_.data() + (address - begin_), bytes);
  return true;
}

}  // namespace heddle::profile
