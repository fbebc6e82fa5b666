// heddle_fuzz_attacks: hostile files against the compiler; tests/README.md says how to use it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/attack/campaign.h"

namespace heddle::fuzz {
namespace {

constexpr int kSkipped = 77;

std::unique_ptr<Attack> make_attack(const std::string& name, const AttackOptions& options) {
  if (name == "models") return make_models_attack(options);
  if (name == "external") return make_external_attack();
  if (name == "texts") return make_texts_attack(options);
  if (name == "plans") return make_plans_attack();
  if (name == "entries") return make_entries_attack();
  if (name == "databases") return make_databases_attack();
  if (name == "profiles") return make_profiles_attack();
  return make_arrays_attack();
}

int attack(const CampaignOptions& campaign, const AttackOptions& options, const std::string& repeated,
           const std::string& made) {
  const std::unique_ptr<Attack> attack = make_attack(campaign.attack, options);
  if (!repeated.empty()) {
    const std::string outcome = run_case(*attack, campaign.seed, repeated, campaign);
    fmt::print("{}\n", outcome);
    return outcome.starts_with("fail") ? 1 : 0;
  }
  if (!attack->prepare()) {
    fmt::print("{}: there is nothing to make cases from; skipped\n", campaign.attack);
    return kSkipped;
  }
  if (!made.empty()) {
    attack->make(campaign.seed, made);
    return 0;
  }
  const Progress progress = run_campaign(*attack, campaign);
  fmt::print("{} cases of {} in {:.1f} s, {:.1f} s of processor time:", progress.cases(), campaign.attack,
             progress.seconds, progress.cpu_seconds);
  for (const auto& [outcome, count] : progress.outcomes) fmt::print(" {} {},", count, outcome);
  fmt::print(" {} failures\n", progress.failures.size());
  return progress.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  heddle::fuzz::CampaignOptions campaign;
  heddle::fuzz::AttackOptions options;
  std::string repeated, made;
  CLI::App app("Hostile files: whatever they are, the compiler gives a result or a heddle::Error");
  app.add_option("attack", campaign.attack, "what to damage")
      ->required()
      ->check(CLI::IsMember({"models", "external", "texts", "plans", "entries", "databases", "arrays", "profiles"}));
  app.add_option("--count", campaign.count, "cases to try");
  app.add_option("--seed", campaign.seed, "seed of the first case; the next ones count up");
  app.add_option("--seconds", campaign.seconds, "begin no batch of cases after this time");
  app.add_option("--batch", campaign.batch, "cases of one process")->check(CLI::Range(1, 100000));
  app.add_option("--jobs", campaign.jobs, "processes at a time")->check(CLI::Range(1, 256));
  app.add_option("--timeout", campaign.timeout, "seconds of processor time for one case that count as a hang");
  app.add_option("--memory-mb", campaign.memory_mb, "growth of a process that counts as a failure");
  app.add_option("--max-failures", campaign.max_failures, "stop after so many");
  app.add_option("--save", campaign.save, "folder for the cases that failed, made small")
      ->check(CLI::ExistingDirectory);
  app.add_option("--state", campaign.state, "file to go on from, and to keep progress in");
  app.add_option("--build", campaign.build, "name of what is attacked, for the file of --state");
  app.add_option("--dir", options.model_folders, "models: folders with ONNX files, searched recursively");
  app.add_option("--max-bytes", options.max_bytes, "models: larger files are left out");
  app.add_option("--run-every", options.run_every, "models, texts: of so many cases one is compiled and run; 0: none");
  app.add_option("--case", repeated, "run the case in this folder, with the options of --seed");
  app.add_option("--make", made, "write the case of --seed into this folder, and run nothing")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  try {
    return heddle::fuzz::attack(campaign, options, repeated, made);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", campaign.attack, error.what());
    return 2;
  }
}
