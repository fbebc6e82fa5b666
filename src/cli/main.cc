#include <fcntl.h>

#include "cli/arguments.h"

int main(int argc, char** argv) {
  // Standard streams that are closed stay unusable: a file that is opened later must not get their number and what is
  // printed. The lowest free number is the one that is missing.
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
  return heddle::cli::main(argc, argv);
}
