#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "cli/output.h"

namespace heddle::cli {
namespace {

constexpr double kBetweenLines = 15;  // seconds, where lines stay
constexpr double kSteadyPace = 1;     // seconds after which a pace is believed

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", std::max<int64_t>(whole, 1));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string bar(double fraction) {
  constexpr size_t kWidth = 24;
  const auto filled = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  return fmt::format("[{}{}]", std::string(filled, '#'), std::string(kWidth - filled, '.'));
}

}  // namespace

Progress::Progress() : start_(wall_seconds()), told_(start_) {}

double Progress::seconds_left(const std::string& stage, double fraction, double now) {
  if (stage.find(" of ") == std::string::npos) {
    counted_from_.reset();
    return -1;
  }
  if (!counted_from_) counted_from_ = {now, fraction};
  const double passed = now - counted_from_->seconds, done = fraction - counted_from_->fraction;
  return passed < kSteadyPace || done <= 0 ? -1 : passed * (1 - fraction) / done;
}

void Progress::show(const std::string& stage, double fraction) {
  const double now = wall_seconds(), left = seconds_left(stage, fraction, now);
  if (fraction >= 1) return end();
  const std::string rest = left < 0 ? "" : fmt::format(", {} left", duration(left));
  if (is_terminal(STDERR_FILENO)) {
    show_status(fmt::format("{} {}{}", bar(fraction), stage, rest));
  } else if (now - told_ >= kBetweenLines) {
    told_ = now;
    tell("progress", fmt::format("{}, {:.0f}% done after {}{}", stage, 100 * fraction, duration(now - start_), rest));
  }
}

void Progress::end() {
  clear_status();
}

}  // namespace heddle::cli
