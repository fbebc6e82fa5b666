#pragma once

#include <nlohmann/json_fwd.hpp>

#include "driver/api/run_times.h"
#include "driver/compile/compile.h"
#include "driver/report/inspect.h"
#include "driver/tune/tune_model.h"
#include "driver/verify/verify.h"

namespace heddle::cli {

// Reports of the results of commands, as JSON and as printed text.
nlohmann::json json_of(const driver::CompileReport& report);
nlohmann::json json_of(const EnergyFigure& energy);
nlohmann::json json_of(const driver::ModelSummary& summary);
nlohmann::json json_of(const driver::RunTimes& times);
nlohmann::json json_of(const driver::TuneReport& report);
nlohmann::json json_of(const driver::VerifyReport& report);

// `verbose`: also prints every group, kernel and decision.
void print_report(const driver::CompiledModel& model, const Target& target, bool verbose);
// `full`: prints names and extent formulas in full. Otherwise shortens them so that rows fit the terminal.
void print_report(const driver::ModelSummary& summary, bool full = false);
void print_report(const driver::RunTimes& times);
void print_report(const driver::TuneReport& report);
void print_report(const driver::VerifyReport& report);

}  // namespace heddle::cli
