#include "profile/gpu/collector.h"

#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "profile/gpu/session.h"

namespace heddle::profile {

std::vector<std::pair<std::string, std::string>> facts_of(const GpuStats& stats) {
  // From 13.0 on the number is 130001 for 13.0 update 1; before, versions are counted.
  constexpr uint32_t kDecimal = 10000;
  const std::string version = stats.version < kDecimal ? fmt::format("interface {}", stats.version)
                                                       : fmt::format("{}.{}.{}", stats.version / 10000,
                                                                     stats.version / 100 % 100, stats.version % 100);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"GPU recorded by", fmt::format("CUPTI {}, {} records", version, stats.operations)},
      {"cost of recording",
       fmt::format("{:.1f} ms in {} calls, {:.1f} ms of CUPTI itself", static_cast<double>(stats.call_ns) * 1e-6,
                   stats.calls, static_cast<double>(stats.overhead_ns) * 1e-6)}};
  const auto missing = [&](const char* what, uint64_t count) {
    if (count > 0) facts.emplace_back(what, fmt::format("{}", count));
  };
  missing("GPU records lost by CUPTI", stats.dropped);
  missing("GPU records beyond the memory allowed", stats.lost);
  missing("GPU records without times", stats.unknown_times);
  missing("GPU records of unknown kinds", stats.unknown_kinds);
  missing("damaged buffers of GPU records", stats.malformed);
  missing("launches whose caller is not kept", stats.lost_contexts);
  return facts;
}

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
