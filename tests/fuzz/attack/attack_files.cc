// What lies beside models: entries of the cache, the tuner's database, arrays.
#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>

#include "base/file/file.h"
#include "cli/npy.h"
#include "driver/compile/plan_cache.h"
#include "driver/compile/tuned_configs.h"
#include "jit/cache.h"
#include "runtime/plan_io.h"
#include "tests/fuzz/attack/attack.h"
#include "tests/fuzz/hostile/mend.h"
#include "tune/database.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

class EntriesAttack : public Attack {
 public:
  bool prepare() override {
    const TempDir folder("heddle-fuzz-entries");
    const jit::Cache cache(folder.path());
    cache.store(jit::EntryKind::kProblems, kKey, "gemm f32 4x4x4 a=row b=row\ngemm f32 8x8x8 a=row b=col\n");
    entry_ = read_bytes(cache.path_of(jit::EntryKind::kProblems, kKey));
    if (entry_.empty() || mend_entry(entry_) != entry_) {
      throw std::runtime_error("mend_entry() does not know the format of entries");
    }
    runtime::Plan plan;
    plan.model = "empty";
    runtime::write_plan(plan, folder.path() + "/plan", Sync::kNo);
    plan_ = read_bytes(folder.path() + "/plan");
    return true;
  }

  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    const jit::Cache cache(folder);
    for (const jit::EntryKind kind : {jit::EntryKind::kProblems, jit::EntryKind::kStamp, jit::EntryKind::kLibrary}) {
      std::string bytes = entry_;
      const auto number = static_cast<uint32_t>(kind);
      bytes.replace(kKindAt, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
      const bool mended = rng.chance(0.5);
      for (int64_t edits = rng.range(0, 3); edits > 0; --edits) edit_binary(bytes, mended ? kEntryFrame : 0, rng);
      make_directories(fmt::format("{}/{}", folder, jit::to_string(kind)));
      write_bytes(cache.path_of(kind, kKey), mended ? mend_entry(bytes) : bytes);
    }
    std::string plan = plan_;
    for (int64_t edits = rng.range(0, 2); edits > 0; --edits) edit_binary(plan, 0, rng);
    make_directories(folder + "/plan");
    write_bytes(cache.path_of(jit::EntryKind::kPlan, kKey), plan);
  }

  std::string run(uint64_t, const std::string& folder) override {
    setenv("HEDDLE_CACHE_DIR", folder.c_str(), 1);
    const jit::Cache cache = jit::Cache::of_user();
    cache.is_stamped(kKey);
    const bool library = cache.find(jit::EntryKind::kLibrary, kKey).has_value();
    const driver::PlanCache plans;
    const auto problems = plans.find_problems(kKey);
    if (problems) driver::current_winners(*problems, Target::host_cpu(1), true);
    const auto plan = plans.find(kKey, 1);
    cache.info();
    cache.trim(1000);
    cache.clear();
    return library || problems || plan != nullptr ? "found" : "absent";
  }

 private:
  static constexpr size_t kKindAt = 12;
  static constexpr Hash128 kKey{1, 2};
  std::string entry_, plan_;
};

// SQL that makes of the database what Heddle does not expect.
void damage_database(const std::string& path, Rng& rng) {
  static const std::vector<std::string> statements = {
      "UPDATE winners SET winner_us='text', pick_us=x'00ff', winner_uj=x'01', pick_uj='text'",
      "UPDATE winners SET winner=x'00ff00', pick=''",
      "UPDATE winners SET winner_us=9e999, spread=-9e999",
      "UPDATE winners SET candidates=9223372036854775807, samples=-1, made=-9223372036854775808",
      "UPDATE winners SET winner=hex(zeroblob(100000))",
      "DELETE FROM winners",
      "DROP TABLE winners",
      "ALTER TABLE winners RENAME COLUMN winner TO other",
      "ALTER TABLE winners RENAME TO old; CREATE VIEW winners AS SELECT * FROM old",
      "CREATE TRIGGER t AFTER INSERT ON winners BEGIN DELETE FROM winners; END",
      "PRAGMA user_version=2",
      "PRAGMA user_version=0",
      "PRAGMA application_id=77; PRAGMA page_size=512; VACUUM",
      "PRAGMA journal_mode=WAL",
      "PRAGMA encoding='UTF-16'; VACUUM",
      "CREATE TABLE more(x); INSERT INTO more VALUES(zeroblob(10000))"};
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) == SQLITE_OK) {
    sqlite3_exec(database, rng.pick(statements).c_str(), nullptr, nullptr, nullptr);
  }
  sqlite3_close(database);
}

