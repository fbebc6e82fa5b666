// heddle_decisions: what compiling decides, for pinned machines, as files to compare; tests/README.md says how to use
// it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/file/file.h"
#include "base/hash.h"
#include "driver/shapes/import.h"
#include "heddle/error.h"
#include "tests/decisions/dump.h"
#include "tests/fuzz/graph_generator.h"
#include "zoo/zoo.h"

namespace heddle::decisions {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string output;
  std::vector<std::string> files, models, machines;
  uint64_t random = 0, seed = 1;
  bool zoo = false, texts = false;
};

struct Case {
  std::string name;
  std::vector<passes::Precision> precisions;
  std::function<ir::Graph()> graph;
};

std::string_view name_of(passes::Precision precision) {
  return precision == passes::Precision::kF16 ? "f16" : "f32";
}

const std::vector<passes::Precision> kBoth = {passes::Precision::kF32, passes::Precision::kF16};

Case file_case(const std::string& path) {
  // Textual IR has the types that it is to run in.
  const auto precisions = driver::is_ir_file(path) ? std::vector{passes::Precision::kF32} : kBoth;
  const fs::path file(path);
  std::string name = file.stem();
  if (file.parent_path().filename() == "f16") name += "_in_f16";
  return {name, precisions, [path] { return driver::import_file(path, {}).graph; }};
}

Case zoo_case(const std::string& model, const fs::path& folder) {
  return {model, kBoth, [model, folder] {
            const fs::path path = folder / (model + ".onnx");
            zoo::write(model, {}, path);
            ir::Graph graph = driver::import_file(path.string(), {}).graph;
            for (const fs::path& written : {path, fs::path(path.string() + ".data")}) fs::remove(written);
            return graph;
          }};
}

Case random_case(uint64_t seed, bool memory_bound) {
  fuzz::GeneratorOptions generator;
  generator.memory_bound = memory_bound;
  if (memory_bound) generator.max_elements = 30000;
  return {fmt::format("{}_{}", memory_bound ? "memory_bound" : "random", seed), kBoth,
          [=] { return fuzz::generate_case(seed, generator).graph; }};
}

std::vector<Case> cases_of(const Options& options) {
  std::vector<Case> cases;
  for (const std::string& path : options.files) cases.push_back(file_case(path));
  for (const std::string& model : options.models) cases.push_back(zoo_case(model, options.output));
  for (uint64_t i = 0; i < options.random; ++i) cases.push_back(random_case(options.seed + i, i % 2 == 1));
  return cases;
}

void write_case(const Case& c, const Options& options) {
  const ir::Graph graph = c.graph();
  for (const Machine& machine : machines()) {
    if (std::find(options.machines.begin(), options.machines.end(), machine.name) == options.machines.end()) continue;
    for (const passes::Precision precision : c.precisions) {
      const std::string stem = fmt::format("{}.{}.{}", c.name, machine.name, name_of(precision));
      Dump made;
      try {
        made = dump(graph, machine, precision);
      } catch (const Error& error) {
        made.decisions = fmt::format("error: {}\n", error.what());
      }
      write_file(fmt::format("{}/{}.txt", options.output, stem), made.decisions);
      if (options.texts) write_file(fmt::format("{}/{}.kernels.cc", options.output, stem), made.kernels);
      fmt::print("{} {}\n", hash_text(made.decisions).hex(), stem);
    }
  }
}

}  // namespace
}  // namespace heddle::decisions

int main(int argc, char** argv) {
  heddle::decisions::Options options;
  std::vector<std::string> all_models, all_machines;
  for (const auto& model : heddle::zoo::models()) all_models.emplace_back(model.name);
  for (const auto& machine : heddle::decisions::machines()) all_machines.push_back(machine.name);
  CLI::App app(
      "What compiling decides for pinned machines, a file a case, machine and precision: compare two folders by diff "
      "-r");
  app.add_option("-o,--output", options.output, "folder for the dumps")->required();
  app.add_option("files", options.files, "models (.onnx, .hir)")->check(CLI::ExistingFile);
  app.add_option("--models", options.models, "of the zoo")->check(CLI::IsMember(all_models));
  app.add_flag("--zoo", options.zoo, "all models of the zoo");
  app.add_option("--random", options.random, "random graphs, every second one memory-bound");
  app.add_option("--seed", options.seed, "of the first random graph");
  app.add_option("--machines", options.machines, "default: all")->check(CLI::IsMember(all_machines));
  app.add_flag("--texts", options.texts, "the text of the kernels, too");
  CLI11_PARSE(app, argc, argv);
  if (options.machines.empty()) options.machines = all_machines;
  if (options.zoo) options.models = all_models;
  try {
    heddle::make_directories(options.output);
    for (const auto& c : heddle::decisions::cases_of(options)) heddle::decisions::write_case(c, options);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
