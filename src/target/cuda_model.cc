#include "target/cuda_model.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

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

// How much of what one chip has another has, by ScalesWith.
using Ratios = std::array<double, 6>;

CudaModel following(CudaModel model, const Ratios& ratios) {
  for_each_number(model, [&](std::string_view, std::string_view, double& value, ScalesWith follows) {
    value *= ratios[static_cast<size_t>(follows)];
  });
  return model;
}

const std::vector<const KnownChip*>& chips() {
  static const std::vector<const KnownChip*> all = {
#define HEDDLE_CHIP(name) &name(),
#include "target/models/chips.inc"
#undef HEDDLE_CHIP
  };
  return all;
}

}  // namespace

CudaModel scaled(const CudaModel& measured, const ChipFacts& from, const ChipFacts& to) {
  const double clock = ratio(to.boost_ghz, from.boost_ghz), memory = ratio(to.memory_tbps, from.memory_tbps);
  const double tensor = ratio(to.tensor_per_cycle, from.tensor_per_cycle), sms = ratio(to.sms, from.sms);
  CudaModel model = following(measured, {1, clock, memory, clock * sms, tensor, clock * sms * tensor});
  if (to.sms > 0) model.chip.sms = to.sms;
  return model;
}

KnownChip scaled_from_h200(std::string_view name, int architecture, const ChipFacts& facts) {
  const KnownChip& from = h200();
  const double clock = facts.boost_ghz / from.facts.boost_ghz, chip = clock * facts.sms / from.facts.sms;
  const double tensor = facts.tensor_per_cycle / from.facts.tensor_per_cycle;
  CudaRates rates = from.rates;
  rates.clock_ghz *= clock;
  rates.memory_tbps *= facts.memory_tbps / from.facts.memory_tbps;
  rates.l2_tbps *= chip;
  rates.tensor_tflops *= chip * tensor;
  return {name, architecture, facts, scaled(from.model, from.facts, facts), rates};
}

const KnownChip& nearest_chip(std::string_view name, int architecture) {
  // Of equally near architectures the chip whose numbers were fitted.
  const KnownChip* nearest = &h200();
  for (const KnownChip* chip : chips()) {
    if (begins_with(name, chip->name)) return *chip;
    if (std::abs(chip->architecture - architecture) < std::abs(nearest->architecture - architecture)) nearest = chip;
  }
  return *nearest;
}

CudaModel model_of(std::string_view name, int architecture, const ChipFacts& facts) {
  const KnownChip& chip = nearest_chip(name, architecture);
  return scaled(chip.model, chip.facts, facts);
}

CudaModel calibrated_model(std::string_view name, int architecture, double sms, const CudaRates& rates) {
  const KnownChip& chip = nearest_chip(name, architecture);
  const double clock = ratio(rates.clock_ghz, chip.rates.clock_ghz);
  const double all = ratio(rates.tensor_tflops, chip.rates.tensor_tflops);
  const double tensor = all == 1 ? 1 : ratio(all / clock * chip.facts.sms / sms, 1);
  CudaModel model = following(chip.model, {1, clock, ratio(rates.memory_tbps, chip.rates.memory_tbps),
                                           ratio(rates.l2_tbps, chip.rates.l2_tbps), tensor, all});
  model.chip.graph_boundary_us *= ratio(rates.boundary_us, chip.rates.boundary_us);
  model.chip.sms = sms;
  return model;
}

std::string fingerprint(const CudaModel& model) {
  std::string numbers;
  for_each_number(model, [&](std::string_view, std::string_view, double value, ScalesWith) {
    numbers += fmt::format("{} ", value);
  });
  return hash_text(numbers).hex().substr(0, 8);
}

}  // namespace heddle
