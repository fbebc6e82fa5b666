// write_model NAME FILE [BATCH [SEQ [SIZE [WIDTH [SEED]]]]]: one model of the zoo as a file, for check_models.py.
#include <cstdio>
#include <cstdlib>

#include "heddle/error.h"
#include "zoo/zoo.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto number = [&](int i, long fallback) { return argc > i ? std::atol(argv[i]) : fallback; };
  heddle::zoo::Options options;
  options.batch = number(3, 1);
  options.seq = number(4, 0);
  options.size = number(5, 0);
  options.width = number(6, 0);
  options.seed = static_cast<uint64_t>(number(7, 0));
  try {
    heddle::zoo::write(argv[1], options, argv[2]);
  } catch (const heddle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return heddle::exit_code(error.code());
  }
  return 0;
}
