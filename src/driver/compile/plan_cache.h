#pragma once

#include <memory>
#include <optional>
#include <string>

#include "driver/options/options.h"
#include "jit/cache.h"
#include "runtime/plan.h"
#include "runtime/plan_io.h"

namespace heddle::driver {

// Identity of a model's content: of its file, and of the external files that its tensors name, wherever they are. Files
// of up to 1 GB are hashed whole; larger ones by size, date and samples over all of the file. Throws kFile,
// kMalformedModel.
Hash128 model_hash(const std::string& path, const CompileOptions& options, int threads);

// The key of a plan. `base` is the key of its model and options; `winners` are those of its problems
// (TuningChoices::winners).
Hash128 tuned_key(const Hash128& base, const std::string& winners);

// Plans of this user by model, options, target and build of Heddle.
class PlanCache {
 public:
  // Returns null if the plan is absent, damaged or made from something else. In the last two cases it is removed.
  std::shared_ptr<const runtime::Plan> find(const Hash128& key, int threads) const;
  // Stores the plan, which carries its key. Returns it mapped from its file, so that packed weights are not also kept
  // in memory, or null if it could not be stored.
  std::shared_ptr<const runtime::Plan> store(const Hash128& key, runtime::Plan& plan,
                                             const runtime::ConstantMakers& makers) const;

  // The file of find() and store().
  std::string path_of(const Hash128& key) const { return cache_.path_of(jit::EntryKind::kPlan, key); }

  // Held while the plan of this model and these options is made (jit::Cache::lock()).
  FileLock lock(const Hash128& base) const { return cache_.lock(jit::EntryKind::kPlan, base); }

  // TuningChoices::text() of the model and options of this key.
  std::optional<std::string> find_problems(const Hash128& base) const;
  void store_problems(const Hash128& base, const std::string& text) const;

 private:
  jit::Cache cache_ = jit::Cache::of_user();
};

}  // namespace heddle::driver
