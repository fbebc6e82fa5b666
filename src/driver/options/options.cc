#include "driver/options/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/check.h"
#include "base/near_miss.h"
#include "driver/target/backend.h"
#include "driver/tile/tile_group.h"
#include "heddle/version.h"
#include "jit/cache.h"
#include "jit/headers.h"
#include "target/calibration.h"
#include "target/cuda_driver.h"
#include "target/hip_driver.h"

namespace heddle {
namespace driver {
namespace {

constexpr int kMaxThreads = 1024;

using Words = std::vector<std::string_view>;

// What others call a word of ours.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"fp32", "f32"},           {"float32", "f32"}, {"float", "f32"},   {"single", "f32"},
    {"fp16", "f16"},           {"float16", "f16"}, {"half", "f16"},    {"bfloat16", "bf16"},
    {"tensorfloat32", "tf32"}, {"gpu", "cuda"},    {"nvidia", "cuda"}, {"amd", "hip"},
    {"rocm", "hip"},           {"x86", "cpu"},     {"host", "cpu"},    {"off", "none"},
    {"full", "stitch"},        {"i8", "int8"},     {"u8", "uint8"},    {"fp8", "e4m3"},
    {"fp64", "f64"},           {"float64", "f64"}, {"double", "f64"},
};

// "f32, tf32 or bf16"
std::string listed(const Words& words) {
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

[[noreturn]] void unknown_word(const char* what, std::string_view word, const Words& known) {
  fail(ErrorCode::kInvalidArgument, what, fmt::format("\"{}\" is unknown", word),
       meant_word(word, known) + "Use " + listed(known));
}

passes::Precision parse_precision(const std::string& text) {
  if (text == "f32") return passes::Precision::kF32;
  if (text == "tf32") return passes::Precision::kTf32;
  if (text == "f16") return passes::Precision::kF16;
  if (text == "bf16") return passes::Precision::kBF16;
  unknown_word("precision", text, {"f32", "tf32", "f16", "bf16"});
}

passes::FusionPolicy parse_fusion(const std::string& text) {
  if (text == "none") return passes::FusionPolicy::kNone;
  if (text == "basic") return passes::FusionPolicy::kBasic;
  if (text == "stitch") return passes::FusionPolicy::kStitch;
  unknown_word("fusion", text, {"none", "basic", "stitch"});
}

passes::FusionRules parse_rules(const std::vector<std::string>& without) {
  passes::FusionRules rules;
  for (const std::string& name : without) {
    if (name == "attention") {
      rules.attention = false;
    } else if (name == "back-to-back") {
      rules.back_to_back = false;
    } else if (name == "sequences") {
      rules.sequences = false;
    } else {
      unknown_word("rule of fusion", name, {"attention", "back-to-back", "sequences"});
    }
  }
  return rules;
}

schedule::StitchOptions parse_stitch(const std::vector<std::string>& without) {
  schedule::StitchOptions options;
  for (const std::string& name : without) {
    if (name == "adaptive-mapping") {
      options.adaptive_mapping = false;
    } else if (name == "data-reuse") {
      options.data_reuse = false;
    } else if (name == "dominant-merging") {
      options.dominant_merging = false;
    } else if (name == "global") {
      options.global = false;
    } else {
      unknown_word("part of stitching", name, {"adaptive-mapping", "data-reuse", "dominant-merging", "global"});
    }
  }
  return options;
}

schedule::ForcedMapping parse_mapping(const std::string& name) {
  using schedule::ForcedMapping;
  if (name.empty()) return ForcedMapping::kNone;
  if (name == "warp") return ForcedMapping::kWarp;
  if (name == "block") return ForcedMapping::kBlock;
  if (name == "cluster") return ForcedMapping::kCluster;
  if (name == "parts") return ForcedMapping::kParts;
  unknown_word("mapping of stitches", name, {"warp", "block", "cluster", "parts"});
}

// `kind`: of target, as in "cuda:0". `format` reads the number of SMs and the shared memory of a block from a
// fingerprint for this architecture.
void check_gpu(const std::string& plan, const std::string& fingerprint, int device, const Target& here,
               const std::string& kind, const std::string& format) {
  // Machine code runs on its architecture only; a smaller GPU of it cannot hold a kernel whose blocks run all at once.
  int sms = 0;
  int64_t shared = 0;
  const GpuTarget& gpu = here.gpu();
  const bool read = std::sscanf(fingerprint.c_str(), format.c_str(), &sms, &shared) == 2;
  if (read && sms <= gpu.sms && shared <= gpu.shared_bytes_per_block) return;
  fail(ErrorCode::kDevice, plan,
       fmt::format("it was made for {}, {}:{} is {}", fingerprint, kind, device, here.fingerprint()),
       "Compile the model for this GPU");
}
void check_cuda(const std::string& plan, const std::string& fingerprint, int device) {
  const Target here = Target::of(Target::cuda_device(device, 1).cuda);
  check_gpu(plan, fingerprint, device, here, "cuda", fmt::format("cuda-{}-sms%d-shared%ld", here.cuda.architecture()));
}
void check_hip(const std::string& plan, const std::string& fingerprint, int device) {
  const Target here = Target::hip_device(device, 1);
  check_gpu(plan, fingerprint, device, here, "hip", fmt::format("hip-{}-cus%d-lds%ld", here.hip.architecture()));
}

// The AMD GPU that a target such as "hip", "hip:0" or "hip-gfx90a" names. A chip named by its architecture, and the
// default where there is no HIP runtime, is one for which plans are made only.
void resolve_hip(const std::string& name, int device, int threads, Settings& settings) {
  constexpr std::string_view kChip = "hip-";
  if (name.starts_with(kChip)) {
    const auto chip = HipTarget::of_architecture(std::string_view(name).substr(kChip.size()));
    HEDDLE_CHECK(chip.has_value(), "device_of() accepted {}", name);
    settings.target = Target::of_hip(*chip, threads);
  } else if (find_hip_driver() != nullptr) {
    settings.target = Target::hip_device(device, threads);
    settings.device = device;
  } else {
    settings.target = Target::of_hip({}, threads);
  }
}

std::pair<std::string, std::string> output_and_input(const std::string& text, const char* where, const char* remedy) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    fail(ErrorCode::kInvalidArgument, where, fmt::format("\"{}\" is not of the form OUTPUT=INPUT", text), remedy);
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

void add_alias(CompileOptions& options, const std::string& text, const char* where) {
  if (text == "auto") {
    options.alias_updates = true;
    return;
  }
  const auto [output, input] = output_and_input(
      text, where, "Name an output and an input of its type and shape, as in present.*=past.*, or write auto");
  options.alias[output] = input;
}

void add_rows(CompileOptions& options, const std::string& text, const char* where) {
  const auto [output, input] = output_and_input(text, where, "Name an output and the input to add, as in logits=last");
  options.rows[output] = input;
}

void add_appended(CompileOptions& options, const std::string& text, const char* where) {
  const auto [output, input] =
      output_and_input(text, where, "Name an output and the input to which it appends, as in present.*=past.*");
  options.appended[output] = input;
}

std::string meant_word(std::string_view word, const Words& known) {
  for (const auto& [other, ours] : kSynonyms) {
    if (word == other && std::find(known.begin(), known.end(), ours) != known.end()) {
      return fmt::format("Did you mean {}? ", ours);
    }
  }
  return did_you_mean(word, known);
}

namespace {

// A measured clock varies by some percent from one process to the next, and the kernels that a schedule chooses with
// it. All processes of a user take the highest so far, so that they choose, and find in the cache, the same kernels.
double clock_of_all_processes(double measured) {
  const jit::Cache cache = jit::Cache::of_user();
  const Hash128 key = hash_text(cpu_name());
  double highest = 0;
  if (const auto entry = cache.find(jit::EntryKind::kClock, key)) {
    std::from_chars(entry->payload.data(), entry->payload.data() + entry->payload.size(), highest);
  }
  if (measured > highest) cache.store(jit::EntryKind::kClock, key, fmt::format("{}", measured));
  return std::max(measured, highest);
}

Target host_target(int threads) {
  Target target = Target::host_cpu(threads);
  if (!cpu_calibration(cpu_name())) target.cpu.ghz = clock_of_all_processes(target.cpu.ghz);
  return target;
}

}  // namespace

void use_cache_folder(const std::string& folder) {
  jit::Cache::use_folder(folder);
}

Settings resolve(const CompileOptions& options) {
  install_tile_evaluator();
  if (options.threads < 0 || options.threads > kMaxThreads) {
    fail(ErrorCode::kInvalidArgument, "threads",
         fmt::format("{} is not between 0 and {}", options.threads, kMaxThreads));
  }
  const int device = device_of(options.target);
  Settings settings;
  if (options.target == "cpu") {
    settings.target = host_target(options.threads);
  } else if (options.target.starts_with("hip")) {
    resolve_hip(options.target, device, options.threads, settings);
  } else if (CudaDriver::find() != nullptr) {
    settings.target = Target::cuda_device(device, options.threads);
    settings.device = device;
  } else {
    settings.target = Target::cuda_h200(options.threads);
  }
  settings.precision = parse_precision(options.precision);
  settings.fusion = parse_fusion(options.fusion);
  settings.rules = parse_rules(options.disabled_fusion);
  settings.stitch = parse_stitch(options.disabled_stitching);
  settings.stitch.mapping = parse_mapping(options.stitch_mapping);
  for (const std::string& name : options.disabled_passes) {
    if (passes::find_pass(name) != nullptr) continue;
    Words known;
    for (const passes::Pass& pass : passes::pipeline()) known.push_back(pass.name);
    fail(ErrorCode::kInvalidArgument, "disabled pass", fmt::format("there is no pass \"{}\"", name),
         did_you_mean(name, known) + "`heddle opt --list` names all");
  }
  return settings;
}

Hash128 settings_hash(const CompileOptions& options, const Settings& settings) {
  Hasher hasher;
  hasher.add(version()).add(build_id()).add(jit::headers_hash()).add(settings.target.fingerprint());
  hasher.add(settings.target.model_fingerprint());
  hasher.add(static_cast<int64_t>(settings.precision)).add(static_cast<int64_t>(settings.fusion));
  for (const std::string& name : options.disabled_passes) hasher.add(name);
  for (const bool rule : {settings.rules.attention, settings.rules.back_to_back, settings.rules.sequences})
    hasher.add(int64_t{rule});
  const schedule::StitchOptions& stitch = settings.stitch;
  for (const bool part : {stitch.adaptive_mapping, stitch.data_reuse, stitch.dominant_merging, stitch.global})
    hasher.add(int64_t{part});
  hasher.add(static_cast<int64_t>(stitch.mapping));
  hasher.add(int64_t{options.alias_updates});
  for (const auto& [output, input] : options.alias) hasher.add("alias").add(output).add(input);
  for (const auto& [output, input] : options.rows) hasher.add("rows").add(output).add(input);
  for (const auto& [output, input] : options.appended) hasher.add("appended").add(output).add(input);
  for (const auto& [name, shape] : options.shapes) hasher.add("shape").add(name).add(to_string(shape));
  for (const auto& [name, value] : options.values) {
    hasher.add("value").add(name).add(to_string(value.dtype())).add(to_string(value.shape()));
    if (value.dtype() == DType::kString) {
      for (const std::string& text : value.strings()) hasher.add(text);
    } else {
      hasher.add(hash_bytes(value.data(), value.bytes()));
    }
  }
  return hasher.finish();
}

int device_of(const std::string& target) {
  if (target == "cpu" || target == "cuda" || target == "hip") return 0;
  int number = 0;
  const char* end = target.data() + target.size();
  for (const std::string_view prefix : {"cuda:", "hip:"}) {
    if (!target.starts_with(prefix)) continue;
    const auto [stop, error] = std::from_chars(target.data() + prefix.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return number;
  }
  std::vector<std::string> chips;
  for (const HipChip* chip : hip_chips()) chips.push_back(fmt::format("hip-{}", chip->architecture));
  if (std::find(chips.begin(), chips.end(), target) != chips.end()) return 0;
  Words known = {"cpu", "cuda", "cuda:N", "hip", "hip:N"};
  known.insert(known.end(), chips.begin(), chips.end());
  unknown_word("target", target, known);
}

void require_device(const Settings& settings) {
  backend_of(settings.target).require_device(settings.device);
}

void check_runs_here(const std::string& plan, const std::string& fingerprint, int device) {
  if (fingerprint.starts_with("cuda-")) return check_cuda(plan, fingerprint, device);
  if (fingerprint.starts_with("hip-")) return check_hip(plan, fingerprint, device);
  const Target here = Target::host_cpu();
  const auto needs = [&](std::string_view feature) { return fingerprint.find(feature) != std::string::npos; };
  const bool isa = fingerprint.starts_with("cpu-") && (!needs("-avx512-") || here.cpu.isa >= CpuIsa::kAvx512) &&
                   (!needs("-avx2-") || here.cpu.isa >= CpuIsa::kAvx2);
  if (isa && (!needs("-f16ctrue") || here.cpu.f16c) && (!needs("-bf16true") || here.cpu.avx512_bf16) &&
      (!needs("-vnnitrue") || here.cpu.avx512_vnni) && (!needs("-amxtrue") || here.cpu.amx)) {
    return;
  }
  fail(ErrorCode::kDevice, plan, fmt::format("it was made for {}, this machine is {}", fingerprint, here.fingerprint()),
       "Compile the model on this machine");
}

}  // namespace driver
}  // namespace heddle
