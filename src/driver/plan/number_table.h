#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/text/numbers.h"

namespace heddle::driver {

// The numbers of kernels that differ between the shapes of a model. A kernel with its arguments is correct for its
// shape whatever was learnt, since all other numbers are in its text. Two sources decide which numbers are arguments:
//
// - Plans of other batches that were watched beside a plan of the model. The model's kernels get forms, whose arguments
//   are exactly the numbers that depend on the batch. A kernel of any shape that fits a form takes it.
// - Elsewhere a number becomes an argument when it was seen with two values.
class NumberTable : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool outer_is_free) override;
  // Changes whenever kernels get more arguments than before.
  uint64_t version() const { return version_; }

  // The kernels of one plan: their numbers by pattern, in order.
  struct Watched {
    codegen::NumberedText kernel;  // the first
    bool outer_is_free = false;
    std::vector<std::vector<int64_t>> numbers;
  };
  using Plan = std::map<std::pair<uint64_t, uint64_t>, Watched>;
  // Until watched() is called, kernels are recorded as those of one plan and have literals.
  void watch();
  Plan watched();
  // Gives forms to the kernels of `plan` that fit none, by comparison with the same kernels in `others`, plans of other
  // batches. Returns true if there was any such kernel.
  bool learn(const Plan& plan, const std::vector<const Plan*>& others);

 private:
  struct Form {
    std::vector<int64_t> numbers;
    std::vector<bool> arguments;
  };
  struct Family {
    std::vector<Form> forms;  // a kernel that several fit takes the first
    std::vector<int64_t> first;
    std::vector<bool> differs;
  };
  static bool fits_any(const std::vector<Form>& forms, const std::vector<int64_t>& numbers);
  static std::vector<Form> forms_of(const Watched& kernels, const std::vector<const Watched*>& others);
  static std::vector<Form> one_form(const Watched& kernels, const std::vector<const Watched*>& others);

  std::map<std::pair<uint64_t, uint64_t>, Family> families_;
  uint64_t version_ = 0;
  bool watches_ = false;
  Plan watched_;
};

// Decides which numbers are arguments in the kernels of one plan. Literals make the faster kernels, but texts that
// differ in them are compiled one by one. So the texts of one pattern have literals up to a total length that compiles
// within seconds. Later kernels share texts with arguments.
class LimitedLiterals : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool outer_is_free) override;

 private:
  struct Family {
    size_t length = 0;                             // of the texts with literals
    std::set<std::vector<int64_t>> with_literals;  // numbers of these
  };
  std::map<std::pair<uint64_t, uint64_t>, Family> families_;
  NumberTable differing_;
};

}  // namespace heddle::driver
