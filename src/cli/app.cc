#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <sstream>

#include "base/interface/option.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/usage.h"
#include "heddle/version.h"
#include "schedule/product/cuda/family.h"

namespace heddle::cli {
namespace {

constexpr const char* kNowhere = "";  // the group of options that help leaves out

void add_compile_options(CLI::App* app, Arguments& a) {
  app->add_option("--target", a.options.target, "What to compile for; N: which GPU")
      ->type_name("cpu|cuda|cuda:N")
      ->capture_default_str();
  app->add_option("--precision", a.options.precision, "What an f32 model is computed in")
      ->type_name("f32|tf32|f16|bf16")
      ->capture_default_str();
  app->add_option("--threads", a.options.threads, "Threads; 0: as many as cores")->capture_default_str();
  app->add_option("--fusion", a.options.fusion, "How much is fused")
      ->type_name("none|basic|stitch")
      ->capture_default_str();
  app->add_option("--shape", a.shapes,
                  "Shape of an input: NAME=1,3,224,224 (may be repeated); for run, bench and compile on the CPU with "
                  "ranges, NAME=1,1..512");
  app->add_option(
      "--alias", a.aliases,
      "An output in the memory of an input: OUTPUT=INPUT, with one * in both for many, or auto for all that "
      "are updates of inputs (may be repeated)");
  app->add_option("--rows", a.rows,
                  "Of an output [batch, rows, ...] compute one row for each element of the batch, which a new input "
                  "names: OUTPUT=INPUT (may be repeated)");
  app->add_option("--appended", a.appended,
                  "Of an output that appends rows to an input compute these rows only: OUTPUT=INPUT, with one * in "
                  "both for many (may be repeated)");
  app->add_option("--limit", a.limits,
                  "What an import may take: nodes=N, bytes=N, depth=N or seconds=N (may be repeated)");
  app->add_flag("--external-data-links", a.options.external_data_links,
                "Follow symbolic links from the model's folder to its external data");
  app->add_option("--disable-pass", a.options.disabled_passes, "Leave a pass out (may be repeated)");
  app->add_option("--disable-fusion", a.options.disabled_fusion,
                  "Leave out attention, back-to-back or sequences (may be repeated)");
  app->add_option("--disable-stitching", a.options.disabled_stitching,
                  "Leave out adaptive-mapping, data-reuse, dominant-merging or global (may be repeated)");
  app->add_option("--stitch-mapping", a.options.stitch_mapping,
                  "Who shares a reduction on a GPU, in place of the cost model's pick")
      ->type_name("warp|block|cluster|parts");
  app->add_flag_callback(
      "--no-cache", [&a] { a.options.use_cache = false; }, "Compile even if the cache has a plan");
  app->add_flag_callback(
      "--untuned", [&a] { a.options.tuned = false; }, "Leave aside what `heddle tune` found");
}

// What an option was called before: taken, with a hint, and listed nowhere.
template <typename T>
void add_former_name(CLI::App& app, const char* former, const char* name, T& value) {
  const auto take = [former, name, &value](const T& given) {
    value = given;
    tell("note", fmt::format("{} is {} now", former, name));
  };
  app.add_option_function<T>(former, take)->group(kNowhere);
}

void add_input_data(CLI::App* app, Arguments& a) {
  app->add_option("--input", a.inputs,
                  "Data of an input: NAME=FILE.npy (may be repeated); others have their default or are random");
}

void add_inputs(CLI::App* app, Arguments& a) {
  add_input_data(app, a);
  app->add_option("--seed", a.seed, "Seed of random inputs")->capture_default_str();
}

CLI::App* add_model_command(CLI::App& app, Arguments& a, Command command, Command& chosen, const char* name,
                            const char* what) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->add_option("MODEL", a.model, "ONNX file, textual IR (.hir) or plan file")->type_name("FILE")->required();
  sub->callback([&chosen, command] { chosen = command; });
  add_compile_options(sub, a);
  return sub;
}

void add_svg(CLI::App& command, Arguments& a, const char* help) {
  CLI::Option* svg = command.add_option("--svg", a.svg, help)->type_name("FILE");
  command.add_flag("--unfold", a.unfold, "In the picture of a large model, draw what its modules hold")->needs(svg);
}

void add_explain(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* explain = add_model_command(app, a, explain_command, chosen, "explain", "Show what was fused, and why");
  add_inputs(explain, a);
  explain->add_flag("--measure", a.measure, "Compile and time every kernel, too");
  explain->add_flag("-v,--verbose", a.verbose, "Every group, kernel and decision, too");
  add_svg(*explain, a, "Write a picture of the graph");
  CLI::Option* json = explain->add_flag("--json", a.json, "Print JSON");
  // A flag, which takes a value behind "=" only: what follows it may be the model.
  explain
      ->add_flag(std::string("--kernels{") + kAllKernels + "}", a.kernels,
                 "Print the texts of all kernels; --kernels=N: of number N of those that -v lists")
      ->excludes(json);
}

void add_tune(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* tune = add_model_command(app, a, tune_command, chosen, "tune",
                                     "Measure the configurations of its kernels; later compilations use the winners");
  tune->add_option("--seconds", a.tune_seconds, "Seconds after which nothing new is measured")->capture_default_str();
  add_former_name<double>(*tune, "--budget", "--seconds", a.tune_seconds);
  tune->add_option("--candidates", a.candidates, "Most configurations of one problem")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  tune->add_flag("--again", a.again, "Measure what is known already too");
  tune->add_option("--objective", a.objective, "What the winner takes the least of")
      ->check(CLI::IsMember({"time", "energy"}))
      ->capture_default_str();
  tune->add_flag("--json", a.json, "Print JSON");
}

void add_compile(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* compile = add_model_command(app, a, compile_command, chosen, "compile", "Write a plan file");
  CLI::Option* plan = compile->add_option("-o,--output", a.output, "The plan file")->type_name("FILE");
  CLI::Option* emit =
      compile->add_option("--emit", a.emit, "Write the text of each kernel into this folder")->type_name("DIR");
  compile->callback([&a, &chosen, plan, emit] {
    if (plan->count() + emit->count() == 0) throw CLI::RequiredError("--output or --emit");
    chosen = compile_command;
  });
}

void add_profile_outputs(CLI::App& command, Arguments& a, bool exports) {
  ProfileArguments& p = a.profile;
  command.add_option("--top", p.top, "Rows of each table")->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("-o,--output", a.output, "Write the profile as JSON, which show, diff and merge read")
      ->type_name("FILE");
  command.add_option("--html", p.html, "Write it as a page that a browser shows offline")->type_name("FILE");
  command.add_flag("--json", a.json, "Print JSON");
  if (!exports) return;
  command.add_option("--trace", p.trace, "Write a trace for ui.perfetto.dev")->type_name("FILE");
  command.add_option("--speedscope", p.speedscope, "Write it for speedscope.app")->type_name("FILE");
  command.add_option("--pprof", p.pprof, "Write it for pprof")->type_name("FILE");
  command.add_option("--folded", p.folded, "Write folded stacks, for flame-graph scripts")->type_name("FILE");
}

void add_profile(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* profile =
      app.add_subcommand("profile", "Show which nodes of a model, or parts of a program, take the time");
  profile->require_subcommand(0, 1);
  CLI::Option* model = profile->add_option("MODEL", a.model, "ONNX file or textual IR (.hir)")->type_name("FILE");
  add_compile_options(profile, a);
  add_inputs(profile, a);
  profile->add_option("--seconds", a.seconds, "How long to measure")->capture_default_str();
  add_profile_outputs(*profile, a, true);
  profile->add_option("--rate", a.profile.rate, "Of a program: samples a second of CPU time")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  profile->add_flag("--all-frames", a.profile.all_frames, "Of a program: show frames that only pass calls on");
  profile->add_flag("--operators", a.profile.operators,
                    "Of a program: show PyTorch's operators, backward below forward");
  profile->add_flag("--no-gpu", a.profile.no_gpu, "Of a program: leave GPUs, and CUPTI, alone");
  profile->footer("`heddle profile [OPTIONS] -- PROGRAM [ARGUMENT...]` profiles a program: python train.py");
  const auto add_stored = [&](const char* name, const char* what, Command command, int least, int most) {
    CLI::App* stored = profile->add_subcommand(name, what);
    stored->add_option("FILE", a.profile.files, "Profiles that were written with --output")
        ->type_name("FILE")
        ->required()
        ->expected(least, most);
    add_profile_outputs(*stored, a, command != profile_diff_command);
    stored->callback([&chosen, command] { chosen = command; });
  };
  constexpr int kMany = 1 << 20;
  add_stored("show", "Show a stored profile", profile_show_command, 1, 1);
  add_stored("diff", "Show what changed from an older profile to a newer one", profile_diff_command, 2, 2);
  add_stored("merge", "Add up profiles of one program: runs, threads, ranks", profile_merge_command, 2, kMany);
  profile->callback([profile, model, &a, &chosen] {
    if (!profile->get_subcommands().empty()) return;
    if (!a.profile.program.empty()) {
      if (model->count() > 0) throw CLI::ValidationError("MODEL", "either a model or a program behind --");
      chosen = profile_program_command;
      return;
    }
    if (model->count() == 0) throw CLI::RequiredError("MODEL, -- PROGRAM, show, diff or merge");
    chosen = profile_command;
  });
}

void add_commands(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* inspect = add_model_command(app, a, inspect_command, chosen, "inspect",
                                        "Show inputs, outputs, operators and needs of a model; compiles nothing");
  add_input_data(inspect, a);
  inspect->add_flag("--full", a.full, "Do not shorten names and formulas of extents to the width of the terminal");
  add_svg(*inspect, a, "Write a picture of the model's nodes");
  inspect->add_flag("--json", a.json, "Print JSON");

  CLI::App* run = add_model_command(app, a, run_command, chosen, "run", "Compile (or load from the cache) and run");
  add_inputs(run, a);
  run->add_option("--output-dir", a.output_dir, "Write each output as DIR/NAME.npy")->type_name("DIR");
  run->add_flag("--json", a.json, "Print JSON");

  CLI::App* bench = add_model_command(app, a, bench_command, chosen, "bench", "Measure time and memory");
  add_inputs(bench, a);
  bench->add_option("--seconds", a.seconds, "How long to measure")->capture_default_str();
  bench->add_flag("--json", a.json, "Print JSON");

  CLI::App* verify =
      add_model_command(app, a, verify_command, chosen, "verify", "Compare with the float64 reference evaluator");
  add_inputs(verify, a);
  verify->add_flag("--json", a.json, "Print JSON");

  add_explain(app, a, chosen);
  add_profile(app, a, chosen);

  add_tune(app, a, chosen);
  add_compile(app, a, chosen);

  CLI::App* opt = app.add_subcommand("opt", "Run passes over textual IR");
  opt->add_option("FILE", a.model, "Textual IR (.hir); - for standard input")->type_name("FILE");
  opt->add_option("--passes", a.passes, "Names of passes, separated by commas")->delimiter(',');
  opt->add_option("--precision", a.options.precision, "What an f32 model is computed in")
      ->type_name("f32|tf32|f16|bf16")
      ->capture_default_str();
  opt->add_option("-o,--output", a.output, "Where to write; default: standard output")->type_name("FILE");
  opt->add_flag("--list", a.list, "List all passes");
  opt->callback([&chosen] { chosen = opt_command; });

  CLI::App* zoo = app.add_subcommand("zoo", "Write a well-known architecture as ONNX; without NAME: list them");
  zoo->add_option("NAME", a.model, "The architecture");
  zoo->add_option("-o,--output", a.output, "The file; default: NAME.onnx")->type_name("FILE");
  zoo->add_option("--batch", a.batch, "Batch")->capture_default_str();
  zoo->add_option("--seq", a.seq, "Sequence length; 0: the model's default");
  zoo->add_option("--size", a.size, "Picture size; 0: the model's default");
  zoo->add_option("--width", a.width, "Channels of the first stage; 0: the model's default");
  zoo->add_option("--context", a.context, "Channels of the text of a UNet; 0: the model's default");
  zoo->add_option("--seed", a.seed, "Seed of the weights")->capture_default_str();
  zoo->add_option("--type", a.zoo_type, "Of weights, inputs and outputs")
      ->type_name("f32|f16|bf16")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  zoo->callback([&chosen] { chosen = zoo_command; });

  CLI::App* devices = app.add_subcommand("devices", "Show what this machine has, and measure it for the cost models");
  devices->add_flag("--calibrate", a.calibrate,
                    "Measure the devices (a minute at most) and keep the numbers for later compilations");
  devices->add_option("--target", a.devices, "Which to measure: cpu, cuda:N; default: all");
  devices->add_flag("--json", a.json, "Print JSON");
  devices->callback([&chosen] { chosen = devices_command; });

  CLI::App* doctor = app.add_subcommand("doctor", "Say what this machine lacks, and test every kind of kernel");
  doctor->add_option("--target", a.devices, "Which device to test: cpu, cuda:N, hip:N; default: all");
  doctor->add_option("-o,--output", a.output, "Write a report that can be sent")->type_name("FILE");
  doctor->add_flag("--json", a.json, "Print JSON");
  doctor->callback([&chosen] { chosen = doctor_command; });

  CLI::App* cache = app.add_subcommand("cache", "The cache of compiled kernels and plans, and the tuning database");
  cache->add_option("ACTION", a.model, "info or clear")->required()->check(CLI::IsMember({"info", "clear"}));
  cache->add_flag("--json", a.json, "Print JSON");
  cache->callback([&chosen] { chosen = cache_command; });

  CLI::App* completion = app.add_subcommand("completion", "Print the completions of a shell");
  completion->add_option("SHELL", a.shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&chosen] { chosen = completion_command; });

