#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

// Helpers for the rules of advice.h.
namespace heddle::profile {

// The run time to which the gain of a piece of advice is compared. With a GPU, it is the GPU's busy time plus its idle
// time; otherwise, it is the total of the time metric.
int64_t run_time(const CallingContextTree& tree);

// `time` as a fraction of run_time().
double share_of_run(const CallingContextTree& tree, int64_t time);

// Returns a piece of advice on a node. The caller adds the evidence, the confidence and the remedy.
Advice advice_on(const Profile& profile, const char* rule, NodeId node, int64_t gain);

// A candidate for advice: a node or a row of a table, and the time that the advice would save.
struct Gain {
  uint32_t of = 0;
  int64_t ns = 0;
};

// The maximum number of pieces of advice in a profile.
inline constexpr size_t kMostAdvice = 7;

// Keeps the kMostAdvice largest gains, in their current order, and removes the others. Called before the texts of the
// advice are written, since every row of a table may have a gain.
void keep_largest(std::vector<Gain>& gains);

// Formats a time: 1234567 becomes "1.2 ms".
std::string time_text(int64_t nanoseconds);

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts);

// True if a kernel, judged by its name, exchanges data between GPUs.
bool is_collective(std::string_view kernel);

}  // namespace heddle::profile
