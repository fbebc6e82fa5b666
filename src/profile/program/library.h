#pragma once

#include <stddef.h>

// libheddle_profile.so, which `heddle profile -- PROGRAM` puts into a program and heddle.profile() into this one. Its
// interface is C, so that Python calls it through ctypes whatever its version.
extern "C" {

// Begins to record this process. `file`: where the profile is kept while it grows, or "". `rate`: samples a second of
// CPU time. `gpu`: 0: leave GPUs alone; 1: collect what they do from the first use of CUDA on, where the driver tells
// this library; 2: from now on. Returns 0, or 1 where a recording is under way, 2 where it cannot be begun
// (heddle_profile_why()).
int heddle_profile_start(const char* title, const char* file, double rate, int gpu, int all_frames);
const char* heddle_profile_why(void);

// The addresses of objects whose calls are those of modules, and what their names are.
size_t heddle_profile_modules(unsigned long long* addresses, size_t room);
void heddle_profile_name_module(unsigned long long address, const char* name);

// Ends the recording and gives the profile in its JSON form, to be freed with heddle_profile_free(); null where there
// is none. It is written into the file of heddle_profile_start() as well.
char* heddle_profile_stop(void);
void heddle_profile_free(char* json);

// The Python frames of the calling thread, the innermost first, a line each: "name:line:file". `resting`: read as when
// CUDA is called, 0: as in a signal handler. To be freed.
char* heddle_profile_stack(int resting);

// Adds a fact to the profile of the recording under way.
void heddle_profile_say(const char* name, const char* value);

// How many ranges of NVTX this process has pushed so far.
unsigned long long heddle_profile_ranges(void);

// What CUDA calls when it is first used, where CUDA_INJECTION64_PATH names this library.
int InitializeInjection(void);
// What NVTX calls when it is first used, where NVTX_INJECTION64_PATH names this library. `export_table`:
// nvtx/injection.h.
int InitializeInjectionNvtx2(const void* (*export_table)(unsigned table));
}
