#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "codegen/product/cuda/gemm.h"
#include "jit/cuda/nvrtc.h"
#include "ops/epilogue.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"
#include "view_case.h"

namespace heddle::testing_cuda {

using schedule::Config;
using schedule::TileProblem;

inline Config mma(int m, int n, int k, int warps_m, int warps_n, int stages = 3, int splits = 1) {
  return {schedule::MmaConfig{m, n, k, warps_m, warps_n, stages, splits}};
}
inline Config simt(int m, int n, int k, int warps_m, int warps_n, int stages = 2, int splits = 1) {
  return {schedule::SimtConfig{{m, n, k, warps_m, warps_n, stages, splits}}};
}

// Elements as bytes: small integers, so that sums are exact in every type.
struct Elements {
  DType type = DType::kF32;
  std::vector<double> values;
  std::vector<uint8_t> bytes;

  Elements(DType type, int64_t count, uint64_t seed) : type(type), values(static_cast<size_t>(count)) {
    std::mt19937_64 random(seed);
    const bool no_sign = type == DType::kU8;
    for (double& v : values) v = static_cast<double>(random() % 7) - (no_sign ? 0 : 3);
    bytes.resize(values.size() * size_of(type));
    for (size_t i = 0; i < values.size(); ++i) put(type, values[i], bytes.data() + i * size_of(type));
  }
  static void put(DType type, double value, uint8_t* to) {
    const auto whole = static_cast<int64_t>(value);
    const auto single = static_cast<float>(value);
    const uint32_t bits = is_float(type) && size_of(type) <= 2 ? encode_float(type, value) : 0;
    const void* from = type == DType::kF64   ? static_cast<const void*>(&value)
                       : type == DType::kF32 ? static_cast<const void*>(&single)
                       : is_float(type)      ? static_cast<const void*>(&bits)
                                             : static_cast<const void*>(&whole);
    std::memcpy(to, from, size_of(type));
  }
  static bool is_float(DType type) {
    return type == DType::kF64 || type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 ||
           type == DType::kF8E4M3 || type == DType::kF8E5M2;
  }
};

// D = 2 A B with rows of D `pad` elements longer than its columns.
struct Output {
  DType type = DType::kF32;
  int64_t pad = 3;
};

class Runner {
 public:
  explicit Runner(const runtime::CudaContext& context) : context_(context) {}

