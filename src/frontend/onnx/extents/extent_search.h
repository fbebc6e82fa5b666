#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/extents/extents.h"
#include "heddle/error.h"

namespace heddle::onnx {

// The progress of an import that uses a guess.
struct Progress {
  uint64_t nodes = 0;            // nodes lowered before the one that failed
  std::vector<int64_t> extents;  // of the operands of the failed node
};

// An operator's statement that one extent of its operands is the sum of other extents. If `key` is not "", it names an
// open extent. Otherwise the extent is known, and `value` is its value.
struct ExtentTerm {
  std::string key;
  int64_t value = 0;
};
struct ExtentSum {
  ExtentTerm total;
  std::vector<ExtentTerm> parts;
};

// Chooses values for open extents such that the operators of a model accept them. An import with a guess either
// succeeds or stops at a node; the more nodes an import lowers before it stops, the better the guess. The search first
// varies the height and width of pictures together, then one extent after another. For an extent it tries values that
// are typical of the extent's meaning, and the operand extents of the node that failed. The number of imports and the
// number of nodes that they lower are bounded. The search uses no clock, so the choice depends only on the model.
class ExtentSearch {
 public:
  explicit ExtentSearch(const std::vector<OpenExtent>& open);

  // The guess for the next import.
  const std::map<std::string, int64_t>& guess() const { return guess_; }
  // True if another guess could avoid an error with this code.
  static bool can_help(ErrorCode code);

  // Call this after every import. Records the operators' statements about extents, which hold for every later guess.
  // Returns true if the statements change guess().
  bool learn(const std::vector<ExtentSum>& sums);

  // Call this after a failed import with guess(). Chooses another guess. Returns false if the search is over; guess()
  // then returns the guess that got furthest.
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
  bool only_empty_ = false;  // the last round, which tries only the extent 0
  std::vector<ExtentSum> sums_;
  int lessons_ = 0;
  size_t knob_ = 0, position_ = 0;
  std::vector<int64_t> values_;  // candidates for the current knob
  int rounds_ = 0, imports_ = 0;
  uint64_t nodes_ = 0;
};

}  // namespace heddle::onnx
