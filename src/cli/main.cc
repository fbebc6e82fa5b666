#include "cli/arguments.h"

int main(int argc, char** argv) {
  return heddle::cli::main(argc, argv);
}