  CLI::App* manual = app.add_subcommand("manual", "Print the manual page, heddle(1)");
  manual->callback([&chosen] { chosen = manual_command; });
}

std::vector<std::string> gemm_families() {
  std::vector<std::string> names;
  for (const schedule::Family* family : schedule::cuda_families()) names.emplace_back(family->name());
  return names;
}

// What the commands of one kernel have in common.
void add_kernel_options(CLI::App& command, std::string& type, Arguments& arguments,
                        std::vector<std::string> types = {"f16", "bf16"}) {
  KernelArguments& k = arguments.kernel;
  command.add_option("--type", type, "Of all operands")->check(CLI::IsMember(std::move(types)))->capture_default_str();
  command.add_option("--device", k.device, "Which GPU")->capture_default_str();
  command.add_option("--only", k.only, "Only candidates that say this of themselves: mma, few rows");
  command.add_option("--candidates", k.most, "How many are timed")->capture_default_str();
  command.add_flag("--all", k.all, "Time every candidate");
  command.add_flag("--verify", k.verify, "Compare some elements of the fastest with a float64 reference");
  command.add_flag("--compile-only", k.compile_only, "List and compile candidates for a GPU of --sm; needs no GPU");
  command.add_flag("--predict", k.predict, "The same without compiling");
  command.add_option("--sm", k.sm, "With --compile-only: for compute capability 90 or 80")->capture_default_str();
  command.add_option("--chip", k.chip, "With --predict: for the chip of this name, as its driver spells it");
  command.add_flag("--json", arguments.json, "Print JSON");
}

