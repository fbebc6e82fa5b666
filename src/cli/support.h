#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "driver/report/modules.h"

namespace heddle::cli {

// The options with shapes and (from --input files) values filled in, and a progress display.
// Throws kInvalidArgument on a malformed NAME=... item.
enum class Ranges : uint8_t { kRefused, kTaken };  // of extents in --shape
struct Prepared {
  CompileOptions options;
  std::map<std::string, Tensor> inputs;
};
Prepared prepare(const Arguments& arguments, Ranges ranges = Ranges::kRefused);

// Says on stderr, in one line, which values were taken for extents that nobody gave.
void tell_guess(const Arguments& arguments, const CompileOptions& options, const std::vector<PortInfo>& inputs);

// Says on stderr which values were taken for inputs that decide branches (driver/verify/random_inputs.h).
void tell_branches(const std::string& guess);

// `inputs`, with tensors from integer files reinterpreted as the types of the model (read_npy()).
std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports);

// If the machine was busy, warns that measured times may be too long (base/thread/contention.h).
void print_busy(double waiting, int threads);

// The modules that a picture shows.
driver::Modules modules_of(const Arguments& arguments);

// "1.5 GB", "12 KB"
std::string human_bytes(double bytes);
// "1.234 ms"
std::string human_seconds(double seconds);

}  // namespace heddle::cli
