#pragma once

#include <optional>
#include <string>

namespace heddle {

// Plans and the cache hold machine code: who may write them decides what this process runs. They are used only where
// nobody but this user and root can have written them, which owners and modes say. (An access list that lets anybody
// else write shows in the mode of the group.)
struct Distrust {
  std::string where, why, remedy;
};

// Of what is open at `fd`. Asked of the descriptor, so that it holds for what is read from it.
std::optional<Distrust> distrust_of_file(int fd, const std::string& path);

// Of a folder, and of all folders and links on the way to it: who may rename one of those puts another in its place.
// There a sticky folder (/tmp) does, since its entries are renamed by their owners only. A part that does not exist is
// distrusted.
std::optional<Distrust> distrust_of_folder(const std::string& path);

}  // namespace heddle
