#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "target/target.h"

namespace heddle::jit {

// A C++ compiler of this machine.
struct Compiler {
  std::string path;
  std::string version;  // its own version text plus size and date of the executable; part of every cache key
};

// $HEDDLE_CXX if it is set, else the first of c++, g++, clang++ on $PATH that is new enough. Throws kNoCompiler with
// what was searched, or with the compiler that is too old.
Compiler find_compiler();

// Flags for code that runs on `target`. Values keep IEEE semantics for NaN, infinities and signed zeros; contraction to
// FMA is allowed, reassociation is not.
std::vector<std::string> compile_flags(const CpuTarget& target);

// How units are compiled and linked.
struct Recipe {
  std::vector<std::string> flags;
  std::vector<std::string> header_folders = {""};  // searched in order; relative to the folder of the tile headers
  std::vector<std::string> link_flags = {};
  std::function<void(size_t unit)> compiled = {};  // called after each unit is compiled, on the thread that compiled it
  size_t shared = 0;  // the first `shared` units are in other libraries too: their objects are cached separately
  // Also makes line tables: the library itself has none, and a twin that has them is cached beside it
  // (compile_lined()).
  bool lines = false;
  bool loads_here = true;  // false: it loads only once its symbols are completed (src/emulator/driver/module.h)
};

struct CompiledLibrary {
  std::string bytes;  // a shared object
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Compiles the units (C++ texts), `jobs` at a time, and links them into one shared object. Looks in the user's cache
// first unless `use_cache` is false. A new library is loaded once to look up its `symbols`, since a failing compiler
// may still report success. Throws kNoCompiler, kCompilerFailed (with the compiler's output), kFile if even the folder
// for temporary files is not writable.
using Symbols = std::vector<std::string>;
CompiledLibrary compile(const std::vector<std::string>& units, const CpuTarget& target, int jobs, bool use_cache,
                        const Symbols& symbols = {});
CompiledLibrary compile(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                        const Symbols& symbols = {});

// The library that compile() makes of the same arguments, with the same code, plus line tables. It comes from the cache
// or is compiled. In the tables each unit is the file unit_file(unit).
std::string compile_lined(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                          const Symbols& symbols = {});
std::string unit_file(std::string_view unit);

}  // namespace heddle::jit
