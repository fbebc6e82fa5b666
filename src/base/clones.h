#pragma once

// Marks a function to compile for several instruction sets. One object file thus runs on every x86 CPU: the loader
// picks the best clone. Disabled under sanitizers: they cannot instrument the resolver, which runs before the sanitizer
// starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HEDDLE_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define HEDDLE_CLONES
#endif
