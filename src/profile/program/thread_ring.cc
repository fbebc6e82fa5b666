#include "profile/program/thread_ring.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/check.h"
#include "profile/program/memory_reader.h"

namespace heddle::profile {
namespace {

constexpr size_t kFrameWords = sizeof(PythonFrame) / 8;

int64_t thread_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

size_t words_of(size_t bytes) {
  return (bytes + 7) / 8;
}

// The same code object, wherever in it the frame is.
bool is_same_code(const PythonFrame& a, const PythonFrame& b) {
  return a.code == b.code && a.file == b.file && a.lines == b.lines && a.begins == b.begins &&
         a.first_line == b.first_line;
}

}  // namespace

ThreadRing* ThreadRing::make() {
  void* memory = ::mmap(nullptr, sizeof(ThreadRing), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(ErrorCode::kOutOfMemory, "CPU samples", "there is no memory for those of a thread");
  return new (memory) ThreadRing();
}

void ThreadRing::begin(int of_thread, std::string of_name, int64_t counted) {
  ring_.drain([](const uint64_t*, size_t) {});
  known_.fill({});
  thread = of_thread;
  name = std::move(of_name);
  last = counted;
  lost = 0;
}

void ThreadRing::take(const PythonRuntime& python, uint64_t program_counter) {
  const size_t count = walk_python(python, frames_);
  bool has_room = true;
  for (size_t i = 0; i < count && has_room; ++i) has_room = announce(python, frames_[i]);
  uint64_t* record = has_room ? ring_.begin(3 + kFrameWords * count) : nullptr;
  if (record == nullptr) {
    lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const int64_t now = thread_nanoseconds();
  record[0] = kSample;
  record[1] = program_counter;
  record[2] = static_cast<uint64_t>(now - last);
  std::memcpy(record + 3, frames_.data(), count * sizeof(PythonFrame));
  ring_.commit();
  last = now;
}

// Where a code object is known, or should be: what stood there is copied again when it is next met.
size_t ThreadRing::place_of(const PythonFrame& frame) const {
  constexpr size_t kProbes = 8;
  const size_t start = (frame.code >> 4) * 0x9E3779B1u % kKnown;
  for (size_t i = 0; i < kProbes; ++i) {
    const size_t place = (start + i) % kKnown;
    if (known_[place].code == frame.code || known_[place].code == 0) return place;
  }
  return start;
}

// Copies the code object of a frame unless that was done. False where there is no room now.
bool ThreadRing::announce(const PythonRuntime& python, const PythonFrame& frame) {
  const size_t place = place_of(frame);
  if (is_same_code(known_[place], frame)) return true;
  PythonObject name, file, lines;
  if (!find_code(python, frame, &name, &file, &lines)) return true;  // it was just being freed
  constexpr size_t kMostLines = kWords * 2;                          // bytes: a quarter of the ring
  if (lines.bytes > kMostLines) lines.bytes = 0;
  constexpr size_t kHead = 1 + kFrameWords + 3 * (sizeof(PythonObject) / 8);
  uint64_t* record = ring_.begin(kHead + words_of(name.bytes) + words_of(file.bytes) + words_of(lines.bytes));
  if (record == nullptr) return false;
  record[0] = kCode;
  std::memcpy(record + 1, &frame, sizeof frame);
  uint64_t* next = record + 1 + kFrameWords;
  for (const PythonObject* object : {&name, &file, &lines}) {
    std::memcpy(next, object, sizeof *object);
    next += sizeof *object / 8;
    if (object->bytes != 0 && !read_memory(object->content, next, object->bytes)) std::memset(next, 0, object->bytes);
    next += words_of(object->bytes);
  }
  ring_.commit();
  known_[place] = frame;
  return true;
}

void ThreadRing::collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
                         const std::function<void(const CpuSample&)>& sample) {
  ring_.drain([&](const uint64_t* record, size_t words) {
    if (record[0] == kSample) {
      read_.resize((words - 3) / kFrameWords);
      std::memcpy(static_cast<void*>(read_.data()), record + 3, read_.size() * sizeof(PythonFrame));
      sample({read_, record[1], static_cast<int64_t>(record[2]), &name});
      return;
    }
    PythonFrame frame;
    std::memcpy(static_cast<void*>(&frame), record + 1, sizeof frame);
    const uint64_t* next = record + 1 + kFrameWords;
    std::array<PythonObject, 3> objects;
    std::array<const uint8_t*, 3> contents;
    for (size_t i = 0; i < objects.size(); ++i) {
      std::memcpy(static_cast<void*>(&objects[i]), next, sizeof objects[i]);
      next += sizeof objects[i] / 8;
      contents[i] = reinterpret_cast<const uint8_t*>(next);
      next += words_of(objects[i].bytes);
    }
    learn(frame, {text_of(objects[0], contents[0]),
                  text_of(objects[1], contents[1]),
                  frame.first_line,
                  {contents[2], contents[2] + objects[2].bytes}});
  });
}

}  // namespace heddle::profile