void add_kernel_attention(CLI::App& kernel, Arguments& arguments, Command& chosen) {
  CLI::App* attention = kernel.add_subcommand("attention", "softmax(Q K^T / sqrt(depth)) V");
  AttentionArguments& a = arguments.attention;
  attention->add_option("--m", a.m, "Queries")->required();
  attention->add_option("--n", a.n, "Keys; default: as many as queries");
  attention->add_option("--batch", a.batch, "Sequences")->capture_default_str();
  attention->add_option("--heads", a.heads, "Heads of queries")->capture_default_str();
  attention->add_option("--kv-heads", a.kv_heads, "Heads of keys and values; default: as many as of queries");
  attention->add_option("--page", a.page, "Keys and values lie in pages of so many keys; default: side by side");
  attention->add_option("--depth", a.depth, "Elements of a head")->capture_default_str();
  attention->add_option("--width", a.width, "Elements of a head of values and results; default: depth");
  attention->add_flag("--causal", a.causal, "A query sees the keys up to its own; the last one has the last key");
  attention->add_option("--window", a.window, "Causal, and a query sees so many keys");
  attention->add_option("--prefix", a.prefix, "Causal, but every query also sees this many first keys");
  add_kernel_options(*attention, a.type, arguments, {"f16", "bf16", "f32", "tf32"});
  attention->callback([&chosen] { chosen = kernel_attention_command; });
}

