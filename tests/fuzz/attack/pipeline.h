#pragma once

#include <cstdint>
#include <string>

namespace heddle::fuzz {

struct PipelineCase {
  std::string path;   // of a model
  uint64_t seed = 1;  // decides options and inputs
  bool run = false;   // compile the kernels, too, and run them
};

// Compiles a model as far as the text of its kernels for the CPU and for a GPU, a part of the models with other
// precisions and fusion policies; with `run`, then for one of the two with its kernels and runs it, where its plan is
// small enough. Returns "ok" or "ok, ran"; throws whatever Heddle throws (the first refusal, after both targets).
std::string compile_everywhere(const PipelineCase& c);

}  // namespace heddle::fuzz
