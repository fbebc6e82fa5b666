#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "profile/profile.h"

// What the rules of advice.h are written with.
namespace heddle::profile {

// What a gain is a share of: the time in which a GPU is busy or could be, else the total of the metric of time.
int64_t run_time(const CallingContextTree& tree);

double share_of_run(const CallingContextTree& tree, int64_t time);

// Advice on a node, without evidence, confidence and remedy.
Advice advice_on(const Profile& profile, const char* rule, NodeId node, int64_t gain);

// 1234567 -> "1.2 ms".
std::string time_text(int64_t nanoseconds);

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts);

// Whether a kernel is one in which several GPUs exchange data, by its name.
bool is_collective(std::string_view kernel);

}  // namespace heddle::profile
