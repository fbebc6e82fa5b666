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
  std::string version;  // what it says of itself, with size and date of the executable: part of every cache key
};

// $HEDDLE_CXX where it is set, else the first of c++, g++, clang++ on $PATH that is new enough. Throws kNoCompiler
// saying what was searched, or which one is too old.
Compiler find_compiler();

// Flags for code that runs on `target`. Values keep IEEE semantics for NaN, infinities and signed zeros; contraction to
// FMA is allowed, reassociation is not.
std::vector<std::string> compile_flags(const CpuTarget& target);

// How units are compiled and linked.
struct Recipe {
  std::vector<std::string> flags;
  std::vector<std::string> header_folders = {""};  // searched in order; below the folder that holds the tile headers
  std::vector<std::string> link_flags = {};
  std::function<void(size_t unit)> compiled = {};  // told of each unit that is compiled, on the thread that compiled it
  size_t shared = 0;  // so many units at the front are in other libraries, too: each object is cached by itself
  // With tables of lines: the library itself is without them, a twin with them is cached beside it (compile_lined()).
  bool lines = false;
  bool loads_here = true;  // false: whoever runs the library completes its symbols first (src/emulator/driver/module.h)
};

struct CompiledLibrary {
  std::string bytes;  // a shared object
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Compiles the units (texts of C++) and links them into one shared object. `jobs` units at a time. Looks into the
// user's cache first unless `use_cache` is false. A new library is loaded once and the `symbols` are looked for in it,
// as a compiler that fails may say that all is well. Throws kNoCompiler, kCompilerFailed (with what the compiler
// wrote), kFile when not even the folder for temporary files can be written.
using Symbols = std::vector<std::string>;
CompiledLibrary compile(const std::vector<std::string>& units, const CpuTarget& target, int jobs, bool use_cache,
                        const Symbols& symbols = {});
CompiledLibrary compile(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                        const Symbols& symbols = {});

// The twin of the library that compile() makes of the same arguments, with the same code and tables of lines: from the
// cache, or compiled. The units are files of these names there.
std::string compile_lined(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                          const Symbols& symbols = {});
std::string unit_file(std::string_view unit);

}  // namespace heddle::jit
