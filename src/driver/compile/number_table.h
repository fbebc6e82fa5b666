#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/text/numbers.h"

namespace heddle::driver {

// Which numbers of kernels differ between the shapes of a model, learnt from the kernels of each shape: a number
// becomes an argument when it was seen with two values, so kernels of further shapes mostly are kernels that exist.
// Whatever was learnt, a kernel with its arguments is the kernel of its shape, since all other numbers are in its text.
class NumberTable : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const std::string& pattern, std::span<const int64_t> numbers) override;
  // Another one whenever kernels are told more than before.
  uint64_t version() const { return version_; }

 private:
  struct Family {
    std::vector<int64_t> first;
    std::vector<bool> differs;
  };
  std::map<std::pair<uint64_t, uint64_t>, Family> families_;
  uint64_t version_ = 0;
};

// Which numbers of the kernels of one plan are arguments. Literals make the faster kernels, but texts that differ in
// them are compiled one by one: those of one pattern have literals up to a total length that compiles within seconds,
// and what comes later shares texts with arguments.
class LimitedLiterals : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const std::string& pattern, std::span<const int64_t> numbers) override;

 private:
  struct Family {
    size_t length = 0;                             // of the texts with literals
    std::set<std::vector<int64_t>> with_literals;  // numbers of these
  };
  std::map<std::pair<uint64_t, uint64_t>, Family> families_;
  NumberTable differing_;
};

}  // namespace heddle::driver
