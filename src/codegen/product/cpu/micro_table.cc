#include "codegen/product/cpu/micro_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/text/numbers.h"
#include "schedule/product/blocking.h"
#include "schedule/product/contraction_builder.h"

namespace heddle::codegen {
namespace {

class Tables {
 public:
  Tables(const MicroProblem& problem, const Target& target, bool marked)
      : p_(problem),
        matrices_(schedule::uses_matrices(target, p_.words, p_.rows)),
        heights_(schedule::common_heights(schedule::micro_rows(target, p_.words, p_.rows))),
        marked_(marked) {
    result_.type = fmt::format("tile::MicroKernels<{}, {}>", p_.compute, p_.stored);
  }

  MicroTables run(int64_t height, int64_t vectors) {
    const int64_t tail = p_.columns % (vectors * p_.lanes);
    const bool is_narrow = p_.has_narrow && vectors > 1 && tail > 0 && tail <= p_.lanes;
    const bool any = marked_ && p_.has_narrow && vectors > 1 && p_.any_columns;
    result_.value = of_height(height, vectors);
    result_.arguments = fmt::format("{}", vectors);
    if (is_narrow || any) {
      result_.value = fmt::format("tile::with_narrow({}, {})", result_.value, of_height(height, 1));
      result_.arguments += ", " + (any ? choice(p_.columns, is_narrow ? "true" : "false", "true") : "true");
    }
    return std::move(result_);
  }

 private:
  std::string of_height(int64_t height, int64_t vectors) {
    if (!marked_ || std::find(heights_.begin(), heights_.end(), height) == heights_.end()) return add(height, vectors);
    std::vector<std::string> names;
    for (const int64_t other : heights_) names.push_back(add(other, vectors));
    const std::string chosen = fmt::format("tile::of_height({{}}, {})", fmt::join(names, ", "));
    return choice(height, name(height, vectors), chosen);
  }

  std::string name(int64_t height, int64_t vectors) const {
    std::string name =
        fmt::format("{}_{}_{}_{}x{}", matrices_ ? "matrix" : "micro", p_.compute, p_.stored, height, vectors);
    for (size_t at = name.find("::"); at != std::string::npos; at = name.find("::")) name.replace(at, 2, "_");
    return name;
  }

  // Each unit may define a table, so definitions are weak; declarations are not, so that one that is missing shows when
  // units are linked.
  std::string add(int64_t height, int64_t vectors) {
    KernelText text;
    text.symbol = name(height, vectors);
    text.includes = {matrices_ ? "tile/kernel/cpu/micro_matrix.h" : "tile/kernel/cpu/micro.h"};
    const std::string kernels =
        matrices_ ? fmt::format("matrix_kernels<{}, {}, {}>", p_.stored, height, vectors)
                  : fmt::format("micro_kernels<{}, {}, {}, {}>", p_.compute, p_.stored, height, vectors);
    text.text =
        fmt::format("extern \"C\" __attribute__((weak, noipa, visibility(\"hidden\"))) const {} {} = tile::{}();\n",
                    result_.type, text.symbol, kernels);
    text.declaration =
        fmt::format("extern \"C\" __attribute__((visibility(\"hidden\"))) const {} {};\n", result_.type, text.symbol);
    result_.texts.push_back(std::move(text));
    return result_.texts.back().symbol;
  }

  const MicroProblem& p_;
  const bool matrices_;
  const std::vector<int64_t> heights_;
  const bool marked_;
  MicroTables result_;
};

}  // namespace

MicroTables micro_tables(const MicroProblem& problem, int64_t micro_m, int64_t micro_n, const Target& target,
                         bool marked) {
  return Tables(problem, target, marked).run(micro_m, micro_n / problem.lanes);
}

void declare_others(KernelSource& source) {
  std::string declarations;
  std::erase_if(source.others, [&](const KernelText& other) {
    if (other.declaration.empty()) return false;
    if (source.text.find(other.symbol) == std::string::npos) return true;
    declarations += other.declaration;
    return false;
  });
  source.text = declarations + source.text;
}

}  // namespace heddle::codegen