// A number for each dimension of an image, or one for all.
CLI::Option* add_list(CLI::App& command, const std::string& name, std::string& value, const std::string& what) {
  return command.add_option(name, value, what + ": one, or one for each dimension")
      ->type_name("INT,..")
      ->capture_default_str();
}

void add_images(CLI::App& command, ConvArguments& a) {
  command.add_option("--batch", a.batch, "Images")->capture_default_str();
  command.add_option("--height", a.height, "Of an image");
  command.add_option("--width", a.width, "Of an image; default: its height");
  command.add_option("--channels", a.channels, "Of an image, or columns of the matrix")->required();
  add_list(command, "--window", a.window, "Extents of the window");
  add_list(command, "--stride", a.stride, "Steps from one window to the next");
}

void add_kernel_conv(CLI::App& kernel, Arguments& arguments, Command& chosen) {
  ConvArguments& a = arguments.conv;
  CLI::App* conv = kernel.add_subcommand("conv", "relu(convolution) of one to three dimensions, transposed, too");
  add_images(*conv, a);
  CLI::Option* depth =
      conv->add_option("--depth", a.depth, "Of an image: it has three dimensions")->check(CLI::PositiveNumber);
  conv->add_option("--length", a.length, "Of an image of one dimension, in place of height and width")
      ->check(CLI::PositiveNumber)
      ->excludes(depth, conv->get_option("--height"), conv->get_option("--width"));
  add_list(*conv, "--dilation", a.dilation, "Steps from one tap of the window to the next");
  CLI::Option* padding = conv->add_option(
      "--padding", a.padding,
      "Zeros on both sides of an image: one, one for each dimension, or those in front, then those behind; default: as "
      "many as a result of the image's size needs, transposed of stride times that");
  padding->type_name("INT,..");
  CLI::Option* transposed = conv->add_flag("--transposed", a.transposed, "Strides are steps of the result");
  add_list(*conv, "--output-padding", a.output_padding, "Rows of a transposed result beyond what --padding leaves")
      ->needs(padding, transposed);
  conv->add_option("--filters", a.filters, "Channels of the result")->required();
  conv->add_option("--groups", a.groups, "Of channels")->capture_default_str();
  add_kernel_options(*conv, a.type, arguments, {"f16", "bf16", "f32"});
  conv->add_option("--target", arguments.kernel.target, "What to compile for")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  conv->add_option("--threads", arguments.options.threads, "Of a CPU; 0: as many as cores that the process may use")
      ->capture_default_str();
  conv->callback([&chosen] { chosen = kernel_conv_command; });

  CLI::App* both = kernel.add_subcommand("b2b", "relu(relu(A W0) W1), or a convolution and a 1x1, as one kernel");
  both->add_option("--rows", a.rows, "A is a matrix of so many rows; else images are convolved");
  add_images(*both, a);
  both->add_option("--inner", a.filters, "Columns between the two")->required();
  both->add_option("--out", a.out, "Columns of the result")->required()->check(CLI::PositiveNumber);
  add_kernel_options(*both, a.type, arguments);
  both->callback([&chosen] { chosen = kernel_conv_command; });
}

