#pragma once

#include <functional>
#include <optional>

#include "schedule/attention/attention.h"
#include "schedule/attention/masks/score_bounds.h"

namespace heddle::schedule {

// What is known about all scores of a box.
//   kNone        all are minus infinity
//   kNegligible  all are so far below every plain score that their exponentials are zero
//   kPlain       all are products times the scale
//   kMixed       nothing is known
enum class ScoreClass : uint8_t { kNone, kNegligible, kPlain, kMixed };

class ScoreClasses {
 public:
  ScoreClasses(AttentionDesc& d, const std::function<const Tensor*(uint32_t)>& constant)
      : d_(d), bounds_(d.scores, constant) {}

  // Returns the factor of plain scores (products times a factor). Looks for it at a few points; with the usual masks,
  // at least one of these points has a plain score. Returns nullopt if none of them does.
  std::optional<double> plain_factor();
  // Sets the scale: from now on, scores that are products times `scale` are plain. nullopt: no scores are plain.
  void set_plain(std::optional<double> scale) { plain_ = scale; }
  std::optional<double> plain() const { return plain_; }

  ScoreClass at(const Box& box);
  ScoreBounds& bounds() { return bounds_; }

 private:
  AttentionDesc& d_;
  ScoreBounds bounds_;
  std::optional<double> plain_;
};

}  // namespace heddle::schedule
