#pragma once

#include <functional>
#include <optional>

#include "schedule/attention/attention.h"
#include "schedule/attention/masks/score_bounds.h"

namespace heddle::schedule {

// The class of all scores of a box: minus infinity; so far below every plain score that their exponentials are zero;
// products times the scale; anything.
enum class ScoreClass : uint8_t { kNone, kNegligible, kPlain, kMixed };

class ScoreClasses {
 public:
  ScoreClasses(AttentionDesc& d, const std::function<const Tensor*(uint32_t)>& constant)
      : d_(d), bounds_(d.scores, constant) {}

  // The factor of plain scores, found at one of a few points: usual masks leave at least one of these plain. nullopt:
  // none is.
  std::optional<double> plain_factor();
  // From now on, products times `scale` are plain; nullopt: none are.
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