  // Runs a problem whose operand 0 is A, 1 is B, and compares every element of D with `expected(batch, row, column)`;
  // nothing else around D may have changed. `at(batch, row, column)`: its place in D.
  template <typename Expected>
  void check(const ViewCase& p, const Config& c, const Output& out, const Elements& a, const Elements& b,
             Expected expected) {
    SCOPED_TRACE(name_of(c) + " of " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k));
    const int64_t row = p.n + out.pad, batch = row * p.m, count = batch * p.batch;
    const ops::LoweredEpilogue e = doubled(p, out.type, row, batch);
    const schedule::ViewFamily& family = view_family_of(c);
    const schedule::CudaInstance instance = family.instance_of(p, c);
    const codegen::CudaGemmUnit unit = codegen::gemm_unit(instance, p.texts, e.epilogue, e.operands);
    schedule::KernelLaunches work = family.launches_of(p, c, context_.device().target, 3);
    load(unit.source());
    const size_t element = size_of(out.type), guard = 256;
    std::vector<uint8_t> host(static_cast<size_t>(count) * element + guard, 0x5a);
    runtime::CudaBuffer device_a(context_, a.bytes.size()), device_b(context_, b.bytes.size());
    runtime::CudaBuffer device_d(context_, host.size());
    runtime::CudaBuffer workspace(context_, static_cast<size_t>(std::max<int64_t>(work.workspace_bytes, 16)));
    device_a.write(a.bytes.data(), a.bytes.size());
    device_b.write(b.bytes.data(), b.bytes.size());
    device_d.write(host.data(), host.size());
    if (!work.launches.empty()) {
      codegen::add_operands(work.launches, instance, p.texts);
      codegen::add_argument(work.launches.back(), unit.epilogue.block, unit.epilogue.pointers);
      runtime::CudaSequence(context_, *module_, work.launches,
                            {device_a.address(), device_b.address(), device_d.address(), workspace.address()})
          .enqueue();
      context_.synchronize();
    }
    std::vector<uint8_t> want = host;
    for (int64_t z = 0; z < p.batch; ++z) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          const auto at = static_cast<size_t>(z * batch + i * row + j) * element;
          Elements::put(out.type, 2 * expected(z, i, j), want.data() + at);
        }
      }
    }
    device_d.read(host.data(), host.size());
    size_t wrong = 0;
    for (size_t i = 0; i < host.size() && wrong < 3; i += element) {
      if (std::memcmp(host.data() + i, want.data() + i, std::min(element, host.size() - i)) == 0) continue;
      ++wrong;
      const auto at = static_cast<int64_t>(i / element);
      ADD_FAILURE()
          << "element " << at % row << " of row " << at / row << (at >= count ? " behind D" : "") << ": "
          << ::testing::PrintToString(std::vector<uint8_t>(host.begin() + static_cast<ptrdiff_t>(i),
                                                           host.begin() + static_cast<ptrdiff_t>(i + element)))
          << " is not "
          << ::testing::PrintToString(std::vector<uint8_t>(want.begin() + static_cast<ptrdiff_t>(i),
                                                           want.begin() + static_cast<ptrdiff_t>(i + element)));
    }
  }

 private:
  // Sums times 2, so that an epilogue that does not run shows.
  static ops::LoweredEpilogue doubled(const TileProblem& p, DType out, int64_t row, int64_t batch) {
    using Role = schedule::Operand::Role;
    ops::LoweredEpilogue result;
    schedule::Epilogue& e = result.epilogue;
    schedule::IndexPool& indices = e.pool.indices;
    e.batch = indices.new_var(std::max<int64_t>(p.batch, 1)), e.row = indices.new_var(std::max<int64_t>(p.m, 1));
    e.split = std::max<int64_t>(p.n, 1);
    e.col_outer = indices.new_var(1), e.col = indices.new_var(e.split);
    e.accumulator = p.accumulator();
    result.operands = {{Role::kInput, p.a_in, {}, {}},
                       {Role::kInput, p.b_in, {}, {}},
                       {Role::kOutput, out, {}, {}},
                       {Role::kOutput, DType::kU8, {}, {}}};
    schedule::Expr twice{schedule::Expr::Kind::kOp, e.accumulator};
    twice.op = ir::Op::kMul;
    twice.args = {e.pool.local(e.accumulator, 0), e.pool.constant(e.accumulator, 2)};
    schedule::ExprId x = e.pool.add(std::move(twice));
    if (out != e.accumulator) {
      schedule::Expr cast{schedule::Expr::Kind::kOp, out};
      cast.op = ir::Op::kCast;
      cast.args = {x};
      x = e.pool.add(std::move(cast));
    }
    const auto place =
        indices.add(indices.add(indices.scale(indices.var(e.batch), batch), indices.scale(indices.var(e.row), row)),
                    indices.var(e.col));
    e.stores.push_back({2, place, x});
    return result;
  }

  void load(const std::string& unit) {
    if (unit == loaded_) return;
    module_ = std::make_unique<runtime::CudaModule>(
        context_, jit::compile_cubin(unit, context_.device().target.architecture(), true).bytes);
    loaded_ = unit;
  }

  const runtime::CudaContext& context_;
  std::string loaded_;
  std::unique_ptr<runtime::CudaModule> module_;
};

// Matrices of A and B, and the product of their elements.
struct MatrixCase {
  DType in = DType::kF16, a = DType::kF16, b = DType::kF16, out = DType::kF32;
  int64_t m, n, k, batch = 1, pad = 0;  // pad: added to leading dimensions
  bool a_along_k = true, b_along_k = true;
  bool tf32 = false;
};

inline void PrintTo(const MatrixCase& c, std::ostream* out) {
  *out << to_string(c.in) << " " << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << (c.a_along_k ? " n" : " t")
       << (c.b_along_k ? "t" : "n");
}

