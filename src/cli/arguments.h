#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heddle/model.h"

namespace CLI {
class App;
}

namespace heddle::cli {

// The options of `heddle kernel gemm`.
struct KernelArguments {
  int64_t m = 0, n = 0, k = 0, batch = 1, lda = 0, ldb = 0, ldd = 0;
  std::string dtype = "f16", out, layout = "nt", epilogue;
  std::vector<std::string> operands;  // NAME:KIND:TYPE
  std::string list;                   // a file with a list of problems, used instead of one problem
  int device = 0, most = 8, sm = 90;
  std::string family, chip, only, target = "cuda";
  bool verify = false, all = false, compile_only = false, predict = false;
};

// The options of `heddle kernel attention`, which also accepts some options of KernelArguments.
struct AttentionArguments {
  int64_t batch = 1, heads = 1, kv_heads = 0, m = 0, n = 0, depth = 64, width = 0, window = 0, prefix = 0, page = 0;
  std::string type = "f16";
  bool causal = false;
};

// The options of `heddle kernel conv` and `heddle kernel b2b`, which also accept some options of KernelArguments.
struct ConvArguments {
  int64_t rows = 0, batch = 1, length = 0, depth = 0, height = 1, width = 0, channels = 0, filters = 0, groups = 1;
  int64_t out = 0;
  // Comma-separated numbers: one number for all dimensions, or one per dimension.
  std::string window = "3", stride = "1", dilation = "1", output_padding = "0";
  std::string padding;  // as above, or two per dimension: first all leading paddings, then all trailing paddings
  bool transposed = false;
  std::string type = "f16";
};

// The options of `heddle kernel packed`, which also accepts some options of KernelArguments.
struct PackedArguments {
  int64_t m = 0, n = 0, k = 0, bits = 4, block = 32;
  bool zeros = false;
  std::string type = "f16";
};

// The options of `heddle profile` and its commands for stored profiles.
struct ProfileArguments {
  std::vector<std::string> files;  // of show, diff and merge
  std::string html, trace, speedscope, pprof, folded;
  int top = 20;
  std::vector<std::string> program;  // the program to profile and its arguments (after --)
  double rate = 100;                 // samples per second of the program's CPU time
  bool all_frames = false, no_gpu = false, operators = false;
};

inline constexpr const char* kAllKernels = "all";

// The parsed options of all commands. Each command reads only its own.
struct Arguments {
  const CLI::App* app = nullptr;  // the command line itself
  std::string model;              // also: FILE of `opt`, NAME of `zoo`, the action of `cache`
  CompileOptions options;
  std::vector<std::string> shapes;          // NAME=1,3,224,224
  std::vector<std::string> inputs;          // NAME=FILE.npy
  std::vector<std::string> limits;          // nodes=5000000
  std::vector<std::string> aliases;         // OUTPUT=INPUT or auto
  std::vector<std::string> rows, appended;  // OUTPUT=INPUT
  uint64_t seed = 0;
  std::string zoo_type = "f32";
  bool json = false;
  std::string output;      // -o
  std::string output_dir;  // run
  std::string svg;         // inspect, explain
  bool unfold = false;     // inspect, explain: the picture shows the contents of modules
  bool measure = false;    // explain
  bool verbose = false;    // explain
  bool full = false;       // inspect
  std::string kernels;     // explain: kAllKernels or a kernel's number; "": no kernels
  std::string emit;        // compile: the folder for the texts of kernels
  double seconds = 2;      // bench
  double tune_seconds = 60;
  int candidates = 12;             // tune
  bool again = false;              // tune
  std::string objective = "time";  // tune
  std::vector<std::string> passes;
  bool list = false;
  bool calibrate = false;                                        // devices
  std::string devices = "all";                                   // devices, doctor
  std::string shell;                                             // completion
  int64_t batch = 1, seq = 0, size = 0, width = 0, context = 0;  // zoo
  KernelArguments kernel;
  AttentionArguments attention;
  ConvArguments conv;
  PackedArguments packed;
  ProfileArguments profile;
};

using Command = int (*)(const Arguments&);

// One function per command; each returns the exit code.
int inspect_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);
int verify_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int compile_command(const Arguments& arguments);
int opt_command(const Arguments& arguments);
int zoo_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int cache_command(const Arguments& arguments);
int kernel_command(const Arguments& arguments);
int kernel_attention_command(const Arguments& arguments);
int kernel_conv_command(const Arguments& arguments);  // `kernel b2b`, too
int kernel_packed_command(const Arguments& arguments);
int profile_command(const Arguments& arguments);
int profile_program_command(const Arguments& arguments);
int profile_show_command(const Arguments& arguments);
int profile_diff_command(const Arguments& arguments);
int profile_merge_command(const Arguments& arguments);
int tune_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int manual_command(const Arguments& arguments);

// The command `heddle`: parses the arguments, runs one command and prints errors to stderr. Exit codes: 0 success, 1
// verification failed, 2 bad input or usage, 3 unsupported, 4 internal error or a failure of the machine.
int main(int argc, const char* const* argv);

}  // namespace heddle::cli
