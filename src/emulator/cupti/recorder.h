#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/cupti/faults.h"
#include "emulator/cupti/records.h"

namespace heddle::emulator {

using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

// The settings of a CUPTI client, and its records until they are delivered. No lock is held while it is called.
class Recorder {
 public:
  static Recorder& get();

  // Returns false if there is a subscriber already.
  bool subscribe(Callback callback, void* user, const Faults& faults);
  void unsubscribe();
  void enable_callback(bool enable, int domain, uint32_t id);
  void enable_activity(bool enable, uint32_t kind);
  void set_buffers(BufferRequested requested, BufferCompleted completed);
  void flush(bool forced);
  uint64_t take_dropped();
  Faults faults() const;

  // The emulated driver reports calls and finished work here.
  void call_back(int domain, uint32_t id, const void* data);
  void done(const Work& work);

 private:
  struct Buffer {
    uint8_t* memory = nullptr;
    size_t bytes = 0, valid = 0;
  };
  Times times_of(const Work& work);
  void append(const std::vector<uint8_t>& record);
  void deliver(const Buffer& buffer);

  mutable std::mutex mutex_;
  Callback callback_ = nullptr;
  void* user_ = nullptr;
  Faults faults_;
  std::set<std::pair<int, uint32_t>> callbacks_;
  std::set<uint32_t> activities_;
  std::set<std::string> names_;  // of kernels, for records
  BufferRequested requested_ = nullptr;
  BufferCompleted completed_ = nullptr;
  Buffer filling_;
  std::vector<Buffer> full_;
  uint64_t dropped_ = 0, records_ = 0;
  uint64_t clock_ = 0;                // of the device
  std::map<uint32_t, Times> latest_;  // by stream
};

}  // namespace heddle::emulator
