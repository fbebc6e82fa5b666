#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lang/cpu/launch/kernel.h"
#include "lang/interpret/interpret.h"

namespace heddle::lang::testing {

// "tile_ir 2 ... kernel @NAME(PARAMETERS) { BODY }"
std::string kernel_text(std::string_view parameters, std::string_view body, std::string_view name = "k");

// An argument: an array of elements or a scalar.
struct Operand {
  Element element = Element::kF32;
  std::vector<double> values;  // what it holds at first
  bool is_array = true;
  double scalar = 0;
};
Operand random_array(std::mt19937& random, Element element, int64_t count, double low = -4, double high = 4);
Operand filled(Element element, int64_t count, double value);
Operand scalar(double value);

struct Case {
  std::string name, text;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::vector<Operand> operands;
  double tolerance = 0;  // relative to the larger of 1 and the result
};

// What the interpreter leaves in each array; sentinels around the arrays stay.
std::vector<std::vector<double>> interpreted(const Case& c);
// The arrays of a case as they lie in memory, one for each operand; what there is of a scalar is empty.
std::vector<std::vector<uint8_t>> encoded(const Case& c);
// The numbers in an array of that form.
std::vector<double> decoded(Element element, const std::vector<uint8_t>& bytes);
// Fails where an array is not what the interpreter leaves. `text`: of the kernel, for the message.
void expect_close(const Case& c, const std::vector<std::vector<double>>& want,
                  const std::vector<std::vector<double>>& got, const std::string& text);
// $NAME as a number.
unsigned variable(const char* name, unsigned otherwise);
// Compiles all cases as one library and compares what each leaves with the interpreter's.
void expect_same(const std::vector<Case>& cases);

ThreadPool& pool();

}  // namespace heddle::lang::testing
