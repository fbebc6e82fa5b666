#include "ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "array.h"
#include "attention.h"
#include "base/check.h"
#include "errors.h"
#include "gpu_operand.h"
#include "heddle/ops.h"
#include "interrupt.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

constexpr const char* kGemmWhere = "heddle.ops.gemm";

[[noreturn]] void refuse_operand(const std::string& name, const std::string& why, const std::string& remedy = {}) {
  fail(ErrorCode::kInvalidInput, fmt::format("{}: {}", kGemmWhere, name), why, remedy);
}

// A matrix, or equal ones one behind another, as the client API counts them.
struct Matrix {
  int64_t batch = 1, rows = 0, columns = 0, leading = 0, stride = 0;
  bool transposed = false;  // its columns are dense instead of its rows
};

// `may_transpose`: a view like x.T is taken as it is.
Matrix matrix_of(const Array& array, const std::string& name, bool may_transpose, const Family& family) {
  const size_t rank = array.shape.size();
  if (rank != 2 && rank != 3) {
    refuse_operand(
        name, fmt::format("its shape is {}, a matrix has two extents, a batch of them three", to_string(array.shape)));
  }
  const std::vector<int64_t> strides = strides_of(array);
  Matrix m;
  m.batch = rank == 3 ? array.shape[0] : 1;
  m.rows = array.shape[rank - 2];
  m.columns = array.shape[rank - 1];
  m.stride = rank == 3 ? strides[0] : 0;
  const int64_t down = strides[rank - 2], across = strides[rank - 1];
  const bool rows_are_dense = (across == 1 || m.columns <= 1) && (down >= m.columns || m.rows <= 1);
  const bool columns_are_dense = (down == 1 || m.rows <= 1) && (across >= m.rows || m.columns <= 1);
  if (rows_are_dense) {
    m.leading = m.rows <= 1 ? m.columns : down;
  } else if (columns_are_dense && may_transpose) {
    m.transposed = true;
    m.leading = m.columns <= 1 ? m.rows : across;
  } else {
    refuse_operand(
        name,
        fmt::format("its strides are [{}] elements for the shape {}, {} have to be dense", fmt::join(strides, ","),
                    to_string(array.shape), may_transpose ? "rows or columns" : "rows"),
        family.how_to_make_dense());
  }
  return m;
}

// By its shape: a bias has n elements, a scale of rows [m, 1], a residual [m, n].
ops::Operand operand_of(const Array& array, const std::string& name, const ops::GemmProblem& problem,
                        const Family& family) {
  ops::Operand operand;
  operand.name = name;
  operand.dtype = array.dtype;
  const Shape& s = array.shape;
  if (element_count(s) == 1) {
    operand.kind = ops::Operand::Kind::kScalar;
  } else if (s == Shape{problem.n} || s == Shape{1, problem.n}) {
    operand.kind = ops::Operand::Kind::kColumn;
  } else if (s == Shape{problem.m, 1}) {
    operand.kind = ops::Operand::Kind::kRow;
  } else if (s.size() >= 2 && s[s.size() - 2] == problem.m && s.back() == problem.n) {
    const Matrix m = matrix_of(array, name, false, family);
    if (m.batch != problem.batch && m.batch != 1) {
      refuse_operand(name, fmt::format("it has {} matrices, the product has {}", m.batch, problem.batch));
    }
    operand.kind = ops::Operand::Kind::kMatrix;
    operand.leading = m.leading;
    operand.stride = m.batch == 1 ? 0 : m.stride;
    return operand;
  } else {
    refuse_operand(
        name, fmt::format("its shape is {}; of a product of {}x{} it has to be [{}], [{},1], [{},{}] or of one element",
                          to_string(s), problem.m, problem.n, problem.n, problem.m, problem.m, problem.n));
  }
  if (!array.is_dense()) refuse_operand(name, "its memory is not dense", family.how_to_make_dense());
  return operand;
}

Array on_gpu(nb::handle object, const std::string& name, void* stream, int& device, Use use = Use::kRead) {
  return gpu_operand(object, fmt::format("{}: {}", kGemmWhere, name), stream, device, use);
}

