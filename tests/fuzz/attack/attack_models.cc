#include <algorithm>
#include <filesystem>

#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/attack/pipeline.h"
#include "tests/fuzz/hostile/model_mutator.h"
#include "tests/fuzz/hostile/onnx_edits.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> find_models(const AttackOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& folder : options.model_folders) {
    std::error_code ignored;
    for (auto at = fs::recursive_directory_iterator(folder, ignored); at != fs::recursive_directory_iterator();
         at.increment(ignored)) {
      const bool model = at->path().extension() == ".onnx" && at->is_regular_file();
      if (model && at->file_size() > 0 && at->file_size() <= options.max_bytes) paths.push_back(at->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class ModelsAttack : public Attack {
 public:
  explicit ModelsAttack(const AttackOptions& options) : options_(options) {}

  bool prepare() override {
    for (const std::string& path : find_models(options_)) {
      models_.push_back(read_bytes(path));
      if (auto model = parse_onnx(models_.back())) pool_.add(*model);
    }
    return !models_.empty();
  }

  // Most cases are models by their schema, edited a few times; some are damaged below that.
  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    const std::string& seed_model = rng.pick(models_);
    const std::string& donor_model = rng.pick(models_);
    auto model = parse_onnx(seed_model), donor = parse_onnx(donor_model);
    if (!model || !donor || rng.chance(0.2)) {
      return write_bytes(folder + "/model.onnx", mutate(seed_model, donor_model, rng));
    }
    const int edits = rng.chance(0.1) ? 12 : static_cast<int>(rng.range(1, 4));
    for (int i = 0; i < edits; ++i) edit_onnx(*model, *donor, pool_, rng, i);
    std::string bytes;
    encode_wire(*model, bytes);
    if (rng.chance(0.05)) bytes = mutate(bytes, donor_model, rng);
    write_bytes(folder + "/model.onnx", bytes);
    if (bytes.find("data.bin") != std::string::npos) {
      write_bytes(folder + "/data.bin", std::string(static_cast<size_t>(rng.range(0, 4096)), '\1'));
    }
  }

  std::string run(uint64_t seed, const std::string& folder) override {
    const bool whole = options_.run_every != 0 && seed % options_.run_every == 0;
    return compile_everywhere({.path = folder + "/model.onnx", .seed = seed, .run = whole});
  }

  std::string main_file() const override { return "model.onnx"; }
  size_t parts(const std::string& bytes) const override {
    const auto model = parse_onnx(bytes);
    return model ? count_fields(*model) : 0;
  }
  std::string without(const std::string& bytes, size_t begin, size_t end) const override {
    const auto model = parse_onnx(bytes);
    if (!model) return bytes;
    std::string smaller;
    encode_wire(without_fields(*model, begin, end), smaller);
    return smaller;
  }

 private:
  AttackOptions options_;
  std::vector<std::string> models_;
  OnnxPool pool_;
};

}  // namespace

std::unique_ptr<Attack> make_models_attack(const AttackOptions& options) {
  return std::make_unique<ModelsAttack>(options);
}

}  // namespace heddle::fuzz
