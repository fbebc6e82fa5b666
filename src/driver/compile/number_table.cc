#include "driver/compile/number_table.h"

#include "base/check.h"
#include "base/hash.h"

namespace heddle::driver {

std::vector<bool> NumberTable::arguments(const std::string& pattern, std::span<const int64_t> numbers) {
  const Hash128 hash = hash_text(pattern);
  Family& family = families_[{hash.high, hash.low}];
  if (family.first.empty()) {
    family.first.assign(numbers.begin(), numbers.end());
    family.differs.resize(numbers.size());
  }
  HEDDLE_CHECK(family.first.size() == numbers.size(), "kernels of one pattern have different counts of numbers");
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == family.first[i] || family.differs[i]) continue;
    family.differs[i] = true;
    ++version_;
  }
  return family.differs;
}

std::vector<bool> LimitedLiterals::arguments(const std::string& pattern, std::span<const int64_t> numbers) {
  constexpr size_t kMostLiteral = 128 << 10;  // of one pattern: GCC takes some four seconds
  const Hash128 hash = hash_text(pattern);
  Family& family = families_[{hash.high, hash.low}];
  std::vector<bool> differing = differing_.arguments(pattern, numbers);
  std::vector<int64_t> own(numbers.begin(), numbers.end());
  if (family.with_literals.contains(own)) return std::vector<bool>(numbers.size());
  if (family.length + pattern.size() > kMostLiteral) return differing;
  family.length += pattern.size();
  family.with_literals.insert(std::move(own));
  return std::vector<bool>(numbers.size());
}

}  // namespace heddle::driver
