#include "codegen/product/cpu/contraction.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "codegen/product/cpu/functor.h"
#include "codegen/product/cpu/micro_table.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/blocking.h"
#include "schedule/product/contraction_builder.h"
#include "tile/core/pack.h"

namespace heddle::codegen {
namespace {

using schedule::ConvDesc;
using schedule::CpuConvConfig;
using schedule::CpuGemmConfig;
using schedule::CpuPlanarConfig;
using schedule::CpuWinogradConfig;
using schedule::GemmDesc;
using schedule::GemmOperand;
using schedule::PackDesc;
using schedule::WinogradDesc;

// Steps of k from which what a micro tile costs besides, some tens of cycles more where sizes are not literals, is
// nothing beside its products. Convolutions 3->64 of 3x3 (27 steps) lost 15% by it, products of 64 steps 5%.
constexpr int64_t kDeep = 256;
// Multiply-adds from which the same holds for what each call costs besides.
constexpr double kLargeWork = 1 << 20;

// A functor that computes an operand of a GEMM: lanes along the last of its three loops.
FunctorMembers write_computed(Writer& out, const KernelDesc& desc, const GemmDesc& gemm, const GemmOperand& operand,
                              DType compute, const char* name, const Sizes& sizes) {
  FunctorMembers members(gemm.pool, desc.operands);
  members.begin_at_slices({operand.element}, {});
  members.use(operand.element);
  members.drop_numbers();
  if (sizes.marked()) members.mark_numbers();
  out.open(fmt::format("struct {} {{", name));
  members.declare(out);
  out.raw("template <int W, typename N>");
  out.open(
      fmt::format("TILE_INLINE tile::vec<{}, W> operator()(int64_t i0, int64_t i1, "
                  "int64_t i2, N n) const {{",
                  computed_type(compute)));
  Names names = members.names();
  for (size_t i = 0; i < 3; ++i) names.vars[operand.vars[i]] = fmt::format("i{}", i);
  ScalarEmitter emitter = body_emitter(gemm.pool, std::move(names), members, out);
  emitter.set_lanes(Lanes{operand.vars[2], "W", "n"});
  const std::string value = emitter.vector(operand.element);
  out.line("return tile::convert<{}>({});", computed_type(compute), value);
  out.close();
  out.close("};");
  return members;
}

// What several kernels call. Each unit may define it, so definitions are weak; declarations are not, so that one that
// is missing shows when units are linked.
constexpr std::string_view kDeclared = "extern \"C\" __attribute__((visibility(\"hidden\")))";
constexpr std::string_view kDefined = "extern \"C\" __attribute__((weak, noipa, visibility(\"hidden\")))";

struct Emission {
  Writer out;
  const ChainPlace* place = nullptr;  // of a link of a chain
  Sizes sizes{Sizes::Form::kLiteral};
  std::optional<MicroTables> micro;
  std::vector<std::string> includes;
  int64_t tasks = 1, scratch_bytes = 0;
};

// What a kernel calls its micro-kernels.
std::string micro_of(const Emission& e) {
  return e.sizes.shared() ? "micro" : e.micro->value;
}

// A function of a kernel's parameters and `more` in front of them.
std::string signature(std::string_view linkage, std::string_view symbol, const std::string& more = "") {
  return fmt::format("{} void {}({}void* const* operands, void* scratch, int64_t begin, int64_t end)", linkage, symbol,
                     more);
}
// What a function that several kernels share takes besides.
std::string shared_parameters(const Emission& e) {
  return fmt::format("const {}& micro, const int64_t* s, ", e.micro->type);
}

void open_kernel(Emission& e, const KernelDesc& desc) {
  if (e.place != nullptr) {
    e.out.open("void make(void* const* all, const tile::ChainPart& part) {");
    e.out.line("void* const operands[] = {{{}}};", fmt::join(e.place->operands, ", "));
    return;
  }
  e.out.close("}  // namespace");
  const bool shared = e.sizes.shared();
  e.out.open((shared ? signature(kDefined, kStandIn, shared_parameters(e)) : signature("extern \"C\"", kStandIn)) +
             " {");
  if (e.sizes.marks_places() && !shared) e.out.raw(argument_line(argument_array(desc.operands.size())));
}

// Which rows a convolution makes, behind its other arguments: those of a part of a chain, else of tasks.
std::string_view rows_of(const Emission& e) {
  return e.place != nullptr ? "part.scratch, part.image, part.row, part.rows" : "scratch, begin, end";
}

// Those of a product: pixels of the image's rows.
std::string gemm_rows_of(const ChainPlace& place) {
  const auto pixels = [&](const std::string& rows) {
    return place.pixels == 1 ? rows : fmt::format("{} * {}", rows, place.pixels);
  };
  const std::string row = place.by_image      ? "part.image, " + pixels("part.row")
                          : place.images == 1 ? "0, " + pixels("part.row")
                                              : "0, " + pixels(fmt::format("(part.image * {} + part.row)", place.rows));
  return row + ", " + pixels("part.rows");
}

// How the shape of a problem is declared.
std::string_view constness(const Sizes& sizes) {
  return sizes.shared() || sizes.marked() ? "const" : "constexpr";
}

// The weights of few bits.
std::string packed_text(const KernelDesc& desc, const GemmDesc& gemm) {
  const schedule::PackedWeights& w = *gemm.packed;
  const std::string_view scales = storage_type(desc.operands[w.scales].dtype);
  const std::string_view third = w.third ? storage_type(desc.operands[*w.third].dtype) : scales;
  const std::string_view zero = !w.third ? "kNone" : w.is_table ? "kTable" : "kBlocks";
  return fmt::format("tile::PackedWeights<{}, tile::PackedZero::{}, {}, {}, {}>{{{}, {}, {}, {{{}, {}, {}}}, {}}}",
                     w.bits, zero, w.digits, scales, third, argument(desc, gemm.b.operand), argument(desc, w.scales),
                     w.third ? argument(desc, *w.third) : "nullptr", w.bits, w.block, w.digits, w.zero);
}

std::string operand_text(const KernelDesc& desc, const GemmOperand& o, std::string_view compute, bool is_a,
                         const std::optional<FunctorMembers>& computed, Sizes& sizes) {
  using Form = GemmOperand::Form;
  const std::string_view stored = storage_type(o.dtype);
  if (o.form == Form::kComputed) {
    return fmt::format("tile::Computed{0}<{1}, Computed{0}>{{{2}}}", is_a ? "A" : "B", compute,
                       initialisers(desc, *computed, sizes));
  }
  const std::string pointer = argument(desc, o.operand) + sizes.place(o.offset);
  if (o.form == Form::kPacked) {
    return fmt::format("tile::PackedB<{}, {}>{{{}, {}}}", compute, stored, pointer, sizes.batch(o.batch));
  }
  const std::string batch = sizes.batch(o.batch), row = sizes.folded(o.row), col = sizes.folded(o.col);
  const std::string strided = fmt::format("{{{{{}, {}, {}, {}}}}}", pointer, batch, row, col);
  if (o.form == Form::kDirect) return fmt::format("tile::DirectA<{}>{}", compute, strided);
  return fmt::format("tile::{}<{}, {}>{}", is_a ? "CopiedA" : "StridedB", compute, stored, strided);
}

// The types of a product: of its sums, of what A and B are stored as in scratch memory, and of the elements of these.
struct ProductTypes {
  std::string_view sums;
  std::string_view word;  // "": operands consist of elements of the type of the sums
  DType a_element, b_element;
};

ProductTypes types_of(schedule::Words words, DType compute) {
  using schedule::Words;
  const std::string_view word = words == Words::kBytes     ? "tile::byte_quad"
                                : words == Words::kShorts  ? "tile::short_pair"
                                : words == Words::kBfloats ? "tile::bfloat_pair"
                                                           : "";
  if (word.empty()) return {computed_type(compute), word, compute, compute};
  return {computed_type(compute), word, schedule::element_of(words, true), schedule::element_of(words, false)};
}

// An operand of words.
std::string words_text(const KernelDesc& desc, const GemmDesc& gemm, bool is_a, const ProductTypes& types,
                       const std::optional<FunctorMembers>& computed, Sizes& sizes) {
  using Form = GemmOperand::Form;
  const GemmOperand& o = is_a ? gemm.a : gemm.b;
  const std::string terms = sizes(gemm.terms);
  if (o.form == Form::kComputed) {
    return fmt::format("tile::{0}<{1}, Computed{2}>{{{{{3}}}, {4}}}", is_a ? "ComputedWordsA" : "WordsB", types.word,
                       is_a ? "A" : "B", initialisers(desc, *computed, sizes), terms);
  }
  if (o.form == Form::kPacked) {
    return fmt::format("tile::PackedB<{0}, {1}>{{static_cast<const {1}*>(operands[{2}]), {3}}}", types.sums, types.word,
                       o.operand, sizes.batch(o.batch));
  }
  const std::string pointer = argument(desc, o.operand) + sizes.place(o.offset);
  if (o.form == Form::kDirect) {
    int64_t batch[tile::kBatchDims], elements = schedule::elements_of(gemm.words);
    for (int d = 0; d < tile::kBatchDims; ++d) batch[d] = o.batch[d] / elements;
    const std::string in_words = sizes.batch(batch), row = sizes.folded(o.row / elements);
    return fmt::format("tile::DirectA<{0}>{{{{reinterpret_cast<const {0}*>({1}), {2}, {3}, 1}}}}", types.sums, pointer,
                       in_words, row);
  }
  const std::string batch = sizes.batch(o.batch), row = sizes.folded(o.row), col = sizes.folded(o.col);
  const std::string strided = fmt::format("{{{}, {}, {}, {}}}", pointer, batch, row, col);
  const std::string_view stored = storage_type(o.dtype);
  if (is_a) return fmt::format("tile::WordsA<{}, {}>{{{}, {}}}", types.word, stored, strided, terms);
  return fmt::format("tile::WordsB<{0}, tile::StridedElements<{0}, {1}>>{{{{{2}, shape}}, {3}}}", types.word, stored,
                     strided, terms);
}

// The bytes of the rows that a task rounds.
int64_t packed_scratch(const GemmDesc& gemm, int64_t rows) {
  const schedule::PackedWeights& w = *gemm.packed;
  return tile::PackedShape{w.bits, w.block, w.digits}.scratch_bytes(rows, gemm.shape.k);
}

// Rows as micro tiles of `height` and one less.
tile::RowSplit split_into(int64_t rows, int64_t height) {
  const int64_t tiles = rows <= 0 ? 0 : (rows + height - 1) / height, tall = rows - tiles * (height - 1);
  HEDDLE_CHECK(tall >= 0, "{} rows are no tiles of {} and {}", rows, height, height - 1);
  return {height, tiles, tiles == 0 ? 0 : tall};
}

void emit_gemm(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const GemmDesc& gemm,
               const CpuGemmConfig& config, const Target& target, int64_t lanes) {
  const int64_t summed = gemm.packed ? schedule::packed_steps(gemm) : schedule::summed_steps(c.compute, gemm.shape.k);
  const bool is_long = e.place == nullptr && summed > 0;
  e.includes = {is_long ? "tile/kernel/cpu/gemm_long.h" : "tile/kernel/cpu/gemm.h", "tile/op/lanes.h",
                "tile/op/math.h"};
  const ProductTypes types = types_of(gemm.words, c.compute);
  const std::string_view compute = types.sums;
  std::optional<FunctorMembers> computed_a, computed_b;
  if (gemm.a.form == GemmOperand::Form::kComputed) {
    computed_a.emplace(write_computed(e.out, desc, gemm, gemm.a, types.a_element, "ComputedA", e.sizes));
  }
  if (gemm.b.form == GemmOperand::Form::kComputed) {
    computed_b.emplace(write_computed(e.out, desc, gemm, gemm.b, types.b_element, "ComputedB", e.sizes));
  }
  const bool along_rows = e.place == nullptr && !is_long && runs_along_rows(c.epilogue);
  const FunctorMembers members = write_epilogue(e.out, desc, c.epilogue, e.sizes, true, along_rows);
  tile::GemmShape s = gemm.shape;
  // Of a chain each part of the rows is cut for itself.
  const tile::RowSplit rows = split_into(e.place != nullptr ? config.tile_m : s.m, config.micro_m);
  s.tiles = rows.tiles, s.tall = rows.tall;
  s.block_tiles = config.tile_m / config.micro_m, s.block_panels = config.tile_n / config.micro_n;
  if (e.place != nullptr) s.block_tiles = s.tiles;
  s.block_k = is_long ? summed : 0;
  e.tasks = s.tasks(config.micro_n);
  const bool copies_a = gemm.a.form != GemmOperand::Form::kDirect;
  const bool widens = gemm.packed && gemm.packed->in_registers;
  const bool packs_b = gemm.b.form != GemmOperand::Form::kPacked && !widens;
  e.scratch_bytes = s.scratch_bytes(config.micro_m, config.micro_n, static_cast<int64_t>(size_of(c.compute)), copies_a,
                                    packs_b, along_rows);
  if (gemm.packed) e.includes.push_back("tile/kernel/cpu/gemm_packed.h");
  if (gemm.packed) e.scratch_bytes += packed_scratch(gemm, std::min(s.block_tiles, s.tiles) * config.micro_m);
  const bool as_stored = gemm.b.form == GemmOperand::Form::kPacked;
  const std::string_view stored = as_stored ? storage_type(gemm.b.dtype) : compute;
  const MicroProblem micro = {.compute = compute,
                              .stored = types.word.empty() ? stored : types.word,
                              .columns = s.n,
                              .lanes = lanes,
                              .any_columns = !as_stored,
                              .words = gemm.words,
                              .rows = s.m};
  if (!widens) e.micro = micro_tables(micro, config.micro_m, config.micro_n, target, e.sizes.marked());
  open_kernel(e, desc);
  Sizes& z = e.sizes;
  const std::string batch = z.batch(s.batch);
  e.out.line("{} tile::GemmShape shape{{.batch = {}, {}}};", constness(z), batch,
             z.fields({{"m", s.m},
                       {"n", s.n},
                       {"k", s.k},
                       {"tiles", s.tiles},
                       {"tall", s.tall},
                       {"block_tiles", s.block_tiles},
                       {"block_panels", s.block_panels}}) +
                 (is_long ? fmt::format(", .block_k = {}", s.block_k) : ""));
  const auto operand = [&](bool is_a) {
    const auto& computed = is_a ? computed_a : computed_b;
    if (!is_a && gemm.packed) return packed_text(desc, gemm);
    if (!types.word.empty()) return words_text(desc, gemm, is_a, types, computed, z);
    return operand_text(desc, is_a ? gemm.a : gemm.b, compute, is_a, computed, z);
  };
  e.out.line("const auto a = {};", operand(true));
  e.out.line("const auto b = {};", operand(false));
  e.out.line("const Epilogue epilogue{};", initialisers(desc, members, e.sizes));
  if (widens) {
    e.out.line("tile::gemm_packed<{}, {}>(shape, a, b, epilogue, scratch, begin, end);", config.micro_m,
               config.micro_n / lanes);
  } else if (e.place == nullptr) {
    e.out.line("tile::gemm{}<{}>({}, shape, a, b, epilogue, scratch, begin, end);", is_long ? "_long" : "",
               e.micro->arguments, micro_of(e));
  } else {
    e.out.line("tile::gemm_rows<{}>({}, shape, a, b, epilogue, part.scratch, {});", e.micro->arguments, micro_of(e),
               gemm_rows_of(*e.place));
  }
  e.out.close();
}

template <size_t N>
std::string list(const int64_t (&values)[N]) {
  return Sizes(Sizes::Form::kLiteral).list(values);
}

// The window itself is part of the text: loops over it unroll.
template <typename Shape>
std::string window_fields(const Shape& s, Sizes& sizes) {
  const std::string in = sizes.list(s.in), out = sizes.list(s.out);
  return fmt::format(".in = {}, .out = {}, .kernel = {}, .stride = {}, .dilation = {}, .low = {}", in, out,
                     list(s.kernel), list(s.stride), list(s.dilation), list(s.low));
}

// Declares the table of taps; the argument that names it.
std::string write_taps(Writer& out, const std::vector<tile::ConvTaps>& panels) {
  if (panels.empty()) return "";
  std::vector<std::string> boxes;
  for (const tile::ConvTaps& box : panels) {
    boxes.push_back(fmt::format("{{{{{}}}, {{{}}}}}", fmt::join(box.first, ", "), fmt::join(box.end, ", ")));
  }
  out.line("static constexpr tile::ConvTaps taps[] = {{{}}};", fmt::join(boxes, ", "));
  return ", taps";
}

void emit_conv(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const ConvDesc& conv,
               const CpuConvConfig& config, const Target& target, int64_t lanes) {
  e.includes = {"tile/kernel/cpu/conv.h", "tile/op/lanes.h", "tile/op/math.h"};
  const std::string_view compute = computed_type(c.compute);
  const bool is_long = e.place == nullptr && schedule::summed_steps(c.compute, conv.shape.k()) > 0;
  const bool along_rows = e.place == nullptr && !is_long && runs_along_rows(c.epilogue);
  const FunctorMembers members = write_epilogue(e.out, desc, c.epilogue, e.sizes, true, along_rows);
  tile::ConvShape s = conv.shape;
  const tile::RowSplit rows = split_into(s.out[2], config.micro_m);
  s.tiles = rows.tiles, s.tall = rows.tall;
  s.block_rows = config.rows, s.block_panels = config.tile_n / config.micro_n;
  s.block_k = is_long ? schedule::summed_steps(c.compute, s.k()) : 0;
  e.tasks = s.tasks(config.micro_n);
  e.scratch_bytes = s.scratch_bytes(config.micro_m, config.micro_n, static_cast<int64_t>(size_of(c.compute)),
                                    !conv.direct, along_rows);
  const ProductTypes types = types_of(conv.words, c.compute);
  const bool words = !types.word.empty();
  const MicroProblem micro = {.compute = compute,
                              .stored = words ? types.word : storage_type(desc.operands[1].dtype),
                              .columns = s.o,
                              .lanes = lanes,
                              .words = conv.words,
                              .rows = s.out[2]};
  e.micro = micro_tables(micro, config.micro_m, config.micro_n, target, e.sizes.marked());
  open_kernel(e, desc);
  Sizes& z = e.sizes;
  const std::string batch = z.of_batch(s.batch), groups = z.folded(s.groups),
                    channels = z.fields({{"c", s.c}, {"o", s.o}});
  const std::string window = window_fields(s, z);
  e.out.line(
      "{} tile::ConvShape shape{{.batch = {}, .groups = {}, {}, {}, .lhs_dilation = {}, {}}};", constness(z), batch,
      groups, channels, window, list(s.lhs_dilation),
      z.fields({{"tiles", s.tiles}, {"tall", s.tall}, {"block_rows", s.block_rows}, {"block_panels", s.block_panels}}) +
          (is_long ? fmt::format(", .block_k = {}", s.block_k) : "") +
          (s.phases > 1 ? fmt::format(", .phases = {}", s.phases) : "") +
          (c.epilogue.interleaved > 1
               ? fmt::format(", .results = {{{}, {}}}", z(c.epilogue.results[0]), z(c.epilogue.results[1]))
               : ""));
  if (conv.direct) {
    const std::string image = argument(desc, 0);
    e.out.line("const tile::DirectX<{}> x{{{}}};", compute,
               words ? fmt::format("reinterpret_cast<const {}*>({})", compute, image) : image);
  } else {
    const std::string offset = z.place(conv.offset), image = z.of_batch(conv.batch);
    const std::string stride = z.list(conv.stride), channel = z.folded(conv.channel);
    const std::string element = words ? fmt::format(", {}", storage_type(types.a_element)) : "";
    const std::string real_channels = words ? ", " + z(conv.channels) : "";
    e.out.line("const tile::CopiedX<{}, {}{}> x{{{}{}, {}, {}, {}{}}};", compute, storage_type(conv.x), element,
               argument(desc, 0), offset, image, stride, channel, real_channels);
  }
  e.out.line("const Epilogue epilogue{};", initialisers(desc, members, e.sizes));
  const std::string arguments =
      e.micro->arguments + (e.micro->arguments.find(',') == std::string::npos ? ", false" : "");
  const std::string taps = write_taps(e.out, conv.taps);
  const std::string filters =
      words ? fmt::format("static_cast<const {}*>(operands[1])", types.word) : argument(desc, 1);
  e.out.line("tile::conv{}<{}>({}, shape, x, {}, epilogue, {}{});", e.place ? "_rows" : "",
             is_long ? arguments + ", true" : e.micro->arguments, micro_of(e), filters, rows_of(e), taps);
  e.out.close();
}

void emit_planar(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const ConvDesc& conv,
                 const CpuPlanarConfig& config, int64_t lanes) {
  e.includes = {"tile/kernel/cpu/conv_planar.h", "tile/op/lanes.h", "tile/op/math.h"};
  const FunctorMembers members = write_epilogue(e.out, desc, c.epilogue, e.sizes, false, c.epilogue.along_rows);
  tile::ConvShape s = conv.shape;
  s.block_rows = config.rows, s.block_pixels = config.pixels;
  e.tasks = s.planar_tasks();
  e.scratch_bytes = s.planar_scratch_bytes(static_cast<int64_t>(size_of(c.compute)), !conv.direct);
  open_kernel(e, desc);
  Sizes& z = e.sizes;
  const std::string batch = z.of_batch(s.batch), groups = z.folded(s.groups),
                    channels = z.fields({{"c", s.c}, {"o", s.o}});
  const std::string window = window_fields(s, z);
  e.out.line("{} tile::ConvShape shape{{.batch = {}, .groups = {}, {}, {}, {}}};", constness(z), batch, groups,
             channels, window, z.fields({{"block_rows", s.block_rows}, {"block_pixels", s.block_pixels}}));
  e.out.line("const Epilogue epilogue{};", initialisers(desc, members, e.sizes));
  const std::string shared = config.micro_rows == 1 ? "void"
                                                    : fmt::format("tile::PlanarRows<{}, {}, {}, {}>", config.micro_rows,
                                                                  s.kernel[1], s.kernel[2], s.stride[1]);
  e.out.line("tile::conv_planar<{}, {}, {}, {}, {}>(shape, {}, {}, epilogue, scratch, begin, end);", config.micro_m,
             config.micro_n / lanes, conv.direct, computed_type(c.compute), shared, argument(desc, 0),
             argument(desc, 1));
  e.out.close();
}

void emit_winograd(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const WinogradDesc& winograd,
                   const CpuWinogradConfig& config, const Target& target, int64_t lanes) {
  e.includes = {"tile/kernel/cpu/winograd.h", "tile/op/lanes.h", "tile/op/math.h"};
  const FunctorMembers members = write_epilogue(e.out, desc, c.epilogue, e.sizes, true);
  tile::WinogradShape s = winograd.shape;
  const tile::RowSplit rows = tile::split_rows(config.tiles, config.micro_m);
  s.block_tiles = config.tiles, s.row_tiles = rows.tiles, s.tall = rows.tall;
  s.block_panels = config.tile_n / config.micro_n;
  e.tasks = s.tasks(config.micro_n);
  e.scratch_bytes = s.scratch_bytes(config.micro_n);
  const bool words = s.elements > 1;
  const std::string_view sums = words ? "int32_t" : "float", word = words ? "tile::short_pair" : "float";
  e.micro = micro_tables({sums, word, s.o, lanes, false}, config.micro_m, config.micro_n, target, e.sizes.marked());
  open_kernel(e, desc);
  Sizes& z = e.sizes;
  std::string extents = z.fields({{"batch", s.batch}, {"c", s.c}, {"o", s.o}});
  if (s.pixel > 0) extents += ", " + z.fields({{"pixel", s.pixel}});
  const std::string in = z.list(s.in), out = z.list(s.out);
  e.out.line("{} tile::WinogradShape shape{{{}, .in = {}, .out = {}, .low = {}, .dilation = {}{}, {}}};", constness(z),
             extents, in, out, list(s.low), list(s.dilation), words ? ", .elements = 2" : "",
             z.fields({{"block_tiles", s.block_tiles},
                       {"row_tiles", s.row_tiles},
                       {"tall", s.tall},
                       {"block_panels", s.block_panels}}));
  e.out.line("const Epilogue epilogue{};", initialisers(desc, members, e.sizes));
  const std::string images = argument(desc, 0) + (winograd.offset > 0 ? z.place(winograd.offset) : "");
  e.out.line("tile::winograd{}<{}>({}, shape, {}, static_cast<const {}*>(operands[1]), epilogue, {});",
             e.place ? "_rows" : "", e.micro->arguments, micro_of(e), images, word, rows_of(e));
  e.out.close();
}

void emit_window(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const WindowDesc& window) {
  e.includes = {window.rows ? "tile/kernel/cpu/window_rows.h" : "tile/kernel/cpu/window.h", "tile/op/lanes.h",
                "tile/op/math.h"};
  const std::string_view compute = computed_type(c.compute);
  const FunctorMembers members = write_epilogue(e.out, desc, c.epilogue, e.sizes, true);
  const tile::WindowShape& s = window.shape;
  const int64_t lines = s.kernel[0] * s.kernel[1];
  const int64_t taps = window.rows ? std::max(lines, s.kernel[2]) : lines * s.kernel[2];
  const bool is_long = schedule::summed_steps(c.compute, taps) > 0;
  const char* long_sum = is_long && (window.filters || window.kind == "sum") ? ", true" : "";
  e.tasks = s.tasks();
  open_kernel(e, desc);
  std::string extents = e.sizes.fields({{"batch", s.batch}, {"c", s.c}});
  if (s.pixel > 0) extents += ", " + e.sizes.fields({{"pixel", s.pixel}});
  e.out.line("{} tile::WindowShape shape{{{}, {}}};", constness(e.sizes), extents, window_fields(s, e.sizes));
  if (window.words != schedule::Words::kNone) {
    const bool pairs = s.has_pairs_of_taps();
    const std::string size = pairs ? fmt::format(", {}, {}, {}", s.kernel[1], s.kernel[2], s.stride[2]) : "";
    e.out.line("const tile::Depthwise{}Op<{}{}> op{{{{{}, {}}}}};", pairs ? "Pairs" : "Words",
               types_of(window.words, c.compute).word, size, argument(desc, 1), e.sizes(s.c));
  } else if (window.filters) {
    e.out.line("const tile::DepthwiseOp<{}, {}{}> op{{{}, {}}};", compute, storage_type(window.w), long_sum,
               argument(desc, 1), e.sizes(s.c));
  } else {
    const std::string kind = window.kind == "sum"    ? "kSum"
                             : window.kind == "prod" ? "kProd"
                             : window.kind == "max"  ? "kMax"
                                                     : "kMin";
    e.out.line("const tile::PoolOp<tile::WindowKind::{}, {}{}> op;", kind, compute, long_sum);
  }
  e.out.line("const Epilogue epilogue{};", initialisers(desc, members, e.sizes));
  if (e.place != nullptr) {
    e.out.line("const int64_t begin = part.image * {} + part.row, end = begin + part.rows;", e.sizes(s.out[1]));
  }
  if (window.rows) e.scratch_bytes = s.scratch_bytes(static_cast<int64_t>(size_of(c.compute)));
  const std::string images = argument(desc, 0) + (window.offset > 0 ? e.sizes.place(window.offset) : "");
  e.out.line("tile::window{}(shape, {}, op, epilogue, {}begin, end);", window.rows ? "_rows" : "", images,
             window.rows ? "scratch, " : "");
  e.out.close();
}

void emit_pack(Emission& e, const KernelDesc& desc, const PackDesc& pack) {
  e.includes = {"tile/core/pack.h", "tile/core/types.h"};
  const tile::PanelSource& s = pack.source;
  const int64_t panels = tile::panel_count(s, pack.width);
  e.tasks = s.groups * panels;
  open_kernel(e, desc);
  Sizes& z = e.sizes;
  std::vector<std::string> fields;
  for (const int64_t field :
       {s.groups, s.group_stride, s.outer, s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride}) {
    fields.push_back(z(field));
  }
  e.out.line("{} tile::PanelSource source{{{}}};", constness(z), fmt::join(fields, ", "));
  e.out.open("for (int64_t task = begin; task < end; ++task) {");
  e.out.line("tile::pack_panel({} + task * {}, {}{}, source, {}, task / {}, task % {}, [](auto x) {{ return x; }});",
             argument(desc, 1), z(s.outer * s.inner * pack.width), argument(desc, 0), z.place(pack.offset), pack.width,
             z(panels), z(panels));
  e.out.close();
  e.out.close();
}

bool is_large(double results, int64_t terms) {
  return terms >= kDeep && results * static_cast<double>(terms) >= kLargeWork;
}

// Whether kernels of this problem in other sizes are to be the same.
bool is_large(const ContractionDesc& c) {
  using Form = GemmOperand::Form;
  return c.visit(
      [](const GemmDesc& gemm) {
        const tile::GemmShape& s = gemm.shape;
        return gemm.a.form != Form::kComputed && gemm.b.form != Form::kComputed && !gemm.packed &&
               is_large(static_cast<double>(s.batches()) * static_cast<double>(s.m * s.n), s.k);
      },
      [](const ConvDesc& conv) {
        const tile::ConvShape& s = conv.shape;
        const int64_t results = s.batch * s.out[0] * s.out[1] * s.out[2] * s.groups * s.o;
        return !conv.planar && is_large(static_cast<double>(results), s.k());
      },
      [](const auto&) { return false; });
}

void emit_problem(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const schedule::Config& config,
                  const Target& target) {
  const int64_t lanes = schedule::micro_limits(target).vector_bytes / static_cast<int64_t>(size_of(c.compute));
  c.visit([&](const GemmDesc& gemm) { emit_gemm(e, desc, c, gemm, config.as<CpuGemmConfig>(), target, lanes); },
          [&](const ConvDesc& conv) {
            if (conv.planar) return emit_planar(e, desc, c, conv, config.as<CpuPlanarConfig>(), lanes);
            emit_conv(e, desc, c, conv, config.as<CpuConvConfig>(), target, lanes);
          },
          [&](const WinogradDesc& winograd) {
            emit_winograd(e, desc, c, winograd, config.as<CpuWinogradConfig>(), target, lanes);
          },
          [&](const WindowDesc& window) { emit_window(e, desc, c, window); },
          [&](const PackDesc& pack) { emit_pack(e, desc, pack); },
          [](const schedule::Product&) { HEDDLE_CHECK(false, "a product of a GPU"); });
}

Emission write(const KernelDesc& desc, const ContractionDesc& c, const schedule::Config& config, const Target& target,
               Marks marks) {
  using Form = Sizes::Form;
  Emission e;
  e.sizes = Sizes(marks == Marks::kAll ? Form::kMarked
                  : is_large(c)        ? Form::kShared
                                       : Form::kLiteral,
                  marks == Marks::kPlaces);
  e.out.open(fmt::format("namespace {}_parts {{", kStandIn));
  e.out.open("namespace {");
  emit_problem(e, desc, c, config, target);
  e.out.close(fmt::format("}}  // namespace {}_parts", kStandIn));
  return e;
}

// The kernel that calls `shared` with its micro-kernels and sizes.
std::string calling(const KernelText& shared, const Emission& e, const KernelDesc& desc) {
  Writer out;
  out.raw(signature(kDeclared, shared.symbol, shared_parameters(e)) + ";");
  out.open(signature("extern \"C\"", kStandIn) + " {");
  if (e.sizes.marks_places()) out.raw(argument_line(argument_array(desc.operands.size())));
  out.line("{} int64_t sizes[] = {{{}}};", e.sizes.marks_places() ? "const" : "static constexpr",
           fmt::join(e.sizes.values(), ", "));
  out.line("{}({}, sizes, operands, scratch, begin, end);", shared.symbol, e.micro->value);
  out.close();
  return out.text();
}

}  // namespace

bool sizes_are_free(const ContractionDesc& c) {
  return is_large(c) || c.get<WinogradDesc>() != nullptr;
}

LinkText emit_link(Writer& out, const KernelDesc& desc, const ContractionDesc& contraction,
                   const schedule::Config& config, const ChainPlace& place, const Target& target) {
  Emission e;
  e.place = &place;
  e.out = std::move(out);
  emit_problem(e, desc, contraction, config, target);
  out = std::move(e.out);
  return {std::move(e.includes), e.micro ? std::move(e.micro->texts) : std::vector<KernelText>{}, e.scratch_bytes};
}

KernelSource emit_cpu_contraction(const KernelDesc& desc, const ContractionDesc& contraction,
                                  const schedule::Config& config, const Target& target, Marks marks) {
  Emission e = write(desc, contraction, config, target, marks);
  KernelSource source;
  source.includes = e.includes;
  source.text = e.out.text(source.includes);
  source.tasks = e.tasks;
  source.scratch_bytes = e.scratch_bytes;
  std::vector<schedule::ExprId> results;
  for (const Epilogue::Store& store : contraction.epilogue.stores) results.push_back(store.value);
  const std::string operators = operators_of(contraction.epilogue.pool, results), family(family_of(config)),
                    name = family + operators;
  if (e.sizes.shared()) {
    KernelText shared = std::move(source);
    shared.symbol = name_kernel(shared.text, family + "_any" + operators);
    source.text = calling(shared, e, desc);
    source.includes = {"tile/kernel/cpu/micro.h"};
    source.others.push_back(std::move(shared));
  }
  if (e.micro) source.others.insert(source.others.end(), e.micro->texts.begin(), e.micro->texts.end());
  if (marks != Marks::kNone) {
    source.symbol = name;
    return source;
  }
  declare_others(source);
  source.symbol = name_kernel(source.text, name);
  return source;
}

}  // namespace heddle::codegen