void add_kernel_packed(CLI::App& kernel, Arguments& arguments, Command& chosen) {
  PackedArguments& a = arguments.packed;
  const CLI::Range size(1, std::numeric_limits<int32_t>::max());
  CLI::App* packed = kernel.add_subcommand("packed", "A product with constant weights of few bits");
  packed->add_option("--m", a.m, "Rows of the matrix and of the result")->required()->check(size);
  packed->add_option("--n", a.n, "Columns of the result")->required()->check(size);
  packed->add_option("--k", a.k, "Columns of the matrix")->required()->check(size);
  packed->add_option("--bits", a.bits, "Of a weight")->check(CLI::IsMember({2, 4, 8}))->capture_default_str();
  packed->add_option("--block", a.block, "Neighbours along k with a common scale")->check(size)->capture_default_str();
  packed->add_flag("--zeros", a.zeros, "Each block has its own zero point");
  add_kernel_options(*packed, a.type, arguments, {"f16", "bf16", "f32"});
  packed->callback([&chosen] { chosen = kernel_packed_command; });
}

void add_kernel_command(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App* kernel =
      app.add_subcommand("kernel", "One operator on a device (experimental): candidates, times, verification");
  kernel->require_subcommand(0, 1);
  add_kernel_attention(*kernel, a, chosen);
  add_kernel_conv(*kernel, a, chosen);
  add_kernel_packed(*kernel, a, chosen);
  CLI::App* gemm = kernel->add_subcommand("gemm", "D = epilogue(A B)");
  KernelArguments& k = a.kernel;
  CLI::Option* m = gemm->add_option("--m", k.m, "Rows of A and D");
  CLI::Option* n = gemm->add_option("--n", k.n, "Columns of B and D");
  CLI::Option* depth = gemm->add_option("--k", k.k, "Columns of A, rows of B");
  gemm->add_option("--list", k.list, "A file of problems, one a line: DTYPE M N K [EPILOGUE]; prints JSON, one a line")
      ->check(CLI::ExistingFile)
      ->excludes(m, n, depth);
  gemm->add_option("--batch", k.batch, "Products")->capture_default_str();
  gemm->add_option("--lda", k.lda, "Elements between rows of A in memory; 0: dense");
  gemm->add_option("--ldb", k.ldb, "The same of B");
  gemm->add_option("--ldd", k.ldd, "The same of D");
  gemm->add_option("--dtype", k.dtype, "f16, bf16, tf32, f32, f64, e4m3, e5m2, int8 or uint8")->capture_default_str();
  gemm->add_option("--out", k.out, "Type of D; default: that of the operands, bf16 of fp8, int32 of int8");
  gemm->add_option("--layout", k.layout, "n or t for A, then for B: nt is A as m x k and B as n x k")
      ->check(CLI::IsMember({"nt", "nn", "tn", "tt"}))
      ->capture_default_str();
  gemm->add_option("--epilogue", k.epilogue, "Of x, the product: \"gelu(x + bias) * 0.5 + residual\"");
  gemm->add_option(
      "--operand", k.operands,
      "Of the epilogue: NAME:column|row|matrix|scalar:TYPE (may be repeated); bias, row_bias, residual and "
      "scale are known");
  gemm->add_option("--device", k.device, "Which GPU")->capture_default_str();
  gemm->add_option("--family", k.family, "Only candidates of this family")->check(CLI::IsMember(gemm_families()));
  gemm->add_option("--candidates", k.most, "How many are timed")->capture_default_str();
  gemm->add_flag("--all", k.all, "Time every candidate");
  gemm->add_flag("--verify", k.verify, "Compare every candidate with a float64 reference");
  gemm->add_flag("--compile-only", k.compile_only, "List and compile candidates for a GPU of --sm; needs no GPU");
  gemm->add_flag("--predict", k.predict, "The same without compiling");
  gemm->add_option("--sm", k.sm, "With --compile-only: for compute capability 90 or 80")->capture_default_str();
  gemm->add_option("--chip", k.chip, "With --predict: for the chip of this name, as its driver spells it");
  gemm->add_option("--seed", a.seed, "Seed of the operands")->capture_default_str();
  gemm->add_flag("--json", a.json, "Print JSON");
  gemm->add_flag_callback(
      "--no-cache", [&a] { a.options.use_cache = false; }, "Compile even if the cache has the kernels");
  gemm->callback([&chosen, &k, m, n, depth] {
    for (const CLI::Option* size : {m, n, depth}) {
      if (k.list.empty() && size->count() == 0) throw CLI::RequiredError(size->get_name());
    }
    chosen = kernel_command;
  });
}

