#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

// Helpers for the rules of advice.h.
namespace heddle::profile {

// The time that gains are shares of: the time in which a GPU is busy or could be, else the total of the time metric.
int64_t run_time(const CallingContextTree& tree);

double share_of_run(const CallingContextTree& tree, int64_t time);

// Advice on a node, without evidence, confidence and remedy.
Advice advice_on(const Profile& profile, const char* rule, NodeId node, int64_t gain);

// A candidate for advice: a node or a row of a table, and the time that the advice would save.
struct Gain {
  uint32_t of = 0;
  int64_t ns = 0;
};

// The most pieces of advice that a profile shows.
inline constexpr size_t kMostAdvice = 7;

// Keeps the kMostAdvice largest, in their order. Texts are written for these only, since every row may have a gain.
void keep_largest(std::vector<Gain>& gains);

// 1234567 -> "1.2 ms".
std::string time_text(int64_t nanoseconds);

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts);

// Whether a kernel exchanges data between GPUs, judged by its name.
bool is_collective(std::string_view kernel);

}  // namespace heddle::profile
