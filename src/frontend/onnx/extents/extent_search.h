#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/extents/extents.h"
#include "heddle/error.h"

namespace heddle::onnx {

// How far an import with some guess came.
struct Progress {
  uint64_t nodes = 0;            // lowered before the one that failed
  std::vector<int64_t> extents;  // of the operands of that one
};

// An operator's statement that one extent of its operands is the sum of others. `key` names an open extent; "" means a
// fixed one, which is `value`.
struct ExtentTerm {
  std::string key;
  int64_t value = 0;
};
struct ExtentSum {
  ExtentTerm total;
  std::vector<ExtentTerm> parts;
};

// Chooses values for open extents that the operators of a model accept. Importing with a guess either succeeds or stops
// at a node; a guess that comes further is better. Extents are varied one after another, the sides of a picture
// together first, through values that are typical of what they count and through extents of the operands that did not
// fit. The number of imports and of nodes that they lower is bounded, and no clock decides, so that the choice depends
// on nothing but the model.
class ExtentSearch {
 public:
  explicit ExtentSearch(const std::vector<OpenExtent>& open);

  // What to import with next.
  const std::map<std::string, int64_t>& guess() const { return guess_; }
  // Whether another guess could help against an error of this code.
  static bool can_help(ErrorCode code);

  // Call it after every import: takes what the operators said of the extents, which holds for every later guess. True
  // if that changes guess().
  bool learn(const std::vector<ExtentSum>& sums);

  // After an import with guess() that failed: moves on to another guess. False where the search is over; guess() is
  // then the one that came furthest.
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
  std::vector<int64_t> values_;  // of the knob that is being varied
  int rounds_ = 0, imports_ = 0;
  uint64_t nodes_ = 0;
};

}  // namespace heddle::onnx
