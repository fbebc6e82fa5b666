// The commands that need no model: opt, zoo, cache.
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file/file.h"
#include "cli/progress.h"
#include "cli/support.h"
#include "driver/options/options.h"
#include "driver/plan/plan_builder.h"
#include "jit/cache.h"
#include "passes/opt.h"
#include "tune/place.h"
#include "zoo/zoo.h"

namespace heddle::cli {
namespace {

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return std::string(MappedFile::read(path)->text());
}

void list_models() {
  Table table({"name", "seq", "size", "width", "context", "what"});
  const auto range = [](const zoo::Range& r) {
    return r.fallback == 0 ? std::string("-") : fmt::format("{}", r.fallback);
  };
  for (const zoo::ModelInfo& info : zoo::models()) {
    table.add({std::string(info.name), range(info.seq), range(info.size), range(info.width), range(info.context),
               std::string(info.description)});
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
  const passes::PassContext context = driver::pass_context(settings);
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
  options.context = arguments.context;
  options.seed = arguments.seed;
  options.real = *parse_dtype(arguments.zoo_type);
  Progress line;
  options.progress = [&](uint64_t done, uint64_t all) {
    const auto bytes = [](uint64_t count) { return human_bytes(static_cast<double>(count)); };
    line.show(fmt::format("weights: {} of {}", bytes(done), bytes(all)),
              static_cast<double>(done) / static_cast<double>(all));
  };
  zoo::write(arguments.model, options, path);
  print_line(path);
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
