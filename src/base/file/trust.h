#pragma once

#include <optional>
#include <string>

namespace heddle {

// The reason why a file or folder is not trusted. Plans and the cache contain machine code, so anyone who can write
// them controls this process. They are used only if their owners and modes show that only the current user and root can
// have written them. (If an access control list lets someone else write, the group bits of the mode show it.)
struct Distrust {
  std::string where, why, remedy;
};

// Checks the open file `fd`; returns nullopt if it is trusted. The check uses the descriptor instead of the path, so it
// applies to the contents that are read through `fd`.
std::optional<Distrust> distrust_of_file(int fd, const std::string& path);

// Checks a folder and every folder and symbolic link on the path to it, since anyone who can rename one of them can
// replace the folder. Returns nullopt if all are trusted. A parent folder with the sticky bit (/tmp) is trusted, since
// only owners can rename its entries. A component that does not exist is not trusted.
std::optional<Distrust> distrust_of_folder(const std::string& path);

}  // namespace heddle
