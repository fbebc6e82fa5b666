#include "cli/arguments.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  heddle::cli::clean_up_on_signals();
  return heddle::cli::main(argc, argv);
}
