#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file/file.h"
#include "heddle/model.h"

namespace heddle::test {

// A tensor that is normalised over some of its dimensions.
struct Normalized {
  Shape shape;
  std::vector<int64_t> dims;
  const char* rounded = "f32";  // the type that its values have been rounded to
};

// (x - mean) / sqrt(variance + epsilon), as exporters write it, of x rounded to a type.
inline std::string normalization_text(const std::vector<Normalized>& cases) {
  std::string parameters, nodes, results;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Normalized& c = cases[i];
    Shape kept;
    std::vector<int64_t> kept_dims;
    int64_t count = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(c.shape.size()); ++d) {
      const bool reduced = std::count(c.dims.begin(), c.dims.end(), d) > 0;
      if (reduced) count *= c.shape[static_cast<size_t>(d)];
      if (!reduced) kept.push_back(c.shape[static_cast<size_t>(d)]), kept_dims.push_back(d);
    }
    parameters += fmt::format("{}%x{}: f32[{}]", i > 0 ? ", " : "", i, fmt::join(c.shape, ","));
    results += fmt::format("{}\"y{}\" = %y{}", i > 0 ? ", " : "", i, i);
    const std::string spread =
        fmt::format("{{shape = [{}], dims = [{}]}}", fmt::join(c.shape, ","), fmt::join(kept_dims, ","));
    const std::string all = fmt::format("{{shape = [{}], dims = []}}", fmt::join(kept, ","));
    nodes += fmt::format(R"(
  %h{0} = cast(%x{0}) {{to = {4}}}
  %w{0} = cast(%h{0}) {{to = f32}}
  %n{0} = constant {{value = f32[]{{{1}}}}}
  %c{0} = broadcast(%n{0}) {2}
  %s{0} = reduce(%w{0}) {{kind = "sum", dims = [{5}]}}
  %m{0} = div(%s{0}, %c{0})
  %b{0} = broadcast(%m{0}) {3}
  %d{0} = sub(%w{0}, %b{0})
  %q{0} = mul(%d{0}, %d{0})
  %t{0} = reduce(%q{0}) {{kind = "sum", dims = [{5}]}}
  %v{0} = div(%t{0}, %c{0})
  %e{0} = constant {{value = f32[]{{0.00001}}}}
  %f{0} = broadcast(%e{0}) {2}
  %g{0} = add(%v{0}, %f{0})
  %r{0} = rsqrt(%g{0})
  %k{0} = broadcast(%r{0}) {3}
  %y{0} = mul(%d{0}, %k{0}))",
                         i, count, all, spread, c.rounded, fmt::join(c.dims, ","));
  }
  return fmt::format("graph({}) {{{}\n  return {}\n}}\n", parameters, nodes, results);
}

// Normalisations of equal values are zero, whatever the values and how many there are: neither the sum nor the
// quotient of a mean need be representable.
inline void expect_equal_values_vanish(const std::vector<Normalized>& cases, const CompileOptions& options) {
  const TempDir folder;
  const std::string path = folder.path() + "/m.hir";
  write_file(path, normalization_text(cases));
  const Model model = Model::load(path, options);
  for (const float value : {1234.567F, 0.1F, -3.3e-3F, 65001.0F / 3}) {
    std::map<std::string, Tensor> inputs;
    for (size_t i = 0; i < cases.size(); ++i) {
      Tensor x(DType::kF32, cases[i].shape);
      std::ranges::fill(x.mutable_values<float>(), value);
      inputs.emplace(fmt::format("x{}", i), std::move(x));
    }
    const std::vector<Tensor> outputs = model.run(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (const float y : outputs[i].values<float>()) {
        ASSERT_EQ(y, 0) << value << " in f32" << to_string(cases[i].shape) << " rounded to " << cases[i].rounded;
      }
    }
  }
}

}  // namespace heddle::test
