#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/capture.h"
#include "cli/commands/reports.h"

namespace heddle::python {

// Returns the report of a tool twice: as text for people and as JSON.
template <typename Report>
nanobind::tuple told(const Report& report) {
  const std::string text = cli::captured([&] { cli::print_report(report); });
  const std::string json = cli::json_of(report).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return nanobind::make_tuple(text, json);
}

}  // namespace heddle::python
