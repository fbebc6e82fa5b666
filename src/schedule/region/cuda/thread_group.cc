#include "schedule/region/cuda/thread_group.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kWide = 16;  // bytes of an access

}  // namespace

// Two or three vectors of 16 bytes a thread keep enough loads in flight at the fewest registers, of narrow ones more;
// where there are too few threads to fill the device, more of them do as well. All numbers were measured.
int64_t team_for_row(const GpuTarget& target, int64_t steps, int64_t iterations, int64_t access, bool again) {
  constexpr int64_t kMostTeam = 512;
  constexpr double kCost[] = {1.07, 1, 1.01, 1.03, 1.06}, kNarrowCost[] = {1.1, 1.04, 1.02, 1, 1};  // by vectors
  constexpr double kScattered = 1.8;  // rows that threads write alone, a few bytes of many sectors at a time
  const bool narrow = access < kWide;
  int64_t best = target.lanes;
  double least = 0;
  for (int64_t team = 1; team <= kMostTeam; team += team < target.lanes ? team : target.lanes) {
    const int64_t each = ceil_div(steps, team);
    const int64_t enough = target.sms * (team < target.lanes ? 1024 : 512);  // threads with loads in flight
    const bool few = iterations * team < enough;
    const auto at = static_cast<size_t>(std::min<int64_t>(each, 5) - 1);
    const double slope = again ? 0.05 : narrow || iterations == 1 ? 0.02 : 0.03;
    double cost = few ? 1 + slope * static_cast<double>(each) : narrow ? kNarrowCost[at] : kCost[at];
    if (each > kStepsOfThread) cost += 0.1 * static_cast<double>(ceil_div(each, kStepsOfThread));
    if (narrow && again && !few && team == 1 && steps > 1) cost *= kScattered;
    cost *= static_cast<double>(each * team) / static_cast<double>(steps);
    // Barriers, and a block for each row; its warps wait for the one that alone has another step.
    if (team > target.lanes) cost *= again ? (steps % team == 0 ? 1.02 : 1.04) : few ? 1.15 : 1.05;
    if (least == 0 || cost < least - 1e-9) {
      least = cost;
      best = team;
    }
  }
  return best;
}

// About a segment, of whole sectors if possible; one that divides the row leaves no thread without work. Where there
// is little to read, more blocks are worth more than whole sectors.
int64_t columns_of_block(int64_t columns, int vector, int64_t element, double bytes) {
  constexpr int64_t kSector = 32;
  constexpr double kMuch = 16 << 20;
  const int64_t wanted = kColumnSegment / element;
  const auto divides = [&](int64_t b, int64_t sector) {
    return columns % b == 0 && b % vector == 0 && b * element % sector == 0;
  };
  for (int64_t sector : {kSector, int64_t{1}}) {
    for (int64_t b = wanted; b >= wanted / 2; --b) {
      if (divides(b, sector)) return b;
    }
    for (int64_t b = wanted + 1; sector > 1 && bytes >= kMuch && b <= 2 * wanted; ++b) {
      if (divides(b, sector)) return b;
    }
  }
  return ceil_div(std::min(columns, wanted), vector) * vector;
}

double column_gbps(const GpuTarget& target, int64_t access) {
  return target.model.chip.column_gbps * std::pow(static_cast<double>(std::min(access, kWide)) / kWide, 0.55);
}

}  // namespace heddle::schedule
