#pragma once

#include <string>

namespace heddle {

// Removes the TempDirs below `root` whose processes are dead. Folders that somebody holds stay.
void sweep_temporary_folders(const std::string& root);

}  // namespace heddle
