#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/output.h"
#include "driver/report/modules.h"

namespace heddle::cli {

// prepare() returns the options with the shapes filled in, and the input values from the --input files; it also sets up
// a progress display. `ranges` says whether --shape may give ranges of extents. Throws kInvalidArgument on a malformed
// NAME=... item.
enum class Ranges : uint8_t { kRefused, kTaken };  // ranges of extents in --shape
struct Prepared {
  CompileOptions options;
  std::map<std::string, Tensor> inputs;
};
Prepared prepare(const Arguments& arguments, Ranges ranges = Ranges::kRefused);

// Prints one line on stderr with the values chosen for extents that the user did not give.
void tell_guess(const Arguments& arguments, const CompileOptions& options, const std::vector<PortInfo>& inputs);

// Prints on stderr the values chosen for inputs that decide branches. `guess`: see branch_guess()
// (driver/verify/random_inputs.h).
void tell_branches(const std::string& guess);

// Returns `inputs` with tensors from integer files reinterpreted as the types of the model's ports (read_npy()).
std::map<std::string, Tensor> fit_types(std::map<std::string, Tensor> inputs, const std::vector<PortInfo>& ports);

// If the machine was busy, warns that measured times may be too long (base/thread/contention.h).
void print_busy(double waiting, int threads);

// Returns the modules that a picture shows, according to the arguments.
driver::Modules modules_of(const Arguments& arguments);

// Formats a number of bytes: "1.5 GB", "12 KB".
std::string human_bytes(double bytes);
// Formats a time: "1.234 ms".
std::string human_seconds(double seconds);

}  // namespace heddle::cli
