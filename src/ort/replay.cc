#include "ort/replay.h"

#include <utility>

namespace heddle::ort {

Replays::~Replays() {
  release(recorded_);
  for (auto& [number, recording] : graphs_) {
    recording.graph.reset();
    release(recording);
  }
}

void Replays::release(const Recording& recording) {
  for (void* const data : recording.held) memory_.release(data);
}

void Replays::begin(int number) {
  number_.reset();
  if (number != kNone && !has(number)) number_ = number;
}

void Replays::add(std::function<void(Stream)> enqueue, const std::vector<void*>& held) {
  if (!number_) return;
  recorded_.calls.push_back(std::move(enqueue));
  for (void* const data : held) {
    if (memory_.hold(data)) recorded_.held.push_back(data);
  }
}

void Replays::end(size_t regions) {
  Recording recording = std::exchange(recorded_, {});
  const std::optional<int> number = std::exchange(number_, std::nullopt);
  try {
    if (number && recording.calls.size() == regions) {
      const auto enqueue = [&] {
        for (const auto& call : recording.calls) call(stream_.handle());
      };
      recording.graph = std::make_unique<runtime::CudaGraph>(memory_.context(), enqueue, stream_.handle());
      graphs_.emplace(*number, std::move(recording));
      return;
    }
  } catch (...) {
    release(recording);
    throw;
  }
  release(recording);
}

void Replays::replay(int number) const {
  memory_.context().make_current();
  graphs_.at(number).graph->launch(stream_.handle());
  stream_.synchronize();
}

}  // namespace heddle::ort
