#include "frontend/onnx/extents/extent_search.h"

#include <algorithm>
#include <utility>

namespace heddle::onnx {
namespace {

constexpr int kMostImports = 160, kMostRounds = 3;
constexpr uint64_t kMostNodes = 200'000;  // that all of them may lower; a first few are always tried
constexpr int kFewImports = 8;
constexpr int64_t kMostFromOperands = 4096;
constexpr int64_t kLowStrip = 80;  // pictures of lines of text are at most this high

// The first is the guess where nothing speaks against it.
std::vector<int64_t> typical_values(const OpenExtent& extent) {
  switch (extent.role) {
    case ExtentRole::kBatch:
      return {1, 2, 4, 8, 16, 32};
    case ExtentRole::kChannels:
      return {3, 1, 4, 2, 16, 32, 64};
    case ExtentRole::kHeight:
    case ExtentRole::kWidth: {
      std::vector<int64_t> sides = {224, 320, 256, 640, 512, 384, 416, 448, 299, 227, 192, 160, 128,
                                    112, 96,  64,  48,  40,  32,  28,  24,  16,  8,   1,   1024};
      if (extent.partner > kLowStrip) sides.insert(sides.begin(), extent.partner);
      if (extent.partner > 0 && extent.partner <= kLowStrip) sides.insert(sides.begin(), 320);
      return sides;
    }
    case ExtentRole::kSamples:
      return {16000, 512, 32000, 48000, 8000, 4096, 2048, 1024, 576, 480, 400, 256, 160, 128, 64, 1};
    case ExtentRole::kSequence:
    case ExtentRole::kOther:
      break;
  }
  return {128, 256, 64, 512, 32, 16, 8, 4, 2, 1, 77, 100, 50, 384, 1000, 1024, 2048, 4096, 16000};
}

bool is_side(const OpenExtent& extent) {
  return extent.role == ExtentRole::kHeight || extent.role == ExtentRole::kWidth;
}

void append_new(std::vector<int64_t>& values, int64_t value) {
  if (value >= 0 && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

}  // namespace

ExtentSearch::ExtentSearch(const std::vector<OpenExtent>& open) {
  std::map<std::string, std::vector<const OpenExtent*>> pictures;  // by input
  std::vector<Knob> batches;
  for (const OpenExtent& extent : open) {
    Knob knob{{extent.key}, typical_values(extent)};
    guess_[extent.key] = knob.values.front();
    if (is_side(extent)) pictures[extent.input].push_back(&extent);
    (extent.role == ExtentRole::kBatch ? batches : knobs_).push_back(std::move(knob));
  }
  // Batches are seldom the cause; pictures are mostly square.
  knobs_.insert(knobs_.end(), batches.begin(), batches.end());
  for (const auto& [input, sides] : pictures) {
    if (sides.size() == 2) {
      knobs_.insert(knobs_.begin(), Knob{{sides[0]->key, sides[1]->key}, typical_values(*sides[0])});
    }
  }
  best_ = guess_;
}

bool ExtentSearch::can_help(ErrorCode code) {
  return code == ErrorCode::kInvalidNode || code == ErrorCode::kUnknownShape ||
         code == ErrorCode::kUnsupportedOperator || code == ErrorCode::kOutOfMemory ||
         code == ErrorCode::kValueOutOfRange;
}

void ExtentSearch::note(const Progress& progress) {
  ++imports_;
  nodes_ += progress.nodes;
  if (!first_ && progress.nodes <= best_progress_.nodes) return;
  improved_ = improved_ || !first_;
  first_ = false;
  best_ = guess_;
  best_progress_ = progress;
}

// Extents of the operands that did not fit come first where they are small: often one must equal another. Sums and
// differences of what the other extents are join tensors that grow.
std::vector<int64_t> ExtentSearch::candidates(const Knob& knob) const {
  std::vector<int64_t> values;
  for (const int64_t extent : best_progress_.extents) {
    if (extent > 1 && extent <= kMostFromOperands) append_new(values, extent);
  }
  constexpr size_t kMostFirst = 6;
  if (values.size() > kMostFirst) values.resize(kMostFirst);
  for (const int64_t value : knob.values) append_new(values, value);
  for (const auto& [one, a] : best_) {
    for (const auto& [other, b] : best_) {
      if (one == knob.keys[0] || other == knob.keys[0] || values.size() > 2 * knob.values.size() + kMostFirst) continue;
      append_new(values, a + b);
      append_new(values, a - b);
    }
  }
  return values;
}

bool ExtentSearch::advance() {
  while (imports_ < kMostImports && (nodes_ < kMostNodes || imports_ < kFewImports)) {
    if (position_ == values_.size()) {  // this knob is through, or none was begun
      if (!values_.empty() && ++knob_ == knobs_.size()) {
        knob_ = 0;
        if (!improved_ || ++rounds_ == kMostRounds) return false;
        improved_ = false;
      }
      values_ = candidates(knobs_[knob_]);
      position_ = 0;
    }
    guess_ = best_;
    bool changed = false;
    const int64_t value = values_[position_++];
    for (const std::string& key : knobs_[knob_].keys) changed = std::exchange(guess_[key], value) != value || changed;
    if (changed) return true;
  }
  return false;
}

bool ExtentSearch::next(const Progress& progress) {
  note(progress);
  if (!knobs_.empty() && advance()) return true;
  guess_ = best_;
  return false;
}

}  // namespace heddle::onnx
