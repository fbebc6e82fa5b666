#include "target/cpu_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/hash.h"

namespace heddle {

const CpuModel& model_of(CpuIsa isa) {
  static const KnownCpu* const all[] = {
#define HEDDLE_CPU(name) &name##_cpu(),
#include "target/models/cpus.inc"
#undef HEDDLE_CPU
  };
  // What runs here before what does not; of those the widest, of these the narrowest.
  const auto distance = [&](const KnownCpu* cpu) {
    const int over = static_cast<int>(cpu->isa) - static_cast<int>(isa);
    return over > 0 ? 100 + over : -over;
  };
  return (*std::min_element(std::begin(all), std::end(all),
                            [&](const KnownCpu* a, const KnownCpu* b) { return distance(a) < distance(b); }))
      ->model;
}

std::string fingerprint(const CpuModel& model) {
  std::string numbers;
  for_each_cpu_number(model, [&](std::string_view, double value) { numbers += fmt::format("{} ", value); });
  return hash_text(numbers).hex().substr(0, 8);
}

}  // namespace heddle
