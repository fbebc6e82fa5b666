#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/extents/extents.h"
#include "heddle/error.h"

namespace heddle::onnx {

// The progress of an import with a guess.
struct Progress {
  uint64_t nodes = 0;            // nodes lowered before the one that failed
  std::vector<int64_t> extents;  // of the operands of the failed node
};

// An operator's statement that one extent of its operands is the sum of others. `key` names an open extent; "" means a
// fixed extent, which is `value`.
struct ExtentTerm {
  std::string key;
  int64_t value = 0;
};
struct ExtentSum {
  ExtentTerm total;
  std::vector<ExtentTerm> parts;
};

// Chooses values for open extents that the operators of a model accept. An import with a guess either succeeds or stops
// at a node; a guess that gets further is better. The search varies the two sides of a picture together first, then one
// extent after another. It tries typical values for the meaning of an extent, and operand extents of the node that
// failed. The number of imports and of nodes that they lower is bounded. No clock is involved, so the choice depends
// only on the model.
class ExtentSearch {
 public:
  explicit ExtentSearch(const std::vector<OpenExtent>& open);

  // The guess for the next import.
  const std::map<std::string, int64_t>& guess() const { return guess_; }
  // True if another guess could avoid an error with this code.
  static bool can_help(ErrorCode code);

  // Call it after every import. Takes what the operators stated about the extents, which holds for every later guess.
  // True if that changes guess().
  bool learn(const std::vector<ExtentSum>& sums);

  // Call it after a failed import with guess(): moves on to another guess. False if the search is over; guess() is then
  // the one that got furthest.
  bool next(const Progress& progress);

 private:
  struct Knob {
    std::vector<std::string> keys;  // varied together
    std::vector<int64_t> values;
  };
  void note(const Progress& progress);
  bool advance();
  bool begin_round();
  bool is_spent() const;
  void settle();
  std::vector<int64_t> candidates(const Knob& knob) const;

  std::vector<Knob> knobs_;
  std::map<std::string, int64_t> guess_, best_;
  Progress best_progress_;
  bool first_ = true, improved_ = false;
  bool only_empty_ = false;  // the last round
  std::vector<ExtentSum> sums_;
  int lessons_ = 0;
  size_t knob_ = 0, position_ = 0;
  std::vector<int64_t> values_;  // candidates for the current knob
  int rounds_ = 0, imports_ = 0;
  uint64_t nodes_ = 0;
};

}  // namespace heddle::onnx
