#pragma once

// A function that is compiled for several instruction sets: one object file serves every x86, the loader picks the
// clone. Sanitizers cannot instrument the resolver, which runs before their start-up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HEDDLE_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define HEDDLE_CLONES
#endif
