#include "tile_winners.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "array.h"
#include "runtime/cuda/device.h"
#include "tune/place.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

tune::Place place(int device) {
  return device == kHost ? tune::place_of(Target::host_cpu())
                         : tune::place_of(runtime::CudaContext::of_device(device)->device());
}

std::optional<std::string> find_winner(int device, const std::string& problem) {
  const nb::gil_scoped_release free;
  const auto record = tune::user_database().find(place(device), problem);
  return record ? std::optional(record->winner) : std::nullopt;
}

bool store_winner(int device, const std::string& problem, const std::string& winner, double us, int64_t candidates) {
  const nb::gil_scoped_release free;
  tune::Record record;
  record.winner = record.pick = winner;
  record.winner_us = record.pick_us = us;
  record.candidates = candidates;
  return tune::user_database().store(place(device), problem, record);
}

}  // namespace

void register_tile_winners(nb::module_& tile) {
  tile.def("find_winner", &find_winner, nb::arg("device"), nb::arg("problem"),
           "The configuration that was the fastest on devices like this one; -1 is the CPU.");
  tile.def("store_winner", &store_winner, nb::arg("device"), nb::arg("problem"), nb::arg("winner"), nb::arg("us"),
           nb::arg("candidates"), "Keeps a configuration by its name. False: nothing can be kept.");
}

}  // namespace heddle::python