constexpr const char* kFooter =
    "`heddle COMMAND --help` lists the options of a command.\n"
    "Exit codes: 0 done, 1 verification failed, 2 bad input, 3 unsupported, 4 internal or the machine.\n"
    "Environment:\n"
    "  HEDDLE_CACHE_DIR, HEDDLE_CACHE_GB   folder and size of the cache\n"
    "  HEDDLE_CXX                          the C++ compiler for kernels\n"
    "  HEDDLE_NVRTC                        NVIDIA's run-time compiler, libnvrtc.so\n"
    "  HEDDLE_CUDA_DRIVER                  the driver's library in place of libcuda.so.1: the emulator\n"
    "  HEDDLE_CUPTI                        NVIDIA's library libcupti.so, for heddle profile\n"
    "  HEDDLE_NVML                         NVIDIA's library libnvidia-ml.so, for the energy of runs\n"
    "  HEDDLE_POWERCAP                     folder of the CPU's energy counters, in place of /sys/class/powercap\n"
    "  HEDDLE_CUDA_OVERLAP                 0: no kernel begins before the one in front of it has ended\n"
    "  HEDDLE_CPU_ISA                      portable, avx2 or avx512: at most this instruction set; amx: AMX, too\n"
    "  HEDDLE_DEVICES                      folder of calibrated devices (heddle devices --calibrate)\n"
    "  HEDDLE_KERNEL_OVERRIDE              a folder of edited kernel texts (heddle compile --emit) to use\n"
    "  HEDDLE_LOG                          debug, info, warning or off: what is told on stderr; info,stages: how "
    "kernels are laid out";

