#pragma once

#include <stddef.h>

// The interface of libheddle_profile.so. `heddle profile -- PROGRAM` loads this library into a program;
// heddle.profile() loads it into the current process. The interface is C, so that any version of Python can call it
// through ctypes.
extern "C" {

// Starts recording this process.
// `file`: where the profile is stored while it grows, or "".
// `rate`: samples per second of CPU time.
// `gpu`: 0 ignores GPUs. 1 collects GPU activity from the first use of CUDA, if the driver notifies this library. 2
// collects GPU activity immediately.
// Returns 0 on success, 1 if a recording is under way, or 2 if recording cannot start; heddle_profile_why() then gives
// the reason.
int heddle_profile_start(const char* title, const char* file, double rate, int gpu, int all_frames);
const char* heddle_profile_why(void);

// heddle_profile_modules() writes the addresses of at most `room` Python objects whose calls are recorded as calls of
// modules, and returns the number of all such objects. heddle_profile_name_module() names one of them.
size_t heddle_profile_modules(unsigned long long* addresses, size_t room);
void heddle_profile_name_module(unsigned long long address, const char* name);

// Ends the recording and writes the profile to the file of heddle_profile_start(). Returns the profile as JSON, to be
// freed with heddle_profile_free(), or null if there is none.
char* heddle_profile_stop(void);
void heddle_profile_free(char* json);

// Returns the Python frames of the calling thread, innermost first, one "name:line:file" per line. If the frames of
// this Python version cannot be read, returns the reason. `resting` selects how frames are read: 1 as within a CUDA
// call, 0 as within a signal handler. The caller frees the result with heddle_profile_free().
char* heddle_profile_stack(int resting);

// Adds a fact (a name and a value) to the profile that is being recorded.
void heddle_profile_say(const char* name, const char* value);

// The number of NVTX ranges that this process has pushed so far.
unsigned long long heddle_profile_ranges(void);

// The CUDA driver calls this function when CUDA is first used, if CUDA_INJECTION64_PATH names this library.
int InitializeInjection(void);
// NVTX calls this function when it is first used, if NVTX_INJECTION64_PATH names this library. `export_table`: see
// nvtx/injection.h.
int InitializeInjectionNvtx2(const void* (*export_table)(unsigned table));
}
