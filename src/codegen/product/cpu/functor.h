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

// Writes the numbers of a problem into its kernel's text in one of three forms: as literals, as elements of an array
// argument (so that problems of different sizes share one kernel), or as marks (placeholders). In the first two forms,
// operand offsets may still be marks.
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
  // Returns the text that advances a pointer to the part of an operand that the kernel uses: " + 512".
  std::string place(int64_t value) {
    const std::string literal = value == 0 ? "" : fmt::format(" + {}", value);
    if (form_ == Form::kShared && marks_places_) return " + " + shared_value(marked_always(value));
    if (form_ == Form::kShared && value != 0) return " + " + (*this)(value);
    return marks_places_ ? choice(value, literal, " + {}") : literal;
  }
  // Writes a stride, or an extent that is often 1. The values 0 and 1 stay literals, which the compiler folds.
  std::string folded(int64_t value) { return value == 0 || value == 1 ? fmt::format("{}", value) : (*this)(value); }
  // Writes initialisers: ".m = 12, .n = s[3]".
  std::string fields(std::initializer_list<std::pair<const char*, int64_t>> fields) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : fields) texts.push_back(fmt::format(".{} = {}", name, (*this)(value)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  // Writes an extent or stride of a batch. In form kMarked, 0 and 1 are also marked instead of becoming literals, since
  // this extent or stride has other values for other shapes.
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

// Returns the text of a typed pointer to an operand: "static_cast<const float*>(operands[2])".
std::string argument(const schedule::KernelDesc& desc, uint32_t operand);
// Returns the initialisers of a functor's members, in the order of their declaration.
std::string initialisers(const schedule::KernelDesc& desc, const FunctorMembers& members, Sizes& sizes);

// Creates an emitter for the body of a functor's member function. The body is still empty.
ScalarEmitter body_emitter(const schedule::ExprPool& pool, Names names, const FunctorMembers& members, Writer& out);

// True if the lanes of a vector are consecutive rows of one column (kAlongRows in tile/kernel/cpu/gemm.h). This is the
// case if results of neighbouring rows are adjacent in memory and results of neighbouring columns are not.
bool runs_along_rows(const schedule::Epilogue& e);

// write_epilogue() and write_scores() write a functor and return its members. write_epilogue() writes the epilogue of a
// product (tile/kernel/cpu/gemm.h); with_lines adds the member `lines`. write_scores() writes the scores of attention
// (tile/kernel/cpu/attention.h); a score is the value of the only store of `e`.
FunctorMembers write_epilogue(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                              const Sizes& sizes, bool with_lines, bool along_rows = false);
FunctorMembers write_scores(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                            const Sizes& sizes);
// Writes the functor for the attention sink and returns its members. The sink is the value of the only store of `e`.
FunctorMembers write_sink(Writer& out, const schedule::KernelDesc& desc, const schedule::Epilogue& e,
                          const Sizes& sizes);

}  // namespace heddle::codegen
