#pragma once

#include <memory>
#include <optional>
#include <string>

#include "driver/options/options.h"
#include "jit/cache.h"
#include "runtime/plan.h"
#include "runtime/plan_io.h"

namespace heddle::driver {

// Returns a hash of a model's contents: its file and the external data files that its tensors name. Files of up to 1 GB
// are hashed whole. Larger files are hashed by size, modification time and samples from the whole file. Throws kFile,
// kMalformedModel.
Hash128 model_hash(const std::string& path, const CompileOptions& options, int threads);

// Returns the key of a plan. `base` is the key of the model and the options. `winners` are the tuning results for the
// model's problems (TuningChoices::winners).
Hash128 tuned_key(const Hash128& base, const std::string& winners);

// The compiled plans of this user, on disk. The key covers the model, the options, the target and the build of Heddle.
class PlanCache {
 public:
  // Returns null if the plan is absent, damaged or has another key. A damaged plan or one with another key is
  // deleted.
  std::shared_ptr<const runtime::Plan> find(const Hash128& key, int threads) const;
  // Stores the plan, which contains its key. Returns the plan mapped from its file, so that packed weights are not
  // kept in memory a second time. Returns null if the plan could not be stored.
  std::shared_ptr<const runtime::Plan> store(const Hash128& key, runtime::Plan& plan,
                                             const runtime::ConstantMakers& makers) const;

  // The file in which find() and store() keep the plan of `key`.
  std::string path_of(const Hash128& key) const { return cache_.path_of(jit::EntryKind::kPlan, key); }

  // A lock to hold while the plan of this model and these options is compiled (jit::Cache::lock()).
  FileLock lock(const Hash128& base) const { return cache_.lock(jit::EntryKind::kPlan, base); }

  // Returns TuningChoices::text() as stored for the model and options of `base`.
  std::optional<std::string> find_problems(const Hash128& base) const;
  void store_problems(const Hash128& base, const std::string& text) const;

 private:
  jit::Cache cache_ = jit::Cache::of_user();
};

}  // namespace heddle::driver
