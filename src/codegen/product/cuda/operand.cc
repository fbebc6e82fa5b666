#include "codegen/product/cuda/operand.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/divide.h"
#include "codegen/scalar/scalar.h"
#include "target/argument_block.h"
#include "tile/core/pack.h"

namespace heddle::codegen {
namespace {

using schedule::LinesOf;
using schedule::ProductTask;

std::vector<uint8_t> block_of(const std::vector<int64_t>& words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// Offsets in 32 bits reach as far as a tile beyond the end.
bool is_wide(int64_t elements, int64_t leading) {
  constexpr int64_t kMostRows = 512;
  return elements + kMostRows * leading > std::numeric_limits<int32_t>::max();
}

OperandText computed(const ProductTask& task, const OperandView& o, int64_t lines, DType multiply, const char* name) {
  const schedule::Product& gemm = task.product;
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
  OperandText functor;
  functor.type = name;
  functor.text = out.text(functor.includes);
  pack(members, functor);
  for (const int64_t word : {lines, gemm.k}) {
    const size_t at = functor.block.size();
    functor.block.resize(at + sizeof(word));
    std::memcpy(functor.block.data() + at, &word, sizeof(word));
  }
  return functor;
}

}  // namespace

std::string_view cuda_storage(DType type) {
  // Tensor cores and their converters take fp8 as bits; arithmetic of a functor takes it as a number.
  if (type == DType::kF8E4M3) return "tile::cuda::e4m3";
  if (type == DType::kF8E5M2) return "tile::cuda::e5m2";
  return storage_type(type);
}

namespace {

// The words of an operand's struct and the expressions over them.
struct ViewWords {
  std::vector<int64_t> words;
  std::string members;  // ", name" of those behind the first

  void add(const std::string& name, int64_t value) {
    members += ", " + name;
    words.push_back(value);
  }
};

// Where a batch begins, of batch dimensions of one stride each, the innermost last.
std::string batch_place(const OperandView& o, ViewWords& words) {
  std::string place = "offset";
  int64_t inner = 1;
  for (size_t i = o.batch.size(); i-- > 0;) {
    const auto& [extent, stride] = o.batch[i];
    if (stride != 0) {
      const std::string above = inner == 1 ? "int64_t(batch)" : fmt::format("int64_t(batch / {})", inner);
      place += fmt::format(" + {} * stride{}", i == 0 ? above : fmt::format("({} % {})", above, extent), i);
      words.add(fmt::format("stride{}", i), stride);
    }
    inner *= extent;
  }
  return place;
}

std::string stride_text(bool wide, int align, std::string_view member) {
  return fmt::format("tile::cuda::stride_of<{}, {}>({})", wide, align, member);
}

std::string length_text(bool contiguous, int align, std::string_view member) {
  const std::string number = fmt::format("static_cast<int32_t>({})", member);
  return contiguous ? fmt::format("tile::multiple_of<{}>({})", align, number) : number;
}

// Begins an operand's struct and the function that makes its view.
void open_view(Writer& out, const OperandView& o, const ViewWords& words, const char* name) {
  out.open(fmt::format("struct {} {{", name));
  out.line("using Element = {};", cuda_storage(o.dtype));
  out.line("const Element* data;");
  out.line("int64_t offset{};", words.members);
  out.open("__device__ auto view(int batch) const {");
}

OperandText operand_text(const OperandView& o, const Writer& out, const ViewWords& words, const char* name) {
  OperandText result;
  result.type = name;
  result.text = out.text();
  result.block = block_of(words.words);
  result.pointers = {{0, 0, static_cast<int>(o.operand)}};
  return result;
}

// What a merged operand's dimensions are in memory. All but the outermost lengths are known: a thread divides by them.
class MergedDims {
 public:
  MergedDims(const OperandView& o, int64_t lines, ViewWords& words) : words_(words), align_(o.width(lines)) {
    int64_t reach = 1;
    for (const auto* dims : {&o.row_dims, &o.k_dims}) {
      for (const auto& [extent, stride] : *dims) reach += (extent - 1) * std::abs(stride);
    }
    wide_ = reach >= int64_t{1} << 31;
    const bool along_k = o.along_k();
    add(o.row_dims, "row", !along_k);
    add(o.k_dims, "k", along_k);
  }

