#include "base/thread/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/interface/option.h"

namespace heddle {
namespace {

std::map<std::string, int64_t> waited_by_thread() {
  std::map<std::string, int64_t> waited;
  std::error_code none;
  for (std::filesystem::directory_iterator task("/proc/self/task", none), end; task != end; task.increment(none)) {
    if (none) break;
    std::ifstream file(task->path() / "schedstat");
    int64_t ran = 0, waiting = 0;
    if (file >> ran >> waiting) waited[task->path().filename().string()] = waiting;
  }
  return waited;
}

}  // namespace

Contention::Contention() : before_(waited_by_thread()), start_(wall_seconds()) {}

double Contention::waiting() const {
  const double wall = wall_seconds() - start_;
  int64_t most = 0;
  for (const auto& [thread, waited] : waited_by_thread()) {
    const auto before = before_.find(thread);
    most = std::max(most, waited - (before == before_.end() ? 0 : before->second));
  }
  return wall > 0 ? std::min(static_cast<double>(most) * 1e-9 / wall, 1.0) : 0;
}

bool is_busy(double waiting) {
  constexpr double kMuch = 0.1;
  return waiting >= kMuch;
}

std::string busy_text(double waiting, int threads) {
  if (!is_busy(waiting)) return "";
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const std::string why = threads > processors ? fmt::format("{} threads share {} processors", threads, processors)
                                               : std::string("the machine is busy with other work");
  return fmt::format(
      "{}: while times were measured, a thread waited {:.0f}% of them for a processor. They may be far too long; "
      "measure again when the machine is idle{}",
      why, 100 * waiting, threads > processors ? fmt::format(", with fewer threads ({})", option::threads()) : "");
}

}  // namespace heddle
