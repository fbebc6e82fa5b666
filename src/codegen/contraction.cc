#include "codegen/contraction.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "codegen/includes.h"
#include "codegen/scalar.h"
#include "codegen/writer.h"
#include "schedule/contraction_builder.h"

namespace heddle::codegen {
namespace {

using schedule::ContractionDesc;
using schedule::ConvDesc;
using schedule::Epilogue;
using schedule::Expr;
using schedule::GemmDesc;
using schedule::GemmOperand;
using schedule::KernelDesc;
using schedule::Operand;
using schedule::PackDesc;
using schedule::WindowDesc;
using schedule::WinogradDesc;

std::string pointer_type(const Operand& operand) {
  return fmt::format("{}{}*", operand.role == Operand::Role::kInput ? "const " : "", storage_type(operand.dtype));
}
// "static_cast<const float*>(operands[2])"
std::string argument(const KernelDesc& desc, uint32_t operand) {
  return fmt::format("static_cast<{}>(operands[{}])", pointer_type(desc.operands[operand]), operand);
}

// Operands that the loads below an expression read, through computed indices too.
void collect_loads(const schedule::ExprPool& pool, schedule::ExprId id, std::set<uint32_t>& operands) {
  const Expr& e = pool[id];
  if (e.kind == Expr::Kind::kLoad) operands.insert(e.id);
  for (schedule::ExprId arg : e.args) collect_loads(pool, arg, operands);
  for (const auto& [atom, coefficient] : e.index.terms) {
    if (pool.indices.atom(atom).kind == schedule::Atom::Kind::kDynamic) {
      collect_loads(pool, pool.indices.atom(atom).id, operands);
    }
  }
}

Names buffer_names(const KernelDesc& desc) {
  Names names;
  for (size_t i = 0; i < desc.operands.size(); ++i) names.buffers.push_back(fmt::format("p{}", i));
  return names;
}

void declare_members(Writer& out, const KernelDesc& desc, const std::set<uint32_t>& operands) {
  for (uint32_t id : operands) out.line("{} p{};", pointer_type(desc.operands[id]), id);
}
std::string initialisers(const KernelDesc& desc, const std::set<uint32_t>& operands) {
  std::string text;
  for (uint32_t id : operands) text += (text.empty() ? "" : ", ") + argument(desc, id);
  return "{" + text + "}";
}

bool is_dynamic(const schedule::ExprPool& pool, const schedule::Index& at) {
  return std::any_of(at.terms.begin(), at.terms.end(), [&](const auto& term) {
    return pool.indices.atom(term.first).kind == schedule::Atom::Kind::kDynamic;
  });
}

void collect_load_ids(const schedule::ExprPool& pool, schedule::ExprId id, std::set<schedule::ExprId>& loads) {
  if (pool[id].kind == Expr::Kind::kLoad) loads.insert(id);
  for (schedule::ExprId arg : pool[id].args) collect_load_ids(pool, arg, loads);
}

Names epilogue_names(const KernelDesc& desc, const Epilogue& e) {
  Names names = buffer_names(desc);
  names.locals[0] = {"acc", e.accumulator, true};
  names.vars[e.batch] = "batch", names.vars[e.row] = "row";
  names.vars[e.col_outer] = "col_outer", names.vars[e.col] = "col";
  return names;
}

void split_column(Writer& out, const Epilogue& e) {
  if (e.pool.indices.extent(e.col_outer) <= 1) return;
  out.line("[[maybe_unused]] const int64_t col_outer = col / {};", e.split);
  out.line("col %= {};", e.split);
}

// The functor's member `lines` (tile/kernel/cpu/gemm.h): results, and operands that have rows of their own.
void write_lines(Writer& out, const KernelDesc& desc, const Epilogue& e) {
  out.raw("template <typename Visit>");
  out.open(
      "TILE_INLINE void lines([[maybe_unused]] int64_t batch, [[maybe_unused]] int64_t row, "
      "[[maybe_unused]] int64_t col, const Visit& visit) const {");
  split_column(out, e);
  ScalarEmitter emitter(e.pool, epilogue_names(desc, e), out);
  emitter.set_lanes(Lanes{e.col, "1", "1"});
  const auto visit = [&](uint32_t operand, const schedule::Index& at) {
    if (is_dynamic(e.pool, at) || emitter.lane_stride(at) != 1) return;
    out.line("visit(p{} + {});", operand, emitter.index(at));
  };
  std::set<schedule::ExprId> loads;
  for (const Epilogue::Store& store : e.stores) {
    visit(store.operand, store.at);
    collect_load_ids(e.pool, store.value, loads);
  }
  for (schedule::ExprId id : loads) {
    if (e.pool.vars(e.pool[id].index) >> e.row & 1) visit(e.pool[id].id, e.pool[id].index);
  }
  out.close();
}

// Writes the functor and returns the operands that initialise it, in order.
std::set<uint32_t> write_epilogue(Writer& out, const KernelDesc& desc, const Epilogue& e) {
  std::set<uint32_t> operands;
  for (const Epilogue::Store& store : e.stores) {
    operands.insert(store.operand);
    collect_loads(e.pool, store.value, operands);
  }
  out.open("struct Epilogue {");
  declare_members(out, desc, operands);
  out.raw("template <int W, typename N>");
  out.open(
      fmt::format("TILE_INLINE void operator()(tile::vec<{}, W> acc, [[maybe_unused]] int64_t batch, "
                  "[[maybe_unused]] int64_t row, [[maybe_unused]] int64_t col, N n) const {{",
                  computed_type(e.accumulator)));
  split_column(out, e);
  ScalarEmitter emitter(e.pool, epilogue_names(desc, e), out);
  emitter.set_lanes(Lanes{e.col, "W", "n"});
  for (const Epilogue::Store& store : e.stores) {
    const std::string buffer = fmt::format("p{}", store.operand);
    const DType storage = desc.operands[store.operand].dtype;
    if (emitter.lane_stride(store.at)) {
      emitter.store(buffer, storage, store.at, store.value);
      continue;
    }
    // The lanes of a vector lie in several runs of the result.
    const std::string value = emitter.vector(store.value);
    const bool mask = storage == DType::kBool && emitter.value(store.value).mask_bytes > 0;
    emitter.names().vars[e.col] = "(col + k)";
    out.open("for (int64_t k = 0; k < n; ++k) {");
    const std::string lane = fmt::format("tile::lane({}, k)", value);
    out.line("tile::store({} + {}, {});", buffer, emitter.index(store.at),
             mask ? fmt::format("tile::from_mask<uint8_t>({})", lane) : lane);
    out.close();
    emitter.names().vars[e.col] = "col";
  }
  out.close();
  write_lines(out, desc, e);
  out.close("};");
  return operands;
}

// A functor that computes an operand of a GEMM: lanes along the last of its three loops.
std::set<uint32_t> write_computed(Writer& out, const KernelDesc& desc, const GemmDesc& gemm, const GemmOperand& operand,
                                  DType compute, const char* name) {
  std::set<uint32_t> operands;
  collect_loads(gemm.pool, operand.element, operands);
  out.open(fmt::format("struct {} {{", name));
  declare_members(out, desc, operands);
  out.raw("template <int W, typename N>");
  out.open(
      fmt::format("TILE_INLINE tile::vec<{}, W> operator()([[maybe_unused]] int64_t i0, [[maybe_unused]] int64_t i1, "
                  "[[maybe_unused]] int64_t i2, [[maybe_unused]] N n) const {{",
                  computed_type(compute)));
  Names names = buffer_names(desc);
  for (size_t i = 0; i < 3; ++i) names.vars[operand.vars[i]] = fmt::format("i{}", i);
  ScalarEmitter emitter(gemm.pool, std::move(names), out);
  emitter.set_lanes(Lanes{operand.vars[2], "W", "n"});
  const std::string value = emitter.vector(operand.element);
  out.line("return tile::convert<{}>({});", computed_type(compute), value);
  out.close();
  out.close("};");
  return operands;
}

template <size_t N>
std::string list(const int64_t (&values)[N]) {
  return fmt::format("{{{}}}", fmt::join(values, ", "));
}

// Template arguments of gemm and conv: a last panel of one vector or less is computed at that width.
std::string template_arguments(std::string_view compute, const schedule::Config& config, int64_t columns,
                               int64_t lanes) {
  const int64_t tail = columns % config.micro_n;
  const bool narrow = columns > config.micro_n && tail > 0 && tail <= lanes && config.micro_n > lanes;
  return fmt::format("{}, {}, {}{}", compute, config.micro_m, config.micro_n / lanes, narrow ? ", true" : "");
}

struct Emission {
  Writer out;
  std::vector<std::string> includes;
  int64_t tasks = 1, scratch_bytes = 0;
};

std::string operand_text(const KernelDesc& desc, const GemmOperand& o, std::string_view compute, bool is_a,
                         const std::set<uint32_t>& computed) {
  using Form = GemmOperand::Form;
  const std::string_view stored = storage_type(o.dtype);
  if (o.form == Form::kComputed) {
    return fmt::format("tile::Computed{0}<{1}, Computed{0}>{{{2}}}", is_a ? "A" : "B", compute,
                       initialisers(desc, computed));
  }
  const std::string pointer = argument(desc, o.operand) + (o.offset ? fmt::format(" + {}", o.offset) : "");
  if (o.form == Form::kPacked) {
    return fmt::format("tile::PackedB<{}, {}>{{{}, {}}}", compute, stored, pointer, list(o.batch));
  }
  const std::string strided = fmt::format("{{{{{}, {}, {}, {}}}}}", pointer, list(o.batch), o.row, o.col);
  if (o.form == Form::kDirect) return fmt::format("tile::DirectA<{}>{}", compute, strided);
  return fmt::format("tile::{}<{}, {}>{}", is_a ? "CopiedA" : "StridedB", compute, stored, strided);
}

void emit_gemm(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const GemmDesc& gemm,
               const schedule::Config& config, int64_t lanes, const std::string& symbol) {
  e.includes = {"tile/kernel/cpu/gemm.h", "tile/op/lanes.h", "tile/op/math.h"};
  const std::string_view compute = computed_type(c.compute);
  std::set<uint32_t> computed_a, computed_b;
  if (gemm.a.form == GemmOperand::Form::kComputed) {
    computed_a = write_computed(e.out, desc, gemm, gemm.a, c.compute, "ComputedA");
  }
  if (gemm.b.form == GemmOperand::Form::kComputed) {
    computed_b = write_computed(e.out, desc, gemm, gemm.b, c.compute, "ComputedB");
  }
  const std::set<uint32_t> operands = write_epilogue(e.out, desc, c.epilogue);
  tile::GemmShape s = gemm.shape;
  const tile::RowSplit rows = tile::split_rows(s.m, config.micro_m);
  s.tiles = rows.tiles, s.tall = rows.tall;
  s.block_tiles = config.tile_m / config.micro_m, s.block_panels = config.tile_n / config.micro_n;
  e.tasks = s.tasks(config.micro_n);
  const bool copies_a = gemm.a.form != GemmOperand::Form::kDirect;
  const bool packs_b = gemm.b.form != GemmOperand::Form::kPacked;
  e.scratch_bytes =
      s.scratch_bytes(config.micro_m, config.micro_n, static_cast<int64_t>(size_of(c.compute)), copies_a, packs_b);
  e.out.close("}  // namespace");
  e.out.open(
      fmt::format("extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{", symbol));
  e.out.line(
      "constexpr tile::GemmShape shape{{.batch = {}, .m = {}, .n = {}, .k = {}, .tiles = {}, .tall = {}, "
      ".block_tiles = {}, .block_panels = {}}};",
      list(s.batch), s.m, s.n, s.k, s.tiles, s.tall, s.block_tiles, s.block_panels);
  e.out.line("const auto a = {};", operand_text(desc, gemm.a, compute, true, computed_a));
  e.out.line("const auto b = {};", operand_text(desc, gemm.b, compute, false, computed_b));
  e.out.line("const Epilogue epilogue{};", initialisers(desc, operands));
  e.out.line("tile::gemm<{}>(shape, a, b, epilogue, scratch, begin, end);",
             template_arguments(compute, config, s.n, lanes));
  e.out.close();
}

template <typename Shape>
std::string window_fields(const Shape& s) {
  return fmt::format(".in = {}, .out = {}, .kernel = {}, .stride = {}, .dilation = {}, .low = {}", list(s.in),
                     list(s.out), list(s.kernel), list(s.stride), list(s.dilation), list(s.low));
}

void emit_conv(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const ConvDesc& conv,
               const schedule::Config& config, int64_t lanes, const std::string& symbol) {
  e.includes = {"tile/kernel/cpu/conv.h", "tile/op/lanes.h", "tile/op/math.h"};
  const std::string_view compute = computed_type(c.compute);
  const std::set<uint32_t> operands = write_epilogue(e.out, desc, c.epilogue);
  tile::ConvShape s = conv.shape;
  const tile::RowSplit rows = tile::split_rows(s.out[2], config.micro_m);
  s.tiles = rows.tiles, s.tall = rows.tall;
  s.block_rows = config.tile_m, s.block_panels = config.tile_n / config.micro_n;
  e.tasks = s.tasks(config.micro_n);
  e.scratch_bytes =
      s.scratch_bytes(config.micro_m, config.micro_n, static_cast<int64_t>(size_of(c.compute)), !conv.direct);
  e.out.close("}  // namespace");
  e.out.open(
      fmt::format("extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{", symbol));
  e.out.line(
      "constexpr tile::ConvShape shape{{.batch = {}, .groups = {}, .c = {}, .o = {}, {}, .lhs_dilation = {}, "
      ".tiles = {}, .tall = {}, .block_rows = {}, .block_panels = {}}};",
      s.batch, s.groups, s.c, s.o, window_fields(s), list(s.lhs_dilation), s.tiles, s.tall, s.block_rows,
      s.block_panels);
  if (conv.direct) {
    e.out.line("const tile::DirectX<{}> x{{{}}};", compute, argument(desc, 0));
  } else {
    e.out.line("const tile::CopiedX<{}, {}> x{{{}{}, {}, {}, {}}};", compute, storage_type(conv.x), argument(desc, 0),
               conv.offset ? fmt::format(" + {}", conv.offset) : "", conv.batch, list(conv.stride), conv.channel);
  }
  e.out.line("const Epilogue epilogue{};", initialisers(desc, operands));
  e.out.line("tile::conv<{}>(shape, x, {}, epilogue, scratch, begin, end);",
             template_arguments(compute, config, s.o, lanes), argument(desc, 1));
  e.out.close();
}

void emit_winograd(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const WinogradDesc& winograd,
                   const schedule::Config& config, int64_t lanes, const std::string& symbol) {
  e.includes = {"tile/kernel/cpu/winograd.h", "tile/op/lanes.h", "tile/op/math.h"};
  const std::set<uint32_t> operands = write_epilogue(e.out, desc, c.epilogue);
  tile::WinogradShape s = winograd.shape;
  const tile::RowSplit rows = tile::split_rows(config.tile_m, config.micro_m);
  s.block_tiles = config.tile_m, s.row_tiles = rows.tiles, s.tall = rows.tall;
  s.block_panels = config.tile_n / config.micro_n;
  e.tasks = s.tasks(config.micro_n);
  e.scratch_bytes = s.scratch_bytes(config.micro_n);
  e.out.close("}  // namespace");
  e.out.open(
      fmt::format("extern \"C\" void {}(void* const* operands, void* scratch, int64_t begin, int64_t end) {{", symbol));
  e.out.line(
      "constexpr tile::WinogradShape shape{{.batch = {}, .c = {}, .o = {}, .in = {}, .out = {}, .low = {}, "
      ".block_tiles = {}, .row_tiles = {}, .tall = {}, .block_panels = {}}};",
      s.batch, s.c, s.o, list(s.in), list(s.out), list(s.low), s.block_tiles, s.row_tiles, s.tall, s.block_panels);
  e.out.line("const Epilogue epilogue{};", initialisers(desc, operands));
  e.out.line(
      "tile::winograd<{}, {}>(shape, {}, static_cast<const float*>(operands[1]), epilogue, scratch, begin, end);",
      config.micro_m, config.micro_n / lanes, argument(desc, 0));
  e.out.close();
}

void emit_window(Emission& e, const KernelDesc& desc, const ContractionDesc& c, const WindowDesc& window,
                 const std::string& symbol) {
  e.includes = {"tile/kernel/cpu/window.h", "tile/op/lanes.h", "tile/op/math.h"};
  const std::string_view compute = computed_type(c.compute);
  const std::set<uint32_t> operands = write_epilogue(e.out, desc, c.epilogue);
  const tile::WindowShape& s = window.shape;
  e.tasks = s.tasks();
  e.out.close("}  // namespace");
  e.out.open(fmt::format(
      "extern \"C\" void {}(void* const* operands, [[maybe_unused]] void* scratch, int64_t begin, int64_t end) {{",
      symbol));
  e.out.line("constexpr tile::WindowShape shape{{.batch = {}, .c = {}, {}}};", s.batch, s.c, window_fields(s));
  if (window.filters) {
    e.out.line("const tile::DepthwiseOp<{}, {}> op{{{}, {}}};", compute, storage_type(window.w), argument(desc, 1),
               s.c);
  } else {
    const std::string kind = window.kind == "sum"    ? "kSum"
                             : window.kind == "prod" ? "kProd"
                             : window.kind == "max"  ? "kMax"
                                                     : "kMin";
    e.out.line("const tile::PoolOp<tile::WindowKind::{}, {}> op;", kind, compute);
  }
  e.out.line("const Epilogue epilogue{};", initialisers(desc, operands));
  e.out.line("tile::window(shape, {}, op, epilogue, begin, end);", argument(desc, 0));
  e.out.close();
}

void emit_pack(Emission& e, const KernelDesc& desc, const PackDesc& pack, const std::string& symbol) {
  e.includes = {"tile/core/pack.h", "tile/core/types.h"};
  const tile::PanelSource& s = pack.source;
  const int64_t panels = tile::panel_count(s.n, pack.width);
  e.tasks = s.groups * panels;
  e.out.close("}  // namespace");
  e.out.open(fmt::format("extern \"C\" void {}(void* const* operands, void*, int64_t begin, int64_t end) {{", symbol));
  e.out.line("constexpr tile::PanelSource source{{{}, {}, {}, {}, {}, {}, {}, {}}};", s.groups, s.group_stride, s.outer,
             s.outer_stride, s.inner, s.inner_stride, s.n, s.n_stride);
  e.out.open("for (int64_t task = begin; task < end; ++task) {");
  e.out.line("tile::pack_panel({} + task * {}, {} + {}, source, {}, task / {}, task % {}, [](auto x) {{ return x; }});",
             argument(desc, 1), s.outer * s.inner * pack.width, argument(desc, 0), pack.offset, pack.width, panels,
             panels);
  e.out.close();
  e.out.close();
}

Emission write(const KernelDesc& desc, const ContractionDesc& c, const schedule::Config& config, const Target& target,
               const std::string& symbol) {
  const int64_t lanes = schedule::micro_limits(target).vector_bytes / static_cast<int64_t>(size_of(c.compute));
  Emission e;
  e.out.open(fmt::format("namespace {}_parts {{", symbol));
  e.out.open("namespace {");
  if (const auto* gemm = std::get_if<GemmDesc>(&c.problem)) {
    emit_gemm(e, desc, c, *gemm, config, lanes, symbol);
  } else if (const auto* conv = std::get_if<ConvDesc>(&c.problem)) {
    emit_conv(e, desc, c, *conv, config, lanes, symbol);
  } else if (const auto* winograd = std::get_if<WinogradDesc>(&c.problem)) {
    emit_winograd(e, desc, c, *winograd, config, lanes, symbol);
  } else if (const auto* window = std::get_if<WindowDesc>(&c.problem)) {
    emit_window(e, desc, c, *window, symbol);
  } else {
    emit_pack(e, desc, std::get<PackDesc>(c.problem), symbol);
  }
  e.out.close(fmt::format("}}  // namespace {}_parts", symbol));
  return e;
}

}  // namespace

KernelSource emit_contraction(const KernelDesc& desc, const ContractionDesc& contraction,
                              const schedule::Config& config, const Target& target) {
  // The symbol carries a hash of the text written with a placeholder for it.
  const std::string draft = write(desc, contraction, config, target, "kernel").out.text();
  const std::string symbol =
      fmt::format("{}_{}", config.algorithm, hash_text(fmt::format("{}\n{}", target.fingerprint(), draft)).hex());
  Emission e = write(desc, contraction, config, target, symbol);
  KernelSource source;
  source.symbol = symbol;
  source.includes = std::move(e.includes);
  source.text = e.out.text();
  add_named_headers(source);
  source.tasks = e.tasks;
  source.scratch_bytes = e.scratch_bytes;
  return source;
}

}  // namespace heddle::codegen