  void write(Writer& out, const std::string& place) const {
    out.line("const auto dims = tile::make_naive(tile::make_tuple({}),", lengths_);
    out.line("                                   tile::make_tuple({}));", strides_);
    out.line("return tile::make_view(");
    out.line("    data + {},", place);
    out.line("    tile::transform(dims, tile::make_tuple(tile::merge(), tile::merge()), tile::make_tuple({}),",
             merged_);
    out.line("                    tile::make_tuple(tile::dims<0>{{}}, tile::dims<1>{{}})));");
  }

 private:
  void add(std::vector<std::pair<int64_t, int64_t>> dims, const char* name, bool contiguous) {
    if (dims.empty()) dims.emplace_back(1, 0);
    std::string positions;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto& [extent, stride] = dims[i];
      const bool last = i + 1 == dims.size() && contiguous;
      const std::string member = fmt::format("{}{}", name, i);
      const auto append = [](std::string& list, const std::string& text) { list += (list.empty() ? "" : ", ") + text; };
      if (i == 0) {
        words_.add(fmt::format("{}s", name), extent);
        append(lengths_, length_text(last, align_, fmt::format("{}s", name)));
      } else {
        append(lengths_, fmt::format("tile::fixed<{}>()", extent));
      }
      if (last && (stride == 1 || extent == 1)) {
        append(strides_, "tile::fixed<1>()");
      } else {
        words_.add(member, stride);
        append(strides_, stride_text(wide_, align_, member));
      }
      append(positions, fmt::format("{}", position_++));
    }
    merged_ += fmt::format("{}tile::dims<{}>{{}}", merged_.empty() ? "" : ", ", positions);
  }

