#include "lang/ir/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/near_miss.h"
#include "lang/ir/rules.h"

namespace heddle::lang {
namespace {

// Of the largest tile: what a block of threads or a core can hold is less; types beyond it are mistakes.
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr size_t kMostRank = 8;
// Of all regions: what unrolls to more takes compilers minutes. heddle/tile/ir.py has the same number.
constexpr int kMostOps = 1 << 16;

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), defined_(kernel.values.size()) {}

  void run() {
    for (const Kernel::Parameter& parameter : kernel_.parameters) define(parameter.value, nullptr);
    int ops = 0;
    for_each_op(kernel_.body, [&](const Op&) { ++ops; });
    if (ops > kMostOps) {
      heddle::fail(ErrorCode::kLimit, fmt::format("kernel @{}", kernel_.name),
                   fmt::format("it has {} operations, {} are the most", ops, kMostOps),
                   "Unroll less (tl.range in place of tl.static_range), or split the kernel");
    }
    visit(kernel_.body, false);
  }

 private:
  [[noreturn]] void fail(const Op& op, std::string why) const { fail_at(kernel_, op, std::move(why)); }

  void check_type(const Type& type, const Op* op) const {
    int64_t elements = 1;
    bool fits = type.shape.size() <= kMostRank;
    for (const int64_t extent : type.shape) {
      fits = fits && extent >= 1 && extent <= kMostElements && (elements *= extent) <= kMostElements;
    }
    if (fits) return;
    const std::string why =
        fmt::format("{} is too large: {} elements and {} axes are the most", to_string(type), kMostElements, kMostRank);
    if (op != nullptr) fail(*op, why);
    heddle::fail(ErrorCode::kInvalidIr, fmt::format("kernel @{}", kernel_.name), why);
  }

  void define(ValueId value, const Op* op) {
    check_type(kernel_.type(value), op);
    defined_[static_cast<size_t>(value)] = true;
    scope_.push_back(value);
  }

  void check_attributes(const Op& op, const OpInfo& info) const {
    using Kind = AttributeInfo::Kind;
    for (const auto& [name, value] : op.attributes.all()) {
      const auto known = std::find_if(info.attributes.begin(), info.attributes.end(),
                                      [&, &key = name](const AttributeInfo& a) { return a.name == key; });
      if (known == info.attributes.end()) {
        std::vector<std::string_view> names;
        for (const AttributeInfo& a : info.attributes) names.push_back(a.name);
        fail(op, fmt::format("it has no attribute {}; {}it has: {}", name, did_you_mean(name, names),
                             names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
      }
      using Is = Attribute::Kind;
      bool fits = false;
      switch (known->kind) {
        case Kind::kInt:
          fits = value.kind == Is::kInteger && !value.beyond_signed;
          break;
        case Kind::kList:
          fits = value.kind == Is::kList || (value.kind == Is::kInteger && !value.beyond_signed);
          break;
        case Kind::kNumber:
        case Kind::kValue:
          fits = value.kind == Is::kInteger || value.kind == Is::kNumber;
          break;
        case Kind::kString:
          fits = value.kind == Is::kString;
          break;
        case Kind::kWord:
          fits = (value.kind == Is::kWord || value.kind == Is::kNumber) &&
                 std::find(known->words.begin(), known->words.end(), value.text) != known->words.end();
          if (!fits) fail(op, fmt::format("its attribute {} is one of {}", name, fmt::join(known->words, ", ")));
          break;
      }
      if (!fits) fail(op, fmt::format("its attribute {} is of another kind", name));
    }
    for (const AttributeInfo& a : info.attributes) {
      if (a.needed && op.attributes.find(a.name) == nullptr)
        fail(op, fmt::format("its attribute {} is missing", a.name));
    }
  }

  void visit(const Region& region, bool ends) {
    const size_t outer = scope_.size();
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const Op& op = region.ops[i];
      const bool last = ends && i + 1 == region.ops.size();
      if (info_of(op.code).has(kTerminator) != last) {
        fail(op, last ? "it ends a region, which `yield` or `condition` does" : "it may only end a region");
      }
      check(op);
    }
    leave(outer);
  }

  void leave(size_t outer) {
    while (scope_.size() > outer) {
      defined_[static_cast<size_t>(scope_.back())] = false;
      scope_.pop_back();
    }
  }

  void check(const Op& op) {
    const OpInfo& info = info_of(op.code);
    const auto count = static_cast<int>(op.operands.size());
    if (count < info.least_operands || (info.most_operands >= 0 && count > info.most_operands)) {
      fail(op, fmt::format("it has {} operands; it takes {}{}", count, info.least_operands,
                           info.most_operands < 0                     ? " or more"
                           : info.most_operands > info.least_operands ? fmt::format(" to {}", info.most_operands)
                                                                      : ""));
    }
    if (static_cast<int>(op.regions.size()) != info.regions) {
      fail(op, fmt::format("it has {} regions, it takes {}", op.regions.size(), info.regions));
    }
    for (const ValueId value : op.operands) {
      if (!defined_[static_cast<size_t>(value)]) {
        fail(op, fmt::format("{} is not defined here", kernel_.value_name(value)));
      }
    }
    check_attributes(op, info);
    for (const ValueId value : op.results) check_type(kernel_.type(value), &op);
    for (const Region& region : op.regions) {
      const size_t outer = scope_.size();
      for (const ValueId value : region.arguments) define(value, &op);
      visit(region, true);
      leave(outer);
    }
    RuleContext context(kernel_, op);
    info.rule(context);
    for (const ValueId value : op.results) define(value, &op);
  }

  const Kernel& kernel_;
  std::vector<bool> defined_;  // and in scope
  std::vector<ValueId> scope_;
};

}  // namespace

void verify(const Kernel& kernel) {
  Verifier(kernel).run();
}

}  // namespace heddle::lang