void fill_sizes(ops::GemmProblem& p, const Array& a, const Array& b, const Family& family) {
  const Matrix x = matrix_of(a, "a", true, family), y = matrix_of(b, "b", true, family);
  if (x.columns != y.rows) {
    refuse_operand("b", fmt::format("a has {} columns, b has {} rows: they have to be equal", x.columns, y.rows),
                   "Give b.T where b lies as n x k");
  }
  if (x.batch != y.batch && x.batch != 1 && y.batch != 1) {
    refuse_operand("b", fmt::format("a has {} matrices, b has {}", x.batch, y.batch));
  }
  if (a.dtype != b.dtype && !(size_of(a.dtype) == 1 && size_of(b.dtype) == 1)) {
    refuse_operand("b", fmt::format("a is {}, b is {}", to_string(a.dtype), to_string(b.dtype)),
                   family.how_to_convert(a.dtype));
  }
  p.m = x.rows, p.n = y.columns, p.k = x.columns;
  p.batch = std::max(x.batch, y.batch);
  p.in = a.dtype;
  p.transpose_a = x.transposed, p.transpose_b = y.transposed;
  p.lda = x.leading, p.ldb = y.leading;
  p.stride_a = x.stride, p.stride_b = y.stride;
  const bool broadcasts = p.batch > 1 && (x.batch == 1 || y.batch == 1);
  if (broadcasts)
    refuse_operand(x.batch == 1 ? "a" : "b", "one matrix for a batch of the other is not supported yet",
                   "Expand it to the batch in memory");
}

DType result_type(DType in, nb::handle given) {
  if (!given.is_none()) {
    const auto name = nb::cast<std::string>(given);
    const auto type = parse_dtype(name);
    if (!type)
      refuse_argument("out_dtype", fmt::format("\"{}\" is no element type", name), "Use \"f16\", \"bf16\", \"f32\"");
    return *type;
  }
  if (in == DType::kI8 || in == DType::kU8) return DType::kI32;
  return in == DType::kF8E4M3 || in == DType::kF8E5M2 ? DType::kBF16 : in;
}

nb::object gemm(nb::handle a, nb::handle b, const std::string& epilogue, const nb::dict& operands, nb::handle out,
                const nb::dict& options) {
  const Family& family = family_of(a, fmt::format("{}: a", kGemmWhere));
  const auto option = [&](const char* name) {
    return options.contains(name) ? nb::object(options[name]) : nb::object(nb::none());
  };
  const nb::object given_stream = option("stream");
  int device = kHost;
  void* stream = stream_of(given_stream);
  Array x = on_gpu(a, "a", stream, device);
  if (given_stream.is_none()) {
    stream = family.current_stream(device);
    x = on_gpu(a, "a", stream, device);
  }
  const Array y = on_gpu(b, "b", stream, device);
  ops::GemmProblem problem;
  fill_sizes(problem, x, y, family);
  problem.out = result_type(x.dtype, option("out_dtype"));
  problem.tf32 = nb::cast<bool>(option("tf32").is_none() ? nb::object(nb::bool_(false)) : option("tf32"));
  problem.epilogue = epilogue;
  std::vector<Array> held;
  std::vector<const void*> addresses;
  for (const auto [key, object] : operands) {
    const auto name = nb::cast<std::string>(key);
    held.push_back(on_gpu(object, name, stream, device));
    problem.operands.push_back(operand_of(held.back(), name, problem, family_of(object, name)));
    addresses.push_back(held.back().data);
  }
  const bool is_batch = x.shape.size() == 3 || y.shape.size() == 3;
  const Shape shape = is_batch ? Shape{problem.batch, problem.m, problem.n} : Shape{problem.m, problem.n};
  const nb::object result = out.is_none() ? family.empty(problem.out, shape, device, stream) : nb::borrow(out);
  const Array d = on_gpu(result, "out", stream, device, out.is_none() ? Use::kRead : Use::kWrite);
  if (d.dtype != problem.out || d.shape != shape) {
    refuse_operand("out", fmt::format("it is {}{}, the result is {}{}", to_string(d.dtype), to_string(d.shape),
                                      to_string(problem.out), to_string(shape)));
  }
  const Matrix into = matrix_of(d, "out", false, family);
  problem.ldd = into.leading;
  problem.stride_d = into.stride;
  ops::PrepareOptions prepare;
  prepare.device = device;
  if (!option("tune_seconds").is_none()) prepare.tune_seconds = nb::cast<double>(option("tune_seconds"));
  interruptible([&] { ops::gemm(problem, x.data, y.data, d.data, stream, addresses, prepare); });
  return result;
}

}  // namespace

void register_ops(nb::module_& module) {
  module.def("gemm", &gemm, nb::arg("a"), nb::arg("b"), nb::arg("epilogue"), nb::arg("operands"), nb::arg("out").none(),
             nb::arg("options"));
  register_attention(module);
}

}  // namespace heddle::python
