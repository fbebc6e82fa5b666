#pragma once

#include <string>

namespace heddle {

// Removes every TempDir below `root` whose process is dead. Folders that another process has locked stay.
void sweep_temporary_folders(const std::string& root);

}  // namespace heddle