inline Matrix matrix_of(const MatrixCase& c, bool is_a) {
  const bool along_k = is_a ? c.a_along_k : c.b_along_k;
  Matrix m;
  m.element = is_a ? c.a : c.b;
  m.rows = is_a ? c.m : c.n, m.k = c.k, m.batch = c.batch;
  m.along_k = along_k;
  m.leading = (along_k ? c.k : m.rows) + c.pad;
  m.stride = m.leading * (along_k ? m.rows : c.k);
  return m;
}

inline ViewCase problem_of(const MatrixCase& c) {
  ViewCase p;
  p.a_in = c.a == DType::kU8 ? c.a : c.in;
  p.b_in = c.in;
  p.tf32 = c.tf32;
  p.m = c.m, p.n = c.n, p.k = c.k, p.batch = c.batch;
  p.out_bytes = static_cast<int>(size_of(c.out));
  p.set_operands(matrix_of(c, true).view(0), matrix_of(c, false).view(1));
  return p;
}

inline void check_matrices(Runner& runner, const MatrixCase& c, const Config& config) {
  const Matrix a = matrix_of(c, true), b = matrix_of(c, false);
  const Elements of_a(c.a, std::max<int64_t>(a.stride * c.batch, 1), 1);
  const Elements of_b(c.b, std::max<int64_t>(b.stride * c.batch, 1), 2);
  const auto at = [](const Matrix& m, int64_t batch, int64_t row, int64_t k) {
    return static_cast<size_t>(batch * m.stride + (m.along_k ? row * m.leading + k : k * m.leading + row));
  };
  runner.check(problem_of(c), config, {c.out}, of_a, of_b, [&](int64_t z, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < c.k; ++k) sum += of_a.values[at(a, z, i, k)] * of_b.values[at(b, z, j, k)];
    return sum;
  });
}

// A grouped convolution of images with filters [group][output][tap][channel], as a batched product.
inline ViewCase problem_of(const Image& image, int64_t outputs) {
  ViewCase p;
  p.a_in = p.b_in = image.element;
  p.m = image.rows(), p.n = outputs, p.k = image.k(), p.batch = image.groups;
  p.out_bytes = 4;
  Matrix filters;
  filters.element = image.element;
  filters.rows = outputs, filters.k = p.k, filters.batch = p.batch;
  filters.leading = p.k;
  filters.stride = outputs * p.k;
  p.set_operands(image.view(0), filters.view(1));
  return p;
}

inline void check_images(Runner& runner, const Image& image, int64_t outputs, const Config& config) {
  const ViewCase p = problem_of(image, outputs);
  const int64_t of_group = outputs * p.k;
  const auto& size = image.size;
  const auto& window = image.window;
  const int64_t pixel = image.channels * image.groups;
  const Elements x(image.element, image.images * size[0] * size[1] * size[2] * pixel, 3);
  const Elements w(image.element, of_group * p.batch, 4);
  runner.check(p, config, {DType::kF32}, x, w, [&](int64_t group, int64_t row, int64_t output) {
    int64_t at[3], rest = row;
    for (int d = 2; d >= 0; --d) at[d] = rest % image.out(d), rest /= image.out(d);
    double sum = 0;
    for (int64_t tap = 0; tap < window[0] * window[1] * window[2]; ++tap) {
      const int64_t taps[3] = {tap / (window[1] * window[2]), tap / window[2] % window[1], tap % window[2]};
      int64_t place = rest;
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        const int64_t in = at[d] * image.stride[d] + taps[d] * image.dilation[d] - image.before[d];
        inside = inside && in >= 0 && in < size[d];
        place = place * size[d] + in;
      }
      if (!inside) continue;
      for (int64_t c = 0; c < image.channels; ++c) {
        sum += x.values[static_cast<size_t>(place * pixel + group * image.channels + c)] *
               w.values[static_cast<size_t>(group * of_group + output * p.k + tap * image.channels + c)];
      }
    }
    return sum;
  });
}

}  // namespace heddle::testing_cuda
