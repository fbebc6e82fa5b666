// Operands of products on a GPU as text and argument blocks.
#include "schedule/product/cuda/operand.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "codegen/product/cuda/contraction.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::codegen {
namespace {

using schedule::LinesOf;
using schedule::ProductOperand;
using schedule::ProductTask;

std::vector<uint8_t> block_of(const std::vector<int64_t>& words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// `as_lines`: says where its lines lie, too.
CudaFunctor matrix(const ProductOperand& o, int64_t lines, bool as_lines, const char* name) {
  const bool along_k = o.along_k(), along_rows = !along_k && (o.row == 1 || lines <= 1);
  const int align = o.width(lines);
  std::vector<int64_t> words = {0, o.offset, lines, o.depth, o.row, o.k};
  // Batches of one stride each, the innermost last.
  std::string place = "offset", members;
  int64_t inner = 1;
  for (size_t i = o.batch.size(); i-- > 0;) {
    const auto& [extent, stride] = o.batch[i];
    if (stride != 0) {
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
  out.line("using Element = {};", schedule::cuda_storage(o.dtype));
  out.line("const Element* data;");
  out.line("int64_t offset, rows, depth, row, k{};", members);
  out.open("__device__ auto view(int batch) const {");
  out.line("return tile::make_view(");
  out.line("    data + {},", place);
  out.line("    tile::make_naive(tile::make_tuple({}, {}),", length("rows", along_rows), length("depth", along_k));
  out.line("                     tile::make_tuple({}, {})));", along_rows ? "tile::fixed<1>()" : stride("row"),
           along_k ? "tile::fixed<1>()" : stride("k"));
  out.close();
  if (as_lines) {
    out.line("static constexpr bool kLinesAlongK = {};", along_k);
    out.open("__device__ tile::cuda::MatrixLines<Element> lines(int batch) const {");
    out.line("return {{data + {}, {}, static_cast<int32_t>({}), static_cast<int32_t>({})}};", place,
             along_k ? "row" : "k", along_k ? "rows" : "depth", along_k ? "depth" : "rows");
    out.close();
  }
  out.close("};");
  return {out.text(), block_of(words), {{0, 0, static_cast<int>(o.operand)}}};
}

CudaFunctor computed(const ProductTask& task, const ProductOperand& o, int64_t lines, DType multiply,
                     const char* name) {
  const schedule::CudaGemmDesc& gemm = task.product;
  FunctorMembers members(gemm.pool, task.operands);
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
      "__device__ void load(V (&v)[W], int batch, int row, int k, "
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
  pack(members, functor);
  for (const int64_t word : {lines, gemm.k}) {
    const size_t at = functor.block.size();
    functor.block.resize(at + sizeof(word));
    std::memcpy(functor.block.data() + at, &word, sizeof(word));
  }
  return functor;
}

}  // namespace

schedule::CudaTileProblem written_problem(const ProductTask& task, LinesOf as_lines) {
  const schedule::CudaGemmDesc& gemm = task.product;
  schedule::CudaTileProblem p = schedule::tile_problem(task);
  const auto has_lines = [&](const ProductOperand& o, int64_t lines, DType multiply) {
    return as_lines == LinesOf::kAll || (as_lines == LinesOf::kShifted && o.shifted(lines, multiply));
  };
  const auto fill = [&](schedule::CudaOperand& to, const ProductOperand& from, int64_t lines, DType multiply,
                        const char* name) {
    if (from.form == ProductOperand::Form::kImage) return;
    const auto functor_of = [&](const char* type) {
      return from.form == ProductOperand::Form::kMatrix ? matrix(from, lines, has_lines(from, lines, multiply), type)
                                                        : computed(task, from, lines, multiply, type);
    };
    CudaFunctor functor = functor_of(name);
    // Operands of one form are one type.
    const bool alike = &to != &p.a && functor_of(p.a.type.c_str()).text == p.a.text;
    to.type = name;
    to.text = alike ? fmt::format("using {} = {};\n", name, p.a.type) : std::move(functor.text);
    to.block = std::move(functor.block);
    to.pointers = std::move(functor.pointers);
  };
  fill(p.a, gemm.a, gemm.m, gemm.multiply_a, "OperandA");
  fill(p.b, gemm.b, gemm.n, gemm.multiply_b, "OperandB");
  return p;
}

}  // namespace heddle::codegen
