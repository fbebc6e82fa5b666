// Operands of products on a GPU as text and argument blocks.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "codegen/cuda_contraction.h"

namespace heddle::codegen {
namespace {

using schedule::CudaGemmDesc;
using schedule::CudaOperand;
using schedule::KernelDesc;

// Largest power of two that divides all values, at most 16 bytes of elements.
int64_t alignment_of(DType dtype, std::initializer_list<int64_t> values) {
  constexpr int64_t kWidest = 16;
  int64_t factor = kWidest / static_cast<int64_t>(std::max<size_t>(size_of(dtype), 1));
  for (const int64_t value : values) {
    if (value != 0) factor = std::min(factor, value & -value);
  }
  return std::max<int64_t>(factor, 1);
}

std::vector<uint8_t> block_of(const std::vector<int64_t>& words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

CudaFunctor matrix(const CudaOperand& o, int64_t lines, const char* name) {
  const bool along_k = o.k == 1 || o.depth <= 1, along_rows = !along_k && (o.row == 1 || lines <= 1);
  const int64_t leading = along_k ? o.row : o.k;
  int64_t align =
      along_k || along_rows
          ? alignment_of(o.dtype, {along_k ? o.depth : lines, (along_k ? lines : o.depth) > 1 ? leading : 0, o.offset})
          : 1;
  std::vector<int64_t> words = {0, o.offset, lines, o.depth, o.row, o.k};
  // Batches of one stride each, the innermost last.
  std::string place = "offset", members;
  int64_t inner = 1;
  for (size_t i = o.batch.size(); i-- > 0;) {
    const auto& [extent, stride] = o.batch[i];
    if (stride != 0) {
      align = std::min(align, alignment_of(o.dtype, {stride}));
      const std::string above = inner == 1 ? "int64_t(batch)" : fmt::format("int64_t(batch / {})", inner);
      place += fmt::format(" + {} * stride{}", i == 0 ? above : fmt::format("({} % {})", above, extent), i);
      members += fmt::format(", stride{}", i);
      words.push_back(stride);
    }
    inner *= extent;
  }
  const bool wide = (lines - 1) * o.row + (o.depth - 1) * o.k + 1 >= (int64_t{1} << 31);
  const auto stride = [&](const char* member) {
    return fmt::format("tile::cuda::stride_of<{}, {}>({})", wide, align, member);
  };
  const auto length = [&](const char* member, bool contiguous) {
    const std::string number = fmt::format("static_cast<int32_t>({})", member);
    return contiguous ? fmt::format("tile::multiple_of<{}>({})", align, number) : number;
  };
  Writer out;
  out.open(fmt::format("struct {} {{", name));
  out.line("using Element = {};", storage_type(o.dtype));
  out.line("const Element* data;");
  out.line("int64_t offset, rows, depth, row, k{};", members);
  out.open("__device__ auto view([[maybe_unused]] int batch) const {");
  out.line("return tile::make_view(");
  out.line("    data + {},", place);
  out.line("    tile::make_naive(tile::make_tuple({}, {}),", length("rows", along_rows), length("depth", along_k));
  out.line("                     tile::make_tuple({}, {})));", along_rows ? "tile::fixed<1>()" : stride("row"),
           along_k ? "tile::fixed<1>()" : stride("k"));
  out.close();
  out.close("};");
  return {out.text(), block_of(words), {{0, 0, static_cast<int>(o.operand)}}};
}

CudaFunctor image(const CudaOperand& o, const char* name) {
  const tile::GemmImageArgs& a = o.image;
  const auto trivial = [&](int d) {
    return a.size[d] == 1 && a.out[d] == 1 && a.window[d] == 1 && a.before[d] == 0 && a.after[d] == 0;
  };
  const int rank = !trivial(0) ? 3 : !trivial(1) ? 2 : 1;
  bool padded = false, pointwise = true;
  for (int d = 0; d < 3; ++d) {
    padded = padded || a.before[d] != 0 || a.after[d] != 0;
    pointwise = pointwise && a.window[d] == 1;
  }
  CudaFunctor functor;
  functor.text = fmt::format("using {} = tile::cuda::Image<{}, {}, {}, {}, {}>;\n", name, storage_type(o.dtype), rank,
                             alignment_of(o.dtype, {a.channels, a.pixel, a.group}), padded, pointwise);
  functor.block.resize(sizeof(a));
  std::memcpy(functor.block.data(), &a, sizeof(a));
  functor.pointers = {{0, offsetof(tile::GemmImageArgs, data), static_cast<int>(o.operand)}};
  return functor;
}

CudaFunctor computed(const KernelDesc& desc, const CudaGemmDesc& gemm, const CudaOperand& o, int64_t lines,
                     DType multiply, const char* name) {
  FunctorMembers members(gemm.pool, desc.operands);
  members.use(o.element);
  Writer out;
  out.open(fmt::format("struct {} {{", name));
  out.line("static constexpr int kWidth = {};", size_of(multiply) == 8 ? 2 : 4);
  members.declare(out);
  out.line("int64_t lines, deep;");
  out.line("__device__ int rows() const {{ return static_cast<int>(lines); }}");
  out.line("__device__ int depth() const {{ return static_cast<int>(deep); }}");
  out.raw("template <typename V, int W>");
  out.open(
      "__device__ void load(V (&v)[W], [[maybe_unused]] int batch, [[maybe_unused]] int row, [[maybe_unused]] int k, "
      "int n) const {");
  Names names = members.names();
  names.vars[o.vars[0]] = "int64_t(batch)", names.vars[o.vars[1]] = "int64_t(row)";
  names.vars[o.vars[2]] = "int64_t(k + i)";
  ScalarEmitter emitter(gemm.pool, std::move(names), out);
  emitter.hoist(o.element, uint64_t{1} << o.vars[0] | uint64_t{1} << o.vars[1]);
  out.raw("#pragma unroll");
  out.open("for (int i = 0; i < W; ++i) {");
  out.line("if (i >= n) break;");
  out.line("v[i] = static_cast<V>(({}).v);", emitter.vector(o.element));
  out.close();
  out.close();
  out.close("};");
  CudaFunctor functor;
  functor.text = out.text();
  members.pack(functor);
  for (const int64_t word : {lines, gemm.k}) {
    const size_t at = functor.block.size();
    functor.block.resize(at + sizeof(word));
    std::memcpy(functor.block.data() + at, &word, sizeof(word));
  }
  return functor;
}

}  // namespace

CudaFunctor cuda_operand(const KernelDesc& desc, const CudaGemmDesc& gemm, const CudaOperand& operand, int64_t lines,
                         const char* name) {
  switch (operand.form) {
    case CudaOperand::Form::kMatrix:
      return matrix(operand, lines, name);
    case CudaOperand::Form::kImage:
      return image(operand, name);
    default:
      return computed(desc, gemm, operand, lines, &operand == &gemm.a ? gemm.multiply_a : gemm.multiply_b, name);
  }
}

}  // namespace heddle::codegen
