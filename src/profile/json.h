#pragma once

#include <string>
#include <string_view>

#include "profile/profile.h"

// The JSON form of a profile (docs/reference/profile-json.md). Profiles are also stored in it.
namespace heddle::profile {

std::string to_json(const Profile& profile);
std::string to_json(const Difference& difference);

// Throws kInvalidInput naming `where` and the field that violates the format.
Profile parse(std::string_view json, const std::string& where);

}  // namespace heddle::profile
