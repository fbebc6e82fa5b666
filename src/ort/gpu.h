#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "ort/runtime.h"
#include "runtime/cuda/device.h"

namespace heddle::ort {

inline constexpr uint32_t kNvidia = 0x10de;  // the vendor's number on the PCI bus

// Memory of a GPU that runs on several streams share. A block that is freed while a stream uses it serves later work on
// that stream, which needs no wait.
class GpuMemory {
 public:
  using Stream = CudaDriver::Handle;

  explicit GpuMemory(int ordinal) : context_(runtime::CudaContext::of_device(ordinal)) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  const runtime::CudaContext& context() const { return *context_; }
  // Waits for the work on all streams between begin() and end().
  void synchronize();
  // From begin() to end() of a stream, its blocks are kept for it. `stream` of take(): null for memory of no stream.
  // Throws kOutOfMemory.
  void begin(Stream stream);
  void end(Stream stream);
  void* take(size_t bytes, Stream stream);
  void give(void* data);
  // Copies from the host to the GPU and returns when the copy is complete. Throws kDevice.
  void copy_in(void* data, const void* from, size_t bytes, Stream stream) const;
  // Until release(), the block that contains `data` is not used again, though it be given back. hold() returns false
  // for memory from elsewhere. A block may be held several times.
  bool hold(void* data);
  void release(void* data);

 private:
  using FreeBlocks = std::multimap<size_t, uint64_t>;  // by size
  struct Block {
    size_t bytes;
    Stream stream;
    int holders = 0;
    bool given = false;  // while it is held
  };
  using UsedBlocks = std::map<uint64_t, Block>;  // by address

  uint64_t allocate(size_t bytes);
  void free(FreeBlocks& blocks);
  void reuse(UsedBlocks::iterator used);
  UsedBlocks::iterator find_used(void* data);

  std::shared_ptr<const runtime::CudaContext> context_;
  std::mutex mutex_;
  std::unordered_map<Stream, FreeBlocks> free_;
  UsedBlocks used_;
};

// A GPU as ONNX Runtime sees it. It lives as long as the factory.
class Gpu : public OrtAllocator {
 public:
  // Throws kDevice.
  Gpu(const Runtime& runtime, int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int ordinal() const { return ordinal_; }
  std::string target() const;  // CompileOptions::target
  GpuMemory& memory() { return memory_; }
  bool has(const OrtValue* tensor) const;  // in its memory
  const OrtMemoryInfo* memory_info() const { return info_; }
  OrtSyncStreamImpl* create_stream();

 private:
  const Runtime& runtime_;
  int ordinal_;
  GpuMemory memory_;
  OrtMemoryInfo* info_ = nullptr;
};

// Copies between the host and GPUs, and within a GPU. ONNX Runtime releases it.
OrtDataTransferImpl* create_transfer(const Runtime& runtime);

}  // namespace heddle::ort
