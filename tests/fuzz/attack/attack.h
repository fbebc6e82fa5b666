#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::fuzz {

// Hostile input of one kind: how a case is made from a seed and what is done to it. A case is a folder of files.
class Attack {
 public:
  virtual ~Attack() = default;

  // Before any case, in the process that forks the others, so no thread may be left. False: what cases are made from is
  // not there (skipped). Throws where the attack itself does not work.
  virtual bool prepare() { return true; }
  // Writes the case of a seed into an empty folder. A function of the seed.
  virtual void make(uint64_t seed, const std::string& folder) = 0;
  // What a user would do with these files. Returns how it ended ("ok", "ok, ran", ...) or throws heddle::Error, which
  // is right as well unless it says that Heddle is wrong. `seed` decides options.
  virtual std::string run(uint64_t seed, const std::string& folder) = 0;

  // For making a failing case smaller: the file that has parts, how many, and it without the parts [begin, end).
  virtual std::string main_file() const { return ""; }
  virtual size_t parts(const std::string& /*bytes*/) const { return 0; }
  virtual std::string without(const std::string& bytes, size_t /*begin*/, size_t /*end*/) const { return bytes; }
};

struct AttackOptions {
  std::vector<std::string> model_folders;  // with ONNX files to damage
  uint64_t max_bytes = 1 << 16;            // larger files are left out
  uint64_t run_every = 0;                  // of so many cases one is compiled by the C++ compiler and run; 0: none
};

// Damaged ONNX files, through import, passes, schedule and the text of the kernels, for the CPU and a GPU.
std::unique_ptr<Attack> make_models_attack(const AttackOptions& options);
// ONNX models whose weights are in files beside them, or seem to be.
std::unique_ptr<Attack> make_external_attack();
// Damaged textual IR, the same way and through `heddle opt`.
std::unique_ptr<Attack> make_texts_attack(const AttackOptions& options);
// Plan files: bytes changed, with the checksums as they were or mended, or the plan changed and written again.
std::unique_ptr<Attack> make_plans_attack();
// Entries of the kernel and plan cache.
std::unique_ptr<Attack> make_entries_attack();
// The tuner's database.
std::unique_ptr<Attack> make_databases_attack();
// .npy files.
std::unique_ptr<Attack> make_arrays_attack();
// Profiles that `heddle profile` reads: every view and every form of them.
std::unique_ptr<Attack> make_profiles_attack();

// Bytes of a file; "" where it cannot be read.
std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

}  // namespace heddle::fuzz
