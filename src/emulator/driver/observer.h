#pragma once

#include <array>
#include <cstdint>

namespace heddle::emulator {

struct Graph;

// What the device did, or the host asked of it, as the stand-in for CUPTI records it (src/emulator/cupti).
struct Work {
  enum class Kind : uint8_t { kNone, kKernel, kCopy, kMemset, kSync, kAllocate, kFree };
  enum class Place : uint8_t { kPageable = 1, kPinned = 2, kDevice = 3 };  // numbers of CUPTI

  Kind kind = Kind::kNone;
  const char* name = "";  // of a kernel; lives as long as its module
  std::array<uint32_t, 3> grid = {}, block = {}, cluster = {};
  uint32_t shared_bytes = 0;
  uint64_t bytes = 0;
  Place from = Place::kDevice, to = Place::kDevice;  // of a copy
  uint32_t sync = 0;                                 // how the host waited, in CUPTI's numbers
  uint32_t correlation = 0, stream = 0;
  uint64_t graph_node = 0;  // in the executable graph
  bool early = false;       // it began before the one in front of it had ended
};

// Who wants to know. Calls come in the thread that calls the driver, except for `done`, which comes where the work is
// done, all with the driver's lock held, except for `enter` and `exit`.
struct Observer {
  uint32_t (*enter)(uint32_t call);  // CUPTI's number of the driver's call; returns the number that its work carries
  void (*exit)(uint32_t call, uint32_t correlation);
  void (*node_created)(const Graph& graph, uint64_t node);
  void (*executable_created)(const Graph& graph, const Graph& executable);
  void (*done)(const Work& work);
};

const Observer* observer();  // null: nobody

// One call of the driver. Calls of its own within it are not told of.
class ApiCall {
 public:
  explicit ApiCall(uint32_t call);
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  // Of the call in progress on this thread; 0: nobody wants to know.
  static uint32_t correlation();

 private:
  const Observer* observer_ = nullptr;  // null: nobody, or within another call
  uint32_t call_;
};

}  // namespace heddle::emulator
