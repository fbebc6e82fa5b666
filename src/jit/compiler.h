#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "target/target.h"

namespace heddle::jit {

// A C++ compiler on this machine.
struct Compiler {
  std::string path;
  std::string version;  // the version text that the compiler prints, plus size and date of the executable
};

// Returns the path of a program: `name` itself if it has a slash, else the first match on $PATH. "" if there is none.
std::string find_program(const std::string& name);
// Returns Compiler::version of the compiler at `path`. Each compiler is asked once per process.
std::string version_of(const std::string& path);

// Returns $HEDDLE_CXX if it is set, or else the first of c++, g++ and clang++ on $PATH that is new enough. Throws
// kNoCompiler; the message lists the names searched for, or the compiler that is too old.
Compiler find_compiler();

// Returns the compiler flags for code that runs on `target`. The code keeps IEEE semantics for NaN, infinities and
// signed zeros. The compiler may contract operations to FMA, but must not reassociate.
std::vector<std::string> compile_flags(const CpuTarget& target);

// Options for compiling and linking units.
struct Recipe {
  std::vector<std::string> flags;
  std::vector<std::string> header_folders = {""};  // searched in order; relative to the folder of the tile headers
  std::vector<std::string> link_flags = {};
  std::function<void(size_t unit)> compiled = {};  // called after each unit is compiled, on the thread that compiled it
  size_t shared = 0;  // Other libraries contain the first `shared` units too, so their objects are cached separately.
  // If true, compile() also compiles a second copy of the library, with line tables, and caches this copy for
  // compile_lined(). The library that compile() returns has no line tables.
  bool lines = false;
  bool loads_here = true;  // False if dlopen() fails until src/emulator/driver/module.h has added missing symbols.
};

struct CompiledLibrary {
  std::string bytes;  // a shared object
  bool from_cache = false;
  double seconds = 0;  // wall time
};

// Compiles the units (C++ texts), `jobs` at a time, and links them into one shared object. If `use_cache`, first looks
// for the library in the user's cache. Loads a new library once to look up its `symbols`, since a failing compiler may
// still report success. Throws kNoCompiler, kCompilerFailed (with the compiler's output), and kFile if not even the
// folder for temporary files is writable.
using Symbols = std::vector<std::string>;
CompiledLibrary compile(const std::vector<std::string>& units, const CpuTarget& target, int jobs, bool use_cache,
                        const Symbols& symbols = {});
CompiledLibrary compile(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                        const Symbols& symbols = {});

// Returns a library with the same code as the library that compile() returns for these arguments, but with line tables.
// Reads the library from the cache or compiles it. The line tables name each unit by the file name unit_file(unit).
std::string compile_lined(const std::vector<std::string>& units, Recipe recipe, int jobs, bool use_cache,
                          const Symbols& symbols = {});
std::string unit_file(std::string_view unit);

}  // namespace heddle::jit
