#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/memory.h"
#include "emulator/module.h"
#include "emulator/scheduler.h"
#include "emulator/settings.h"

#define HEDDLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace heddle::emulator {

// Results of the driver's interface, with its numbers.
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

// What a stream or a graph does in order.
using Operation = std::function<Result()>;

struct Graph {
  std::vector<Operation> operations;
};

struct Stream {
  std::shared_ptr<Graph> capture;  // null: operations run as they come
};

struct Event {
  double seconds = -1;  // when it was recorded; before the first time negative
  std::shared_ptr<Graph> capture;
};

// Everything that the calls of this process share. Each call holds the lock.
struct Driver {
  std::recursive_mutex mutex;
  bool initialised = false;
  bool lost = false;  // every later call fails
  int contexts = 0;   // that were retained and not released
  int launches = 0;
  Memory memory;
  std::set<Stream*> streams;
  std::string detail;  // of the last error, for cuGetErrorString()

  static Driver& get();
  // Keeps what went wrong for cuGetErrorString().
  Result error(Result result, std::string why);
  // Runs `operation` now, or adds it to what the stream captures.
  Result submit(void* stream, Operation operation);
};

// Holds the lock for one call.
struct Call {
  Driver& driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock{driver.mutex};
  // Of a call that needs a working device.
  Result ready() const;
};

}  // namespace heddle::emulator
