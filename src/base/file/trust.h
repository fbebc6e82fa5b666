#pragma once

#include <optional>
#include <string>

namespace heddle {

// Plans and the cache contain machine code, so anybody who may write them decides what this process runs. They are used
// only if their owners and modes show that nobody but this user and root can have written them. (An access list that
// lets anybody else write shows in the group bits of the mode.)
struct Distrust {
  std::string where, why, remedy;
};

// Checks the open file `fd`. It asks the descriptor, so the result holds for the content that is read from it.
std::optional<Distrust> distrust_of_file(int fd, const std::string& path);

// Checks a folder and all folders and links on the way to it, since anybody who may rename one of these can replace it.
// On the way, a sticky folder (/tmp) is trusted, since only owners rename its entries. A component that does not exist
// is distrusted.
std::optional<Distrust> distrust_of_folder(const std::string& path);

}  // namespace heddle
