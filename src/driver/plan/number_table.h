#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/text/numbers.h"

namespace heddle::driver {

// Decides which numbers in kernel texts are arguments because they differ between the shapes of a model. All other
// numbers are literals in the text, so a kernel with its arguments is always correct for its shape, whatever this table
// has learnt. A number becomes an argument for one of two reasons:
//
// - It depends on the batch, as seen in plans of other batches that were watched along with a plan of the model. The
//   model's kernels then get forms. The arguments of a form are exactly the numbers that depend on the batch. A kernel
//   of any shape that fits a form uses that form.
// - The kernel fits no form, and the number has been seen with two different values.
class NumberTable : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool outer_is_free) override;
  // Changes whenever some kernels get more arguments than before.
  uint64_t version() const { return version_; }

  // The kernels of one plan that share a pattern. `numbers` has the numbers of each kernel, in the order in which the
  // kernels were written.
  struct Watched {
    codegen::NumberedText kernel;  // the first of these kernels
    bool outer_is_free = false;
    std::vector<std::vector<int64_t>> numbers;
  };
  using Plan = std::map<std::pair<uint64_t, uint64_t>, Watched>;
  // watch() starts recording and watched() ends it. Kernels written in between are recorded as one plan, with literals
  // only.
  void watch();
  Plan watched();
  // Gives forms to those kernels of `plan` that fit no form yet, by comparing them with the corresponding kernels in
  // `others`, which are plans for other batches. Returns true if any kernel needed a new form.
  bool learn(const Plan& plan, const std::vector<const Plan*>& others);

 private:
  struct Form {
    std::vector<int64_t> numbers;
    std::vector<bool> arguments;
  };
  struct Family {
    std::vector<Form> forms;  // if a kernel fits several forms, it uses the first of them
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

// Decides which numbers are arguments in the kernels of one plan. Literals make kernels faster, but kernels that differ
// in literals are compiled separately. So the kernels of one pattern get literals until the total length of their texts
// reaches a limit, chosen so that compiling takes seconds. Later kernels of the pattern share texts with arguments.
class LimitedLiterals : public codegen::NumberChoice {
 public:
  std::vector<bool> arguments(const codegen::NumberedText& kernel, bool outer_is_free) override;

 private:
  struct Family {
    size_t length = 0;                             // total length of the texts with literals
    std::set<std::vector<int64_t>> with_literals;  // the numbers of these texts
  };
  std::map<std::pair<uint64_t, uint64_t>, Family> families_;
  NumberTable differing_;
};

}  // namespace heddle::driver
