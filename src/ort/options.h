#pragma once

#include <map>
#include <string>

#include "heddle/model.h"
#include "ort/runtime.h"

namespace heddle::ort {

inline constexpr const char* kName = "HeddleExecutionProvider";

// What a session asks of the provider.
struct Options {
  CompileOptions compile;
  // Take every region that compiles, also those that are not expected to gain.
  bool all_regions = false;
  // Later runs replay the first one, as a CUDA graph.
  bool captures_graphs = false;
  // EPContext models: the session writes one, with the plans in it or in files beside it.
  bool writes_context = false, embeds_plans = false;
  std::string context_path;  // of the model with plans, as far as the session's options name it
};

// Reads the options of the provider and those of the session that concern it. Sets the folder of the cache, if it is
// among them. `target`: CompileOptions::target. Throws
// kInvalidArgument for an unknown key and for an invalid value.
Options read_options(const Runtime& runtime, const OrtSessionOptions* session, const std::string& target);
// `entries`: the session's configuration.
Options parse_options(const std::map<std::string, std::string>& entries, const std::string& target = "cpu");

}  // namespace heddle::ort
