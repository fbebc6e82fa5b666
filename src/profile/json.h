#pragma once

#include <string>
#include <string_view>

#include "profile/profile.h"

// The JSON form of a profile (docs/reference/profile-json.md). Profiles are also stored in this form.
namespace heddle::profile {

std::string to_json(const Profile& profile);
std::string to_json(const Difference& difference);

// Parses a profile. Throws kInvalidInput if the JSON violates the format; the error names `where` and the invalid
// field.
Profile parse(std::string_view json, const std::string& where);

}  // namespace heddle::profile
