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
  // From begin() to end() of a stream, its blocks are kept for it. `stream` of take(): null for memory of no stream.
  // Throws kOutOfMemory.
  void begin(Stream stream);
  void end(Stream stream);
  void* take(size_t bytes, Stream stream);
  void give(void* data);

 private:
  using FreeBlocks = std::multimap<size_t, uint64_t>;  // by size
  struct Block {
    size_t bytes;
    Stream stream;
  };

  uint64_t allocate(size_t bytes);
  void release(FreeBlocks& blocks);

  std::shared_ptr<const runtime::CudaContext> context_;
  std::mutex mutex_;
  std::unordered_map<Stream, FreeBlocks> free_;
  std::unordered_map<uint64_t, Block> used_;
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
