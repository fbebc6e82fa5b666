#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/driver/module.h"
#include "emulator/driver/observer.h"
#include "emulator/memory.h"
#include "emulator/scheduler.h"
#include "emulator/settings.h"

#define HEDDLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace heddle::emulator {

// Result codes, with the numbers of the CUDA driver API.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kOutOfResources = 701,
  kLaunchFailed = 719,
  kCooperativeTooLarge = 720,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kUnknown = 999,
};

// One operation of a stream or graph.
struct Operation {
  std::function<Result()> run;
  // For a launch, in place of `run`: runs the launch, or the remainder of a launch that has begun.
  std::function<Result(bool begun)> launch;
  // For a launch that may begin before its predecessor has ended: begins this launch. The predecessor is then completed
  // before this launch continues.
  std::function<void()> begin;
  Work work = {};
};

// Data of the program that lives as long as the graphs that retain it.
struct UserObject {
  void* pointer = nullptr;
  void (*destroy)(void*) = nullptr;

  UserObject(void* data, void (*ends)(void*)) : pointer(data), destroy(ends) {}
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  ~UserObject() { destroy(pointer); }
};

struct Graph {
  uint32_t id = 0;
  std::vector<Operation> operations;
  std::vector<std::shared_ptr<UserObject>> retained;

  uint64_t node(size_t operation) const { return uint64_t{id} << 32 | (operation + 1); }
};

// A CUDA stream. Each operation runs when the host waits for it, or at a random time before that. So host code that
// reads or frees memory too early fails.
struct Stream {
  std::shared_ptr<Graph> capture;  // null: not capturing
  bool blocking = false;           // synchronises with the default stream
  bool draining = false;
  uint32_t number = 0;
  std::deque<Operation> queue;
  Result error = kSuccess;  // of the first failed operation, until a call that waits returns it
  std::string detail;
};

struct Event {
  struct State {
    bool done = false;
    double seconds = -1;       // time at which the event was recorded; negative before that
    Stream* stream = nullptr;  // the stream that recorded the event
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::shared_ptr<Graph> capture;
};

// The state that all driver calls of this process share. Each call locks `mutex`.
struct Driver {
  std::recursive_mutex mutex;
  bool initialised = false;
  bool lost = false;  // every later call fails, even for another context
  int contexts = 0;   // retained and not yet released
  int launches = 0;
  uint64_t seeds = 0;  // seeds that launches used
  uint32_t graphs = 0, numbered_streams = 0;
  // The current launch runs on schedulers[turn]. A launch that begins early, while the current one runs, uses the other
  // scheduler.
  std::array<Scheduler, 2> schedulers;
  size_t turn = 0;
  Memory memory;
  std::set<Stream*> streams;
  std::map<uint64_t, size_t> pinned;  // host memory that asynchronous copies access late: address, bytes
  Random random{1};
  std::string detail;  // of the last error, for cuGetErrorString()

  static Driver& get();
  // Stores `why` for cuGetErrorString() and returns `result`.
  Result error(Result result, std::string why);
  // Adds `operation` to the stream, or to the graph if the stream is capturing one. On the default stream (null) the
  // operation runs immediately.
  Result submit(void* stream, Operation operation);
  Result submit(void* stream, std::function<Result()> run, const Work& work = {});
  // Runs the operation now and notifies the observer. `begun`: the operation is a launch that has already begun.
  Result perform(const Operation& operation, bool begun = false);
  void tell(Work work);  // notifies the observer of work that has no operation
  // Runs the queued operations of the stream. An error is stored in the stream.
  void drain(Stream* stream);
  void drain_all();
  // Does the same as drain(), but returns and clears the error.
  Result wait(Stream* stream);
  bool is_pinned(const void* pointer) const;
};

// Holds the driver's lock during one call.
struct Call {
  Driver& driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock{driver.mutex};
  // Returns an error if the device does not work. Used by calls that need a working device.
  Result ready() const;
};

}  // namespace heddle::emulator