class DatabasesAttack : public Attack {
 public:
  bool prepare() override {
    const TempDir folder("heddle-fuzz-database");
    const std::string path = tune::Database::path_in(folder.path());
    {
      tune::Database database(path);
      for (int i = 0; i < 40; ++i) {
        database.store(kPlace, fmt::format("problem {}", i), {fmt::format("winner {}", i), "pick", 1.5, 2, 0.1, 5, 20});
      }
    }
    bytes_ = read_bytes(path);
    return !bytes_.empty();
  }

  void make(uint64_t seed, const std::string& folder) override {
    Rng rng(seed);
    const std::string path = tune::Database::path_in(folder);
    write_bytes(path, bytes_);
    if (rng.chance(0.4)) damage_database(path, rng);
    if (rng.chance(0.7)) {
      std::string bytes = read_bytes(path);
      for (int64_t edits = rng.range(1, 6); edits > 0; --edits) edit_binary(bytes, rng.chance(0.5) ? 100 : 0, rng);
      write_bytes(path, bytes);
    }
    for (const char* suffix : {"-wal", "-journal", "-shm"}) {
      if (!rng.chance(0.1)) continue;
      std::string beside = bytes_.substr(0, static_cast<size_t>(rng.range(0, 5000)));
      edit_binary(beside, 0, rng);
      write_bytes(path + suffix, beside);
    }
  }

  std::string run(uint64_t, const std::string& folder) override {
    tune::Database database(tune::Database::path_in(folder));
    const bool found = database.find(kPlace, "problem 7").has_value();
    database.count();
    const bool stored = database.store(kPlace, "problem 7", {"winner", "pick", 1, 2, 0, 3, 4});
    if (stored && !database.find(kPlace, "problem 7")) return "kept nothing";
    database.clear();
    return found ? "found" : "absent";
  }

 private:
  inline static const tune::Place kPlace{"device", "driver", "version"};
  std::string bytes_;
};

class ArraysAttack : public Attack {
 public:
  void make(uint64_t seed, const std::string& folder) override {
    static const std::vector<DType> types = {DType::kF32, DType::kI64, DType::kBool, DType::kF16, DType::kU8};
    static const std::vector<std::string> words = {
        "'descr'", "'shape'", "'fortran_order'",     "True", "False", "(",   ")",
        ",",       "'",       "9223372036854775807", "-1",   "<f4",   ">f4", "|O",
        "{",       ""};
    Rng rng(seed);
    Shape shape(static_cast<size_t>(rng.range(0, 4)));
    for (int64_t& extent : shape) extent = rng.range(0, 4);
    const std::string path = folder + "/input.npy";
    cli::write_npy(path, Tensor(rng.pick(types), shape));
    std::string bytes = read_bytes(path);
    for (int64_t edits = rng.range(1, 4); edits > 0; --edits) {
      if (rng.chance(0.5)) {
        edit_binary(bytes, 0, rng);
      } else {
        const auto at = static_cast<size_t>(rng.range(0, static_cast<int64_t>(std::min<size_t>(bytes.size(), 128))));
        bytes.replace(at, static_cast<size_t>(rng.range(0, 12)), rng.pick(words));
      }
    }
    write_bytes(path, bytes);
  }

  std::string run(uint64_t, const std::string& folder) override {
    const Tensor tensor = cli::read_npy(folder + "/input.npy");
    cli::as_dtype(tensor, DType::kBF16);
    cli::write_npy(folder + "/again.npy", tensor);
    return "ok";
  }
};

}  // namespace

std::unique_ptr<Attack> make_entries_attack() {
  return std::make_unique<EntriesAttack>();
}

std::unique_ptr<Attack> make_databases_attack() {
  return std::make_unique<DatabasesAttack>();
}

std::unique_ptr<Attack> make_arrays_attack() {
  return std::make_unique<ArraysAttack>();
}

}  // namespace heddle::fuzz
