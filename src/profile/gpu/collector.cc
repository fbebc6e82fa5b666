#include "profile/gpu/collector.h"

#include <mutex>
#include <vector>

#include "profile/gpu/session.h"

namespace heddle::profile {

std::unique_ptr<GpuCollector> GpuCollector::start(Options options) {
  static std::mutex mutex;
  static auto* sessions = new std::vector<std::shared_ptr<Session>>();  // session.h says why they stay
  const std::lock_guard lock(mutex);
  const auto session = std::make_shared<Session>(cupti::library(), std::move(options));
  sessions->push_back(session);
  session->begin();
  return std::unique_ptr<GpuCollector>(new GpuCollector(session));
}

GpuCollector::~GpuCollector() {
  session_->end();
  session_->take();
}

std::vector<GpuOperation> GpuCollector::take() {
  return session_->take();
}

void GpuCollector::flush() {
  session_->flush(true);
}

GpuStats GpuCollector::stop() {
  session_->end();
  return session_->stats();
}

GpuStats GpuCollector::stats() const {
  return session_->stats();
}

}  // namespace heddle::profile