  ViewWords& words_;
  int align_;
  bool wide_ = false;
  int position_ = 0;
  std::string lengths_, strides_, merged_;
};

OperandText merged_text(const OperandView& o, int64_t lines, const char* name) {
  ViewWords words{{0, o.offset}, ""};
  const MergedDims dims(o, lines, words);
  const std::string place = batch_place(o, words);
  Writer out;
  open_view(out, o, words, name);
  dims.write(out, place);
  out.close();
  out.close("};");
  return operand_text(o, out, words, name);
}

}  // namespace

OperandText matrix_text(const OperandView& o, int64_t lines, bool as_lines, const char* name) {
  const bool along_k = o.along_k(), along_rows = !along_k && (o.row == 1 || lines <= 1);
  const int align = o.width(lines);
  ViewWords words{{0, o.offset, lines, o.depth, o.row, o.k}, ", rows, depth, row, k"};
  const std::string place = batch_place(o, words);
  const bool wide = (lines - 1) * o.row + (o.depth - 1) * o.k + 1 >= (int64_t{1} << 31);
  Writer out;
  open_view(out, o, words, name);
  out.line("return tile::make_view(");
  out.line("    data + {},", place);
  out.line("    tile::make_naive(tile::make_tuple({}, {}),", length_text(along_rows, align, "rows"),
           length_text(along_k, align, "depth"));
  out.line("                     tile::make_tuple({}, {})));",
           along_rows ? "tile::fixed<1>()" : stride_text(wide, align, "row"),
           along_k ? "tile::fixed<1>()" : stride_text(wide, align, "k"));
  out.close();
  if (as_lines) {
    out.line("static constexpr bool kLinesAlongK = {};", along_k);
    out.open("__device__ tile::cuda::MatrixLines<Element> lines(int batch) const {");
    out.line("return {{data + {}, {}, static_cast<int32_t>({}), static_cast<int32_t>({})}};", place,
             along_k ? "row" : "k", along_k ? "rows" : "depth", along_k ? "depth" : "rows");
    out.close();
  }
  out.close("};");
  return operand_text(o, out, words, name);
}

OperandText image_text(const OperandView& o, int64_t groups) {
  const tile::GemmImageArgs& i = o.image;
  const auto trivial = [&](int d) {
    return i.size[d] == 1 && i.out[d] == 1 && i.window[d] == 1 && i.before[d] == 0 && i.after[d] == 0;
  };
  const auto any = [](const int32_t(&v)[3], int32_t other) {
    return std::any_of(std::begin(v), std::end(v), [&](int32_t x) { return x != other; });
  };
  const int64_t pixels = int64_t{i.images} * i.size[0] * i.size[1] * i.size[2];
  OperandText result;
  result.type = fmt::format("tile::cuda::Image<{}, {}, {}, {}, {}, {}>", cuda_storage(o.dtype),
                            !trivial(0)   ? 3
                            : !trivial(1) ? 2
                                          : 1,
                            traits_of(o, 0, groups, o.dtype).width, any(i.before, 0) || any(i.after, 0),
                            !any(i.window, 1), is_wide(pixels * i.pixel, int64_t{i.pixel} * i.size[2]));
  tile::GemmImageArgs args = i;
  if (groups <= 1) args.group = 0;
  result.block = argument_bytes(args);
  result.pointers = {{0, static_cast<int>(offsetof(tile::GemmImageArgs, data)), static_cast<int>(o.operand),
                      o.offset * static_cast<int64_t>(size_of(o.dtype))}};
  return result;
}

namespace {

// Adds the pointers with which the arguments of packed weights begin: to the words, the scales and the third operand.
template <typename Args>
void point_to_weights(OperandText& text, const OperandView& o) {
  const schedule::PackedWeights& w = *o.weights;
  const auto point = [&](size_t member, uint32_t operand) {
    text.pointers.push_back({0, static_cast<int>(member), static_cast<int>(operand)});
  };
  point(offsetof(Args, words), o.operand);
  point(offsetof(Args, scales), w.scales);
  if (w.third) point(offsetof(Args, third), *w.third);
}

OperandText packed_text(const ProductTask& task, const OperandView& o, int64_t lines) {
  const schedule::PackedWeights& w = *o.weights;
  const char* form = w.is_table ? "kTable" : w.third ? "kZeros" : "kZero";
  const std::string members = fmt::format("{}, {}, tile::cuda::PackedForm::{}, {}", w.bits,
                                          w.block >= o.depth ? 0 : w.block, form, w.third ? 0 : w.zero);
  OperandText result;
  if (o.dtype == DType::kF32) {
    const bool bytes = w.third && task.operands[*w.third].dtype == DType::kU8;
    result.type = fmt::format("tile::cuda::PackedRowsMatrix<{}, {}>", members, bytes ? "uint8_t" : "float");
    const int64_t words = ceil_div(o.depth, tile::packed_per_word(w.bits));
    result.block = argument_bytes(tile::GemmPackedRowsArgs{nullptr, nullptr, nullptr, static_cast<int32_t>(lines),
                                                           static_cast<int32_t>(o.depth), static_cast<int32_t>(words),
                                                           static_cast<int32_t>(w.blocks)});
    point_to_weights<tile::GemmPackedRowsArgs>(result, o);
    return result;
  }
  result.type = fmt::format("tile::cuda::PackedMatrix<{}>", members);
  tile::GemmPackedArgs args{};
  args.exponent = w.exponent;
  args.groups = static_cast<int32_t>(ceil_div(lines, tile::kFragmentRows));
  args.depths = static_cast<int32_t>(ceil_div(o.depth, tile::kFragmentDepth));
  args.blocks = static_cast<int32_t>(w.blocks);
  result.block = argument_bytes(args);
  point_to_weights<tile::GemmPackedArgs>(result, o);
  return result;
}

}  // namespace

OperandTexts operand_texts(const ProductTask& task, LinesOf as_lines) {
  const schedule::Product& p = task.product;
  const auto text_of = [&](const OperandView& o, int64_t lines, DType multiply, const char* name) {
    if (o.sums_windows()) return OperandText{};  // of kernels that know how to read it
    if (o.form == OperandView::Form::kPacked) return packed_text(task, o, lines);
    if (o.form == OperandView::Form::kImage) return image_text(o, p.batch);
    if (o.form == OperandView::Form::kComputed) return computed(task, o, lines, multiply, name);
    if (o.form == OperandView::Form::kMerged) return merged_text(o, lines, name);
    const bool shifts = as_lines == LinesOf::kShifted && o.shifted(lines, multiply);
    return matrix_text(o, lines, as_lines == LinesOf::kAll || shifts, name);
  };
  OperandTexts texts = {text_of(p.a, p.m, p.multiply_a, "OperandA"), text_of(p.b, p.n, p.multiply_b, "OperandB")};
  // Operands of one form are one type.
  if (!texts.a.text.empty() && text_of(p.b, p.n, p.multiply_b, "OperandA").text == texts.a.text) {
    texts.b.text = "using OperandB = OperandA;\n";
  }
  return texts;
}

}  // namespace heddle::codegen
