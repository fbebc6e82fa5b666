#include "driver/plan/number_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace heddle::driver {
namespace {

using codegen::NumberedText;
using Numbers = std::vector<int64_t>;
using Flags = std::vector<bool>;

constexpr size_t kMostLiteral = 128 << 10;  // of texts of one pattern: GCC takes some four seconds

std::pair<uint64_t, uint64_t> key_of(const NumberedText& kernel) {
  const Hash128 hash = hash_text(kernel.pattern);
  return {hash.high, hash.low};
}

void add_differing(const Numbers& a, const Numbers& b, Flags& flags) {
  HEDDLE_CHECK(a.size() == b.size() && a.size() == flags.size(),
               "kernels of one pattern have different counts of numbers");
  for (size_t i = 0; i < a.size(); ++i) flags[i] = flags[i] || a[i] != b[i];
}

void add_flags(const Flags& more, Flags& flags) {
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = flags[i] || more[i];
}

bool fits(const Numbers& form, const Flags& arguments, const Numbers& numbers) {
  HEDDLE_CHECK(form.size() == numbers.size(), "kernels of one pattern have different counts of numbers");
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!arguments[i] && form[i] != numbers[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<bool> NumberTable::arguments(const NumberedText& kernel, bool outer_is_free) {
  const auto key = key_of(kernel);
  if (watches_) {
    Watched& watched = watched_.try_emplace(key, Watched{kernel, outer_is_free, {}}).first->second;
    watched.numbers.push_back(kernel.numbers);
    return Flags(kernel.numbers.size());
  }
  Family& family = families_[key];
  const auto form = std::find_if(family.forms.begin(), family.forms.end(),
                                 [&](const Form& f) { return fits(f.numbers, f.arguments, kernel.numbers); });
  if (form != family.forms.end()) return form->arguments;
  if (family.first.empty()) {
    family.first = kernel.numbers;
    family.differs = outer_is_free ? kernel.outer : Flags(kernel.numbers.size());
  }
  Flags differs = family.differs;
  add_differing(family.first, kernel.numbers, differs);
  if (differs != family.differs) {
    family.differs = std::move(differs);
    ++version_;
  }
  return family.differs;
}

void NumberTable::watch() {
  watches_ = true;
  ++version_;  // what was written before is written again
}

NumberTable::Plan NumberTable::watched() {
  watches_ = false;
  ++version_;
  return std::exchange(watched_, {});
}

// All kernels as one text: arguments are whatever differs.
std::vector<NumberTable::Form> NumberTable::one_form(const Watched& kernels,
                                                     const std::vector<const Watched*>& others) {
  const Numbers& first = kernels.numbers.front();
  Flags flags = kernels.outer_is_free ? kernels.kernel.outer : Flags(first.size());
  for (const Numbers& numbers : kernels.numbers) add_differing(first, numbers, flags);
  for (const Watched* other : others) {
    for (const Numbers& numbers : other->numbers) add_differing(first, numbers, flags);
  }
  return {{first, std::move(flags)}};
}

// Kernels that are as fast with arguments share one text, and so do those that would be too long to compile one by one.
// Plans of another batch that have more or fewer kernels of the pattern tell nothing of the others.
std::vector<NumberTable::Form> NumberTable::forms_of(const Watched& kernels,
                                                     const std::vector<const Watched*>& others) {
  if (kernels.outer_is_free) return one_form(kernels, others);
  std::vector<Form> forms;
  size_t length = 0;
  for (size_t i = 0; i < kernels.numbers.size(); ++i) {
    Form form{kernels.numbers[i], Flags(kernels.numbers[i].size())};
    for (const Watched* other : others) {
      if (other->numbers.size() == kernels.numbers.size()) {
        add_differing(form.numbers, other->numbers[i], form.arguments);
      }
    }
    const auto is_same = [&](const Form& f) {
      return f.arguments == form.arguments && fits(f.numbers, f.arguments, form.numbers);
    };
    if (std::any_of(forms.begin(), forms.end(), is_same)) continue;
    length += kernels.kernel.pattern.size();
    if (length > kMostLiteral) return one_form(kernels, others);
    forms.push_back(std::move(form));
  }
  std::stable_sort(forms.begin(), forms.end(), [](const Form& a, const Form& b) {
    return std::count(a.arguments.begin(), a.arguments.end(), true) <
           std::count(b.arguments.begin(), b.arguments.end(), true);
  });
  return forms;
}

bool NumberTable::fits_any(const std::vector<Form>& forms, const Numbers& numbers) {
  return std::any_of(forms.begin(), forms.end(), [&](const Form& f) { return fits(f.numbers, f.arguments, numbers); });
}

// Forms that there are stay as they are, and so do the kernels that have them.
bool NumberTable::learn(const Plan& plan, const std::vector<const Plan*>& others) {
  bool any = false;
  for (const auto& [key, kernels] : plan) {
    Family& family = families_[key];
    const auto is_known = [&](const Numbers& numbers) { return fits_any(family.forms, numbers); };
    if (std::all_of(kernels.numbers.begin(), kernels.numbers.end(), is_known)) continue;
    any = true;
    std::vector<const Watched*> same;
    for (const Plan* other : others) {
      if (const auto found = other->find(key); found != other->end()) same.push_back(&found->second);
    }
    for (Form& form : forms_of(kernels, same)) family.forms.push_back(std::move(form));
    family.first = family.forms.front().numbers;
    family.differs.resize(family.first.size());
    for (const Form& form : family.forms) {
      add_flags(form.arguments, family.differs);
      add_differing(family.first, form.numbers, family.differs);
    }
  }
  ++version_;
  return any;
}

std::vector<bool> LimitedLiterals::arguments(const NumberedText& kernel, bool) {
  Family& family = families_[key_of(kernel)];
  std::vector<bool> differing = differing_.arguments(kernel, false);
  if (family.with_literals.contains(kernel.numbers)) return std::vector<bool>(kernel.numbers.size());
  if (family.length + kernel.pattern.size() > kMostLiteral) return differing;
  family.length += kernel.pattern.size();
  family.with_literals.insert(kernel.numbers);
  return std::vector<bool>(kernel.numbers.size());
}

}  // namespace heddle::driver
