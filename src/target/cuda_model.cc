#include "target/cuda_model.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/hash.h"

namespace heddle {
namespace {

// Drivers round clocks; a chip that differs by less is the one that was measured.
constexpr double kSame = 0.1;

double ratio(double to, double from) {
  const double r = to > 0 && from > 0 ? to / from : 1;
  return std::abs(r - 1) < kSame ? 1 : r;
}

bool begins_with(std::string_view name, std::string_view beginning) {
  // "NVIDIA L40" is no "NVIDIA L4".
  return name.starts_with(beginning) &&
         (name.size() == beginning.size() || !std::isdigit(static_cast<unsigned char>(name[beginning.size()])));
}

}  // namespace

CudaModel scaled(const CudaModel& measured, const ChipFacts& from, const ChipFacts& to) {
  const double clock = ratio(to.boost_ghz, from.boost_ghz), memory = ratio(to.memory_tbps, from.memory_tbps);
  const double tensor = ratio(to.tensor_per_cycle, from.tensor_per_cycle), sms = ratio(to.sms, from.sms);
  CudaModel model = measured;
  for_each_number(model, [&](std::string_view, std::string_view, double& value, ScalesWith follows) {
    switch (follows) {
      case ScalesWith::kFixed:
        break;
      case ScalesWith::kClock:
        value *= clock;
        break;
      case ScalesWith::kMemory:
        value *= memory;
        break;
      case ScalesWith::kL2:
        value *= clock * sms;
        break;
      case ScalesWith::kTensor:
        value *= tensor;
        break;
      case ScalesWith::kChip:
        value *= clock * sms * tensor;
        break;
    }
  });
  if (to.sms > 0) model.chip.sms = to.sms;
  return model;
}

KnownChip scaled_from_h200(std::string_view name, int architecture, const ChipFacts& facts) {
  return {name, architecture, facts, scaled(h200().model, h200().facts, facts)};
}

CudaModel model_of(std::string_view name, int architecture, const ChipFacts& facts) {
  const std::array<const KnownChip*, 4> chips = {&h200(), &h100(), &a100(), &l4()};
  const KnownChip* nearest = chips[0];
  for (const KnownChip* chip : chips) {
    if (begins_with(name, chip->name)) return scaled(chip->model, chip->facts, facts);
    if (std::abs(chip->architecture - architecture) < std::abs(nearest->architecture - architecture)) nearest = chip;
  }
  return scaled(nearest->model, nearest->facts, facts);
}

std::string fingerprint(const CudaModel& model) {
  std::string numbers;
  for_each_number(model, [&](std::string_view, std::string_view, double value, ScalesWith) {
    numbers += fmt::format("{} ", value);
  });
  return hash_text(numbers).hex().substr(0, 8);
}

}  // namespace heddle
