#pragma once

#include <stddef.h>

// libheddle_profile.so. `heddle profile -- PROGRAM` loads it into a program, heddle.profile() into the current process.
// Its interface is C, so that any version of Python can call it through ctypes.
extern "C" {

// Starts recording this process. `file`: where the profile is kept while it grows, or "". `rate`: samples per second of
// CPU time. `gpu`: 0: ignore GPUs; 1: collect their activity from the first use of CUDA, if the driver notifies this
// library; 2: from now on. Returns 0, 1 if a recording is under way, or 2 if it cannot start (heddle_profile_why()).
int heddle_profile_start(const char* title, const char* file, double rate, int gpu, int all_frames);
const char* heddle_profile_why(void);

// The addresses of objects whose calls are calls of modules; and a call that names one of them.
size_t heddle_profile_modules(unsigned long long* addresses, size_t room);
void heddle_profile_name_module(unsigned long long address, const char* name);

// Ends the recording and returns the profile as JSON, to be freed with heddle_profile_free(); null if there is none.
// Also writes it to the file of heddle_profile_start().
char* heddle_profile_stop(void);
void heddle_profile_free(char* json);

// The Python frames of the calling thread, innermost first, one line each: "name:line:file". `resting`: 1: read as in a
// CUDA call; 0: as in a signal handler. To be freed with heddle_profile_free().
char* heddle_profile_stack(int resting);

// Adds a fact to the profile of the recording under way.
void heddle_profile_say(const char* name, const char* value);

// The number of NVTX ranges that this process has pushed so far.
unsigned long long heddle_profile_ranges(void);

// CUDA calls this when it is first used, if CUDA_INJECTION64_PATH names this library.
int InitializeInjection(void);
// NVTX calls this when it is first used, if NVTX_INJECTION64_PATH names this library. `export_table`: nvtx/injection.h.
int InitializeInjectionNvtx2(const void* (*export_table)(unsigned table));
}
