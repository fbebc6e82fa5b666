#include "frontend/onnx/extents/extent_search.h"

#include <algorithm>
#include <utility>

namespace heddle::onnx {
namespace {

constexpr int kMostImports = 160, kMostRounds = 3, kMostLessons = 32;
constexpr size_t kMostEmpty = 16;
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
      if (a != b) append_new(values, a - b);
    }
  }
  return values;
}

// Derives one open term of each sum from the others: the total, else the first part, such as the length of a cache
// before new elements join it.
void ExtentSearch::settle() {
  constexpr int kMostPasses = 4;
  const auto value = [&](const ExtentTerm& term) { return term.key.empty() ? term.value : guess_.at(term.key); };
  for (int pass = 0; pass < kMostPasses; ++pass) {
    for (const ExtentSum& sum : sums_) {
      int64_t parts = 0;
      for (const ExtentTerm& part : sum.parts) parts += value(part);
      if (!sum.total.key.empty()) {
        guess_[sum.total.key] = parts;
        continue;
      }
      int64_t surplus = parts - sum.total.value;
      for (auto part = sum.parts.rbegin(); part != sum.parts.rend() && surplus != 0; ++part) {
        if (part->key.empty()) continue;
        int64_t& extent = guess_[part->key];
        const bool is_last = std::none_of(part + 1, sum.parts.rend(), [](const auto& p) { return !p.key.empty(); });
        // A part longer than the total leaves half of the total to the parts before it.
        const int64_t wanted = is_last                    ? std::max<int64_t>(extent - surplus, 0)
                               : extent < sum.total.value ? extent
                                                          : std::max<int64_t>(sum.total.value / 2, 1);
        surplus -= extent - wanted;
        extent = wanted;
      }
    }
  }
}

bool ExtentSearch::learn(const std::vector<ExtentSum>& sums) {
  if (sums.empty() || lessons_ == kMostLessons) return false;
  for (const ExtentSum& sum : sums) {
    const auto is_open = [&](const ExtentTerm& term) { return guess_.contains(term.key); };
    const auto is_total = [&](const ExtentTerm& term) { return is_open(term) && term.key == sum.total.key; };
    if (!is_open(sum.total) && std::none_of(sum.parts.begin(), sum.parts.end(), is_open)) continue;
    if (std::any_of(sum.parts.begin(), sum.parts.end(), is_total)) continue;
    // Fixed terms have their values from the last import.
    const auto keys = [](const ExtentSum& s) {
      std::vector<std::string> all{s.total.key};
      for (const ExtentTerm& part : s.parts) all.push_back(part.key);
      return all;
    };
    std::erase_if(sums_, [&](const ExtentSum& known) { return keys(known) == keys(sum); });
    sums_.push_back(sum);
  }
  const std::map<std::string, int64_t> before = guess_;
  settle();
  if (guess_ == before) return false;
  ++lessons_;
  return true;
}

// After the last knob: true if all of them are varied once more. The last round tries extents of 0, which operators
// often accept although the model is not meant for them.
bool ExtentSearch::begin_round() {
  knob_ = position_ = 0;
  values_.clear();
  const bool again = std::exchange(improved_, false) && ++rounds_ < kMostRounds && !only_empty_;
  return again || !std::exchange(only_empty_, true);
}

bool ExtentSearch::is_spent() const {
  if (only_empty_) return false;  // one import for each of the first few knobs
  return imports_ >= kMostImports || (nodes_ >= kMostNodes && imports_ >= kFewImports);
}

bool ExtentSearch::advance() {
  for (;;) {
    if (position_ == values_.size()) {  // this knob is through, or none was begun
      if (!values_.empty()) ++knob_;
      const size_t count = only_empty_ ? std::min(knobs_.size(), kMostEmpty) : knobs_.size();
      if ((knob_ >= count || is_spent()) && !begin_round()) return false;
      values_ = only_empty_ ? std::vector<int64_t>{0} : candidates(knobs_[knob_]);
      position_ = 0;
    }
    if (is_spent()) {
      position_ = values_.size();
      improved_ = false;
      continue;
    }
    guess_ = best_;
    const int64_t value = values_[position_++];
    for (const std::string& key : knobs_[knob_].keys) guess_[key] = value;
    if (guess_ == best_) continue;
    settle();
    if (guess_ != best_) return true;
  }
}

bool ExtentSearch::next(const Progress& progress) {
  note(progress);
  if (!knobs_.empty() && advance()) return true;
  guess_ = best_;
  return false;
}

}  // namespace heddle::onnx
