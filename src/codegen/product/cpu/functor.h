#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "codegen/names.h"
#include "codegen/scalar/functor_members.h"
#include "codegen/scalar/scalar.h"
#include "codegen/text/numbers.h"
#include "codegen/text/writer.h"

namespace heddle::codegen {

// Writes the numbers of a problem in its kernel's text: as literals, as elements of an array argument (so that problems
// of different sizes share one kernel), or with marks. In the first two forms, the places of operands may still be
// marked.
class Sizes {
 public:
  enum class Form : uint8_t { kLiteral, kShared, kMarked };
  explicit Sizes(Form form, bool marks_places = false)
      : form_(form), marks_places_(marks_places || form == Form::kMarked) {}

  bool shared() const { return form_ == Form::kShared; }
  bool marked() const { return form_ == Form::kMarked; }
  bool marks_places() const { return marks_places_; }
  const std::vector<std::string>& values() const { return values_; }
  std::string operator()(int64_t value) {
    if (form_ == Form::kMarked) return marked_always(value);
    if (form_ == Form::kLiteral) return fmt::format("{}", value);
    return shared_value(fmt::format("{}", value));
  }
  // The text that moves a pointer to where a kernel's part of an operand begins: " + 512".
  std::string place(int64_t value) {
    const std::string literal = value == 0 ? "" : fmt::format(" + {}", value);
    if (form_ == Form::kShared && marks_places_) return " + " + shared_value(marked_always(value));
    if (form_ == Form::kShared && value != 0) return " + " + (*this)(value);
    return marks_places_ ? choice(value, literal, " + {}") : literal;
  }
  // A stride, or an extent that is often 1. Values of 0 and 1 stay literals, which the compiler folds.
  std::string folded(int64_t value) { return value == 0 || value == 1 ? fmt::format("{}", value) : (*this)(value); }
  // ".m = 12, .n = s[3]"
  std::string fields(std::initializer_list<std::pair<const char*, int64_t>> fields) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : fields) texts.push_back(fmt::format(".{} = {}", name, (*this)(value)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  // Extents and strides of a batch. They may be 1 and 0 in one shape only, so marked texts do not fold them.
  std::string of_batch(int64_t value) { return marked() ? (*this)(value) : folded(value); }
  template <size_t N>
  std::string batch(const int64_t (&values)[N]) {
    std::vector<std::string> texts;
    for (const int64_t value : values) texts.push_back(of_batch(value));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  }
  template <size_t N>
  std::string list(const int64_t (&values)[N]) {
    std::vector<std::string> texts;
    for (const int64_t value : values) texts.push_back(folded(value));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  }

 private:
  std::string shared_value(std::string value) {
    values_.push_back(std::move(value));
    return fmt::format("s[{}]", values_.size() - 1);
  }

  Form form_;
  bool marks_places_;
  std::vector<std::string> values_;
};

// "static_cast<const float*>(operands[2])"
std::string argument(const schedule::KernelDesc& desc, uint32_t operand);
// The members of a functor in the order in which they are declared.
std::string initialisers(const schedule::KernelDesc& desc, const FunctorMembers& members, Sizes& sizes);

// An emitter for the body of a functor's member function, of which nothing is written yet.
ScalarEmitter body_emitter(const schedule::ExprPool& pool, Names names, const FunctorMembers& members, Writer& out);

// True if lanes run along the rows (kAlongRows in tile/kernel/cpu/gemm.h): results of neighbouring rows are adjacent in
// memory, those of neighbouring columns are not.
bool runs_along_rows(const schedule::Epilogue& e);

// These write functors and return their members. write_epilogue(): the epilogue of a product (tile/kernel/cpu/gemm.h),
// with its member `lines` if the kernel asks for it. write_scores(): the scores of attention
// (tile/kernel/cpu/attention.h), the value of the only store.
FunctorMembers write_epilogue(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                              const Sizes& sizes, bool with_lines, bool along_rows = false);
FunctorMembers write_scores(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                            const Sizes& sizes);
// The sink of attention, the value of the only store.
FunctorMembers write_sink(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                          const Sizes& sizes);

}  // namespace heddle::codegen