// The exit code of a failure that `error` describes, which is told.
int failed(const Error& error) {
  tell("error", error.what());
  return exit_code(error.code());
}

// What `work` returns, or the exit code of what it threw.
template <typename Work>
int guarded(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    return failed(error);
  } catch (const std::bad_alloc&) {
    return failed(Error(ErrorCode::kOutOfMemory, "heddle", "an allocation failed"));
  } catch (const std::exception& error) {
    return failed(Error(ErrorCode::kInternal, "heddle", error.what()));
  }
}

int misused(const CLI::App& app, const std::string& what) {
  tell("error", what);
  std::fprintf(stderr, "%s\n", usage_hint(app).c_str());
  return 2;
}

int parse_and_run(int argc, const char* const* argv) {
  Arguments arguments;
  Command command = nullptr;
  CLI::App app{"Heddle: an optimising compiler for deep learning", "heddle"};
  arguments.app = &app;
  app.require_subcommand(0, 1);  // none is misused() below
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("heddle ") + version());
  add_commands(app, arguments, command);
  add_kernel_command(app, arguments, command);
  // What stands behind -- is another program's.
  if (argc > 1 && std::string_view(argv[1]) == "profile") {
    const char* const* end = argv + argc;
    const char* const* program = std::find(argv + 1, end, std::string_view("--"));
    if (program != end) arguments.profile.program.assign(program + 1, end);
    argc = static_cast<int>(program - argv);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    const int code = app.exit(success, text, text);
    print_raw(text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return misused(app, usage_error(app, error));
  }
  if (command == nullptr) return misused(app, no_command(app));
  return command(arguments);
}

}  // namespace

int main(int argc, const char* const* argv) {
  const int code = guarded([&] {
    speak_of(Interface::kCommandLine);
    clean_up_on_signals();
    return parse_and_run(argc, argv);
  });
  const int written = guarded([] { return flush_output(), 0; });
  return written != 0 ? written : code;
}

}  // namespace heddle::cli
