#include "frontend/onnx/reader/budget.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/interface/option.h"
#include "base/memory.h"
#include "base/thread/cancel.h"

namespace heddle::onnx {
namespace {

constexpr int kMostDepth = 512;  // the importer recurses over graphs in graphs

[[noreturn]] void exceeded(const std::string& where, std::string why, const char* name) {
  fail(ErrorCode::kLimit, where, std::move(why), "If you trust the model, raise the limit: " + option::limit(name));
}

}  // namespace

Budget::Budget(const ImportLimits& limits)
    : limits_(limits),
      bytes_left_(limits.bytes == 0 ? available_memory() : static_cast<uint64_t>(limits.bytes)),
      start_(wall_seconds()) {
  const auto check = [](bool holds, const char* name, const char* rule) {
    if (!holds) fail(ErrorCode::kInvalidArgument, fmt::format("limit {}", name), rule);
  };
  check(limits.nodes > 0, "nodes", "it must be positive");
  check(limits.bytes >= 0, "bytes", "it must not be negative");
  check(limits.depth > 0 && limits.depth <= kMostDepth, "depth", "it must be between 1 and 512");
  check(limits.seconds > 0, "seconds", "it must be positive");
}

void Budget::take_bytes(uint64_t bytes, const std::string& where) {
  if (bytes > bytes_left_) {
    exceeded(where,
             fmt::format("importing it takes more than {} bytes of memory",
                         limits_.bytes == 0 ? "the available" : std::to_string(limits_.bytes)),
             "bytes");
  }
  bytes_left_ -= bytes;
}

void Budget::check_nodes(uint64_t nodes, const std::string& where) const {
  if (nodes <= static_cast<uint64_t>(limits_.nodes)) return;
  exceeded(where,
           fmt::format("the model has more than {} nodes when its functions are expanded and its loops unrolled",
                       limits_.nodes),
           "nodes");
}

void Budget::check_depth(int depth, const std::string& where) const {
  if (depth <= limits_.depth) return;
  exceeded(where, fmt::format("graphs, functions or types are nested more than {} deep", limits_.depth), "depth");
}

void Budget::check_time(const std::string& where) const {
  check_cancelled();
  if (wall_seconds() - start_ <= limits_.seconds) return;
  exceeded(where, fmt::format("importing the model takes more than {} seconds", limits_.seconds), "seconds");
}

}  // namespace heddle::onnx
