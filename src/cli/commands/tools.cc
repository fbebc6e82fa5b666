// The commands that need no model: opt, zoo, devices, cache.
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file/file.h"
#include "cli/support.h"
#include "driver/compile/options.h"
#include "jit/cache.h"
#include "jit/compiler.h"
#include "passes/opt.h"
#include "target/cuda_driver.h"
#include "tune/place.h"
#include "zoo/zoo.h"

namespace heddle::cli {
namespace {

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return std::string(MappedFile::read(path)->text());
}

void list_models() {
  Table table({"name", "seq", "size", "width", "what"});
  const auto range = [](const zoo::Range& r) {
    return r.fallback == 0 ? std::string("-") : fmt::format("{}", r.fallback);
  };
  for (const zoo::ModelInfo& info : zoo::models()) {
    table.add(
        {std::string(info.name), range(info.seq), range(info.size), range(info.width), std::string(info.description)});
  }
  table.print();
}

}  // namespace

int opt_command(const Arguments& arguments) {
  if (arguments.list) {
    Table table({"pass", "what"});
    std::vector<std::string_view> seen;
    for (const passes::Pass& pass : passes::pipeline()) {
      if (std::find(seen.begin(), seen.end(), pass.name) != seen.end()) continue;
      seen.push_back(pass.name);
      table.add({std::string(pass.name), std::string(pass.what)});
    }
    table.print();
    return 0;
  }
  if (arguments.model.empty()) fail(ErrorCode::kInvalidArgument, "opt", "FILE is missing", "Give a file, or --list");
  const driver::Settings settings = driver::resolve(arguments.options);
  const passes::PassContext context{settings.target, settings.precision};
  const std::string text = passes::optimise_text(read_text(arguments.model), arguments.passes, context);
  if (arguments.output.empty()) {
    print_raw(text);
  } else {
    write_file(arguments.output, text, Sync::kNo);
  }
  return 0;
}

int zoo_command(const Arguments& arguments) {
  if (arguments.model.empty()) {
    list_models();
    return 0;
  }
  const std::string path = arguments.output.empty() ? arguments.model + ".onnx" : arguments.output;
  zoo::Options options;
  options.batch = arguments.batch;
  options.seq = arguments.seq;
  options.size = arguments.size;
  options.width = arguments.width;
  options.seed = arguments.seed;
  zoo::write(arguments.model, options, path);
  print_line(path);
  return 0;
}

int devices_command(const Arguments& arguments) {
  const Target target = Target::host_cpu();
  const CpuTarget& cpu = target.cpu;
  std::string compiler;
  try {
    compiler = jit::find_compiler().path;
  } catch (const Error& error) {
    compiler = fmt::format("none ({})", error.why());
  }
  if (arguments.json) {
    const nlohmann::json device = {{"name", "cpu"},
                                   {"isa", std::string(to_string(cpu.isa))},
                                   {"threads", cpu.threads},
                                   {"peak_gflops_per_core", cpu.peak_gflops()},
                                   {"avx512_bf16", cpu.avx512_bf16},
                                   {"avx512_vnni", cpu.avx512_vnni},
                                   {"l1_bytes", cpu.l1_bytes},
                                   {"l2_bytes", cpu.l2_bytes},
                                   {"l3_bytes", cpu.l3_bytes},
                                   {"compiler", compiler}};
    nlohmann::json devices = nlohmann::json::array({device});
    for (const CudaDevice& gpu : cuda_devices()) {
      devices.push_back({{"name", fmt::format("cuda:{}", gpu.ordinal)},
                         {"model", gpu.name},
                         {"sm", gpu.target.sm},
                         {"sms", gpu.target.sms},
                         {"memory_bytes", gpu.memory_bytes},
                         {"l2_bytes", gpu.target.l2_bytes},
                         {"driver", gpu.driver_version}});
    }
    print_json(nlohmann::json{{"devices", devices}});
    return 0;
  }
  Table table({"device", "what"});
  table.add({"cpu",
             fmt::format("{}{}{}, {} threads of {:.0f} GFLOP/s (f32), caches {} / {} / {}", to_string(cpu.isa),
                         cpu.avx512_bf16 ? " bf16" : "", cpu.avx512_vnni ? " vnni" : "", cpu.threads, cpu.peak_gflops(),
                         human_bytes(static_cast<double>(cpu.l1_bytes)), human_bytes(static_cast<double>(cpu.l2_bytes)),
                         human_bytes(static_cast<double>(cpu.l3_bytes)))});
  table.add({"compiler", compiler});
  for (const CudaDevice& gpu : cuda_devices()) {
    table.add({fmt::format("cuda:{}", gpu.ordinal),
               fmt::format("{}, sm_{}, {} SMs, {}, L2 {}, driver for CUDA {}.{}", gpu.name, gpu.target.sm,
                           gpu.target.sms, human_bytes(static_cast<double>(gpu.memory_bytes)),
                           human_bytes(static_cast<double>(gpu.target.l2_bytes)), gpu.driver_version / 1000,
                           gpu.driver_version % 1000 / 10)});
  }
  table.print();
  return 0;
}

int cache_command(const Arguments& arguments) {
  const jit::Cache cache = jit::Cache::of_user();
  tune::Database& database = tune::user_database();
  const bool clear = arguments.model == "clear";
  const int64_t tuned = database.count();
  const uint64_t tuned_bytes = database.bytes();
  const jit::CacheInfo info = clear ? cache.clear() : cache.info();
  if (clear) database.clear();
  if (arguments.json) {
    print_json(nlohmann::json{{"folder", info.folder},
                              {"entries", info.entries},
                              {"bytes", info.bytes},
                              {"tuned", {{"file", database.path()}, {"records", tuned}, {"bytes", tuned_bytes}}},
                              {"note", database.note()}});
    return 0;
  }
  const char* const removed = clear ? "removed " : "";
  const std::string folder = info.folder.empty() ? "no folder (set HEDDLE_CACHE_DIR)" : info.folder;
  print_line(
      fmt::format("{}: {}{} entries, {}", folder, removed, info.entries, human_bytes(static_cast<double>(info.bytes))));
  const std::string file = database.path().empty() ? "no database" : database.path();
  print_line(
      fmt::format("{}: {}{} tuned problems, {}", file, removed, tuned, human_bytes(static_cast<double>(tuned_bytes))));
  if (const std::string note = database.note(); !note.empty()) print_line("note: " + note);
  return 0;
}

}  // namespace heddle::cli
