#include "codegen/product/cuda/epilogue.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::codegen {
namespace {

using schedule::Epilogue;
using schedule::Expr;
using schedule::ExprId;
using schedule::Index;
using schedule::Operand;

// Columns in multiples of this many are never cut by the edge of a matrix: no template hands over more at once.
constexpr int64_t kMostColumns = 8;

// Writes the call operator: what is the same for all columns first, then loads of neighbours, then column by column.
class EpilogueWriter {
 public:
  EpilogueWriter(const Epilogue& e, const std::vector<Operand>& operands, std::optional<size_t> returned)
      : e_(e), operands_(operands), returned_(returned), members_(e.pool, operands), columns_(uint64_t{1} << e.col) {
    for (size_t i = 0; i < e.stores.size(); ++i) {
      members_.use(e.stores[i].value);
      if (returned == i) continue;
      members_.use_operand(e.stores[i].operand);
      members_.use(e.stores[i].at);
    }
    for (const Epilogue::Reduction& r : e.reductions) {
      members_.use(r.value);
      members_.use_operand(r.operand);
      members_.use(r.at);
    }
  }

  CudaFunctor write(const char* name) {
    out_.open(fmt::format("struct {} {{", name));
    members_.declare(out_);
    find_steps();
    find_shared();
    write_streamed();
    write_function("operator()", {{}, shared_, rounds_all()});
    if (steps_) write_steps();
    if (!e_.reductions.empty()) write_reductions(name);
    out_.close("};");
    CudaFunctor functor;
    functor.text = out_.text(functor.includes);
    pack(members_, functor);
    if (residual_) functor.residual = residual_->first;
    return functor;
  }

 private:
  // What a function of the functor computes: all results; or one value, returned in v.
  struct Part {
    std::optional<ExprId> value;
    std::optional<ExprId> given;  // a value that v holds in place of the accumulators
    bool fast = false;            // it is rounded to 16 bits or fewer
  };
  // The only result, in steps: accumulators may begin with `seed`, which is the same for all rows, and are `sum` in the
  // end; `inner` is computed from that, rounded to 16 bits by `pack`.
  struct Steps {
    std::optional<ExprId> seed, sum;
    ExprId inner;
    const char* pack = "tile::fast::pack";
  };

  void write_function(const char* name, const Part& part) {
    out_.line("template <typename T, int W{}>", residual_ ? ", typename Residual = tile::cuda::FromMemory" : "");
    out_.open(fmt::format("__device__ void {}(T (&v)[W], int batch, int row, int col, int n{}) const {{", name,
                          residual_ ? ", const Residual& residual = {}" : ""));
    write_body(part);
    out_.close();
  }

  bool returns_only() const { return returned_ && e_.stores.size() == 1 && whole(); }

  void find_steps() {
    // What is reduced is computed from the accumulators, which may not begin with something else.
    if (!returns_only() || !e_.reductions.empty() || e_.accumulator != DType::kF32 || !rounds_all()) return;
    const ExprId root = stored(0);
    if (computed_type(e_.pool[root].dtype) != "float") return;
    Steps steps{{}, {}, root};
    if (const auto form = pack_form_of(e_.pool, root)) steps.inner = form->argument, steps.pack = form->function;
    int uses = 0;
    find_sum(steps, uses);
    if (uses != 1) steps.seed.reset(), steps.sum.reset();
    steps_ = steps;
  }
  // Where the accumulators are added to what is the same for all rows, and how often they are used.
  void find_sum(Steps& steps, int& uses) const {
    schedule::ExprWalk(e_.pool).run(steps.inner, [&](ExprId id) {
      const Expr& e = e_.pool[id];
      for (size_t i = 0; i < e.args.size(); ++i) {
        if (!is_accumulator(e.args[i])) continue;
        ++uses;
        const bool adds = e.kind == Expr::Kind::kOp && e.op == ir::Op::kAdd && computed_type(e.dtype) == "float";
        if (!adds || is_accumulator(e.args[1 - i])) continue;
        const ExprId other = e.args[1 - i];
        const bool same = (e_.pool.vars(other) & uint64_t{1} << e_.row) == 0 && by_column(other);
        if (same && computed_type(e_.pool[other].dtype) == "float") steps.seed = other, steps.sum = id;
      }
      return true;
    });
  }
  bool is_accumulator(ExprId id) const {
    const Expr& e = e_.pool[id];
    return e.kind == Expr::Kind::kLocal && e.id == 0;
  }

  // Whether the steps compute more than a maximum of the accumulators.
  bool costly() const {
    const std::string_view pack = steps_->pack;
    const bool sums = is_accumulator(steps_->inner) || steps_->inner == steps_->sum;
    return !sums || (pack != "tile::fast::pack" && pack != "tile::fast::pack_relu");
  }

  void write_steps() {
    out_.line("static constexpr bool kInSteps = true, kSeeds = {}, kCostly = {};", steps_->seed.has_value(), costly());
    if (steps_->seed) write_function("seed", {steps_->seed, {}, true});
    write_function("inner", {steps_->inner, steps_->sum, true});
    out_.raw("template <typename Out>");
    out_.open("__device__ static uint32_t pack(float low, float high) {");
    out_.line("return {}<Out>(low, high);", steps_->pack);
    out_.close();
  }

  // Where something is reduced: a value from which all results are computed, whatever else the accumulators are used
  // for. Kernels then put it in their place, once.
  void find_shared() {
    if (e_.reductions.empty() || e_.accumulator != DType::kF32) return;
    std::vector<ExprId> roots;
    for (size_t i = 0; i < e_.stores.size(); ++i) roots.push_back(stored(i));
    for (const Epilogue::Reduction& r : e_.reductions) roots.push_back(r.value);
    if (roots.size() == 1) return;
    for (const ExprId root : roots) {
      const ExprId value = uncast(root);
      const auto serves = [&](ExprId other) { return !needs_accumulator(other, value); };
      if (is_accumulator(value) || computed_type(e_.pool[value].dtype) != "float") continue;
      if (std::all_of(roots.begin(), roots.end(), serves)) shared_ = value;
    }
  }
  // Whether a value is computed from the accumulators otherwise than through `known`.
  bool needs_accumulator(ExprId value, ExprId known) const {
    bool needs = false;
    schedule::ExprWalk(e_.pool).run(value, [&](ExprId id) {
      if (id != known && is_accumulator(id)) needs = true;
      return id != known;
    });
    return needs;
  }
  // What is converted between types of floating point.
  ExprId uncast(ExprId id) const {
    const Expr& e = e_.pool[id];
    const bool cast = e.kind == Expr::Kind::kOp && e.op == ir::Op::kCast && is_float(e.dtype);
    return cast && is_float(e_.pool[e.args[0]].dtype) ? uncast(e.args[0]) : id;
  }
  // Whether a model has a value in 16 bits.
  bool is_narrow(ExprId id) const { return size_of(e_.pool[uncast(id)].dtype) <= 2; }

  // A type for each reduction of neighbours, handed to a function (tile/kernel/cuda/gemm/reduce_fragments.h).
  void write_reductions(const char* name) {
    out_.line("static constexpr bool kReduces = true, kStores = {}, kShares = {};", !e_.stores.empty(),
              shared_.has_value());
    if (shared_) write_function("share", {shared_, {}, is_narrow(*shared_)});
    for (size_t i = 0; i < e_.reductions.size(); ++i) {
      const Epilogue::Reduction& r = e_.reductions[i];
      write_function(fmt::format("value{}", i).c_str(), {unrounded(r.value), shared_, is_narrow(r.value)});
      out_.open(fmt::format("__device__ void keep{}(int batch, int row, int col, float v) const {{", i));
      Names names = members_.names();
      names.vars[e_.batch] = "int64_t(batch)", names.vars[e_.row] = "int64_t(row)", names.vars[e_.col] = "int64_t(col)";
      ScalarEmitter emitter(e_.pool, std::move(names), out_);
      out_.line("tile::store(p{} + ({}), tile::splat<1>(v));", r.operand, emitter.index(r.at));
      out_.close();
      out_.open(fmt::format("struct Reduction{} {{", i));
      out_.line("static constexpr bool kRows = {};", r.rows);
      out_.line("using Combine = tile::{}_of;", r.kind);
      out_.line("const {}& e;", name);
      out_.raw("template <typename T, int W>");
      out_.open("__device__ void value(T (&v)[W], int batch, int row, int col, int n) const {");
      out_.line("e.value{}(v, batch, row, col, n);", i);
      out_.close();
      out_.open("__device__ void keep(int batch, int row, int col, float v) const {");
      out_.line("e.keep{}(batch, row, col, v);", i);
      out_.close();
      out_.close("};");
    }
    out_.raw("template <typename F>");
    out_.open("__device__ void reductions(const F& f) const {");
    for (size_t i = 0; i < e_.reductions.size(); ++i) out_.line("f(Reduction{}{{*this}});", i);
    out_.close();
  }

  bool by_column(ExprId e) const { return (e_.pool.vars(e) & columns_) != 0; }
  bool whole() const { return e_.split % kMostColumns == 0; }
  // Whether every result is rounded to 16 bits or fewer.
  bool rounds_all() const {
    return std::all_of(e_.stores.begin(), e_.stores.end(), [&](const Epilogue::Store& store) {
      const DType dtype = operands_[store.operand].dtype;
      return is_float(dtype) && size_of(dtype) <= 2;
    });
  }

  // Lanes may lie on both sides of a border: their columns are not split, each finds its own place.
  const char* first_column() const {
    return e_.pool.indices.extent(e_.col_outer) > 1 && whole() ? "first" : "int64_t(col)";
  }

  void write_body(const Part& part) {
    loads_.emplace(e_.pool);
    loaded_.clear();
    Names names = members_.names();
    names.vars[e_.batch] = "int64_t(batch)", names.vars[e_.row] = "int64_t(row)";
    names.vars[e_.col_outer] = "col_outer", names.vars[e_.col] = first_column();
    const bool split = e_.pool.indices.extent(e_.col_outer) > 1;
    if (split && whole()) {
      out_.declare("int64_t", "col_outer", fmt::format("col / {}", e_.split));
      out_.declare("int64_t", "first", fmt::format("col % {}", e_.split));
    }
    names.locals[0] = {"acc", e_.accumulator, true};  // another one for each column
    if (part.given) {
      names.cached[*part.given] = {"acc", e_.pool[*part.given].dtype, true};
      loads_->run(*part.given, [](ExprId) { return false; });  // it is there already
    }
    ScalarEmitter emitter(e_.pool, std::move(names), out_);
    emitter.set_style({.fast = part.fast});
    std::vector<ExprId> roots;
    if (part.value) roots = {*part.value};
    for (size_t i = 0; !part.value && i < e_.stores.size(); ++i) roots.push_back(stored(i));
    hoist_shared(emitter, roots);
    load_neighbours(emitter, roots);
    for (size_t i = 0; !part.value && i < e_.stores.size(); ++i) {
      if (returned_ == i || !in_row(i)) continue;
      out_.line("{} r{}[W];", storage_type(operands_[e_.stores[i].operand].dtype), i);
    }
    out_.raw("#pragma unroll");
    out_.open("for (int i = 0; i < W; ++i) {");
    if (!whole()) out_.line("if (i >= n) break;");
    out_.value("acc", fmt::format("tile::splat<1>(static_cast<{}>(v[i]))", computed_type(e_.accumulator)), "");
    Names& inside = emitter.names();
    inside.locals[0] = {"acc", e_.accumulator, false};
    if (part.given) inside.cached[*part.given].wide = false;
    if (split && !whole()) {
      out_.declare("int64_t", "col_outer", fmt::format("(col + i) / {}", e_.split));
      out_.declare("int64_t", "at", fmt::format("(col + i) % {}", e_.split));
      inside.vars[e_.col] = "at";
    } else {
      inside.vars[e_.col] = fmt::format("({} + i)", first_column());
    }
    for (const auto& [id, buffer] : loaded_) {
      const DType dtype = e_.pool[id].dtype;
      const bool mask = dtype == DType::kBool;
      const std::string load = fmt::format("tile::load<1>(&{}[i])", buffer);
      inside.cached[id] = {mask ? fmt::format("tile::to_mask({})", load) : load, dtype, false, mask ? 1 : 0};
    }
    if (part.value) {
      write_returned(emitter.vector(*part.value));
    } else {
      write_stores(emitter);
    }
    out_.close();
    if (!part.value) store_neighbours(emitter);
  }

  // What a kernel that takes the first result as a return value may know: that nothing else is stored, so that it may
  // call for any element of D; where it reads vectors along a row of D and matrices beside D, to have them residual;
  // and the size of the first matrix's elements, which the kernel may hand over as `residual`. What is not said is not
  // so.
  void write_streamed() {
    std::vector<const Expr*> vectors, matrices;
    find_rows(vectors, matrices);
    std::vector<std::string> flags;
    if (returns_only()) flags.emplace_back("kReturnsOnly = true");
    if (!vectors.empty()) flags.emplace_back("kReadsVectors = true");
    if (!matrices.empty()) flags.emplace_back("kReadsMatrices = true");
    if (!flags.empty()) out_.line("static constexpr bool {};", fmt::join(flags, ", "));
    write_places("vectors", vectors);
    write_places("matrices", matrices);
    if (!matrices.empty()) residual_ = {matrices[0]->id, matrices[0]->index};
    if (residual_ && whole())
      out_.line("static constexpr int kResidualBytes = {};", size_of(operands_[residual_->first].dtype));
  }
  void write_places(const char* function, const std::vector<const Expr*>& loads) {
    if (loads.empty()) return;
    Names names = members_.names();
    names.vars[e_.batch] = "int64_t(batch)", names.vars[e_.row] = "int64_t(row)", names.vars[e_.col] = "int64_t(col)";
    names.vars[e_.col_outer] = "int64_t(0)";
    ScalarEmitter emitter(e_.pool, std::move(names), out_);
    std::string calls;
    for (const Expr* e : loads) calls += fmt::format(" f(p{} + {});", e->id, emitter.index(e->index));
    out_.raw("template <typename F>");
    out_.line("__device__ void {}(F f, int batch, int row, int col) const {{{} }}", function, calls);
  }
  // Loads of neighbours that are the same in all rows, and those of whole rows that begin at multiples of 16 bytes.
  void find_rows(std::vector<const Expr*>& vectors, std::vector<const Expr*>& matrices) {
    const bool split = e_.pool.indices.extent(e_.col_outer) > 1;
    const auto enter = [&](ExprId id) {
      const Expr& e = e_.pool[id];
      if (e.kind == Expr::Kind::kGuard) return false;
      const bool affine = std::all_of(e.index.terms.begin(), e.index.terms.end(), [&](const auto& term) {
        return e_.pool.indices.atom(term.first).kind == schedule::Atom::Kind::kVar;
      });
      if (e.kind != Expr::Kind::kLoad || !affine || split || !lanes_adjoin(e.index)) return true;
      constexpr size_t kPiece = 16;
      const auto piece =
          static_cast<size_t>(members_.alignment(e.id, e.index, e_.col)) * size_of(operands_[e.id].dtype);
      const bool by_row = (e_.pool.vars(e.index) & uint64_t{1} << e_.row) != 0;
      if (!by_row) vectors.push_back(&e);
      if (by_row && piece == kPiece) matrices.push_back(&e);
      return true;
    };
    schedule::ExprWalk walk(e_.pool);
    for (size_t i = 0; i < e_.stores.size(); ++i) walk.run(stored(i), enter);
  }

  // Whether a store's lanes lie side by side.
  bool in_row(size_t i) const { return lanes_adjoin(e_.stores[i].at); }
  bool lanes_adjoin(const Index& at) const {
    const bool split = e_.pool.indices.extent(e_.col_outer) > 1;
    if (split && !whole()) return false;
    for (const auto& [id, c] : at.terms) {
      const schedule::Atom& atom = e_.pool.indices.atom(id);
      if (atom.kind == schedule::Atom::Kind::kVar && atom.id == e_.col) {
        if (c != 1) return false;
      } else if (e_.pool.vars(Index{0, {{id, 1}}}) & columns_) {
        return false;
      }
    }
    return (e_.pool.vars(at) & columns_) != 0;
  }

  void hoist_shared(ScalarEmitter& emitter, const std::vector<ExprId>& roots) {
    uint64_t bound = uint64_t{1} << e_.batch | uint64_t{1} << e_.row;
    if (e_.pool.indices.extent(e_.col_outer) == 1 || whole()) bound |= uint64_t{1} << e_.col_outer;
    for (const ExprId root : roots) emitter.hoist(root, bound);
  }

  // Loads that stand whatever guards say, lanes side by side: all neighbours at once.
  void load_neighbours(ScalarEmitter& emitter, const std::vector<ExprId>& roots) {
    for (const ExprId root : roots) {
      loads_->run(root, [this](ExprId id) {
        const Expr& e = e_.pool[id];
        if (e.kind == Expr::Kind::kLoad && lanes_adjoin(e.index))
          loaded_.emplace(id, fmt::format("o{}", loaded_.size()));
        return e.kind != Expr::Kind::kGuard;
      });
    }
    for (const auto& [id, buffer] : loaded_) {
      const Expr& e = e_.pool[id];
      out_.line("{} {}[W];", storage_type(operands_[e.id].dtype), buffer);
      const bool residual = residual_ && residual_->first == e.id && residual_->second == e.index;
      out_.line("{}<{}>({}, p{} + {}, {});", residual ? "residual.template load" : "tile::cuda::load_row",
                alignment(e.id, e.index), buffer, e.id, emitter.index(e.index), count());
    }
  }
  const char* count() const { return whole() ? "W" : "n"; }
  // Of row.h: kernels may begin at any column of rows that end between multiples.
  std::string alignment(uint32_t operand, const Index& at) const {
    return fmt::format("{}{}", members_.alignment(operand, at, e_.col), whole() ? "" : ", true");
  }

  // What is stored, without a last rounding to the type in memory: the store rounds.
  ExprId stored(size_t i) const {
    const Epilogue::Store& store = e_.stores[i];
    return e_.pool[store.value].dtype == operands_[store.operand].dtype ? unrounded(store.value) : store.value;
  }
  ExprId unrounded(ExprId id) const {
    const Expr& e = e_.pool[id];
    const bool rounds =
        e.kind == Expr::Kind::kOp && e.op == ir::Op::kCast && (e.dtype == DType::kF16 || e.dtype == DType::kBF16);
    return rounds && e_.pool[e.args[0]].dtype == DType::kF32 ? e.args[0] : id;
  }

  void write_stores(ScalarEmitter& emitter) {
    for (size_t i = 0; i < e_.stores.size(); ++i) {
      const Epilogue::Store& store = e_.stores[i];
      const DType storage = operands_[store.operand].dtype;
      const TextValue value = emitter.value(stored(i));
      std::string text = emitter.vector(stored(i));
      if (storage == DType::kBool) {
        text = value.literal ? fmt::format("tile::splat<1>({})", value.text)
                             : fmt::format("tile::from_mask<uint8_t>({})", text);
      }
      if (returned_ == i) {
        write_returned(text);
      } else if (in_row(i)) {
        out_.line("tile::store(&r{}[i], {});", i, text);
      } else {
        out_.line("tile::store(p{} + ({}), {});", store.operand, emitter.index(store.at), text);
      }
    }
  }

  void write_returned(const std::string& text) {
    out_.line("v[i] = static_cast<T>({}.v);", text.find(' ') == std::string::npos ? text : "(" + text + ")");
  }

  void store_neighbours(ScalarEmitter& emitter) {
    emitter.names().vars[e_.col] = first_column();
    for (size_t i = 0; i < e_.stores.size(); ++i) {
      const Epilogue::Store& store = e_.stores[i];
      if (returned_ == i || !in_row(i)) continue;
      out_.line("tile::cuda::store_row<{}>(p{} + {}, r{}, {});", alignment(store.operand, store.at), store.operand,
                emitter.index(store.at), i, count());
    }
  }

  const Epilogue& e_;
  const std::vector<Operand>& operands_;
  const std::optional<size_t> returned_;
  FunctorMembers members_;
  const uint64_t columns_;
  Writer out_;
  std::map<ExprId, std::string> loaded_;
  std::optional<std::pair<uint32_t, Index>> residual_;  // the matrix whose elements a kernel may bring itself
  std::optional<schedule::ExprWalk> loads_;             // of what a text loads
  std::optional<Steps> steps_;
  std::optional<ExprId> shared_;  // that reductions and stores are computed from
};

}  // namespace

CudaFunctor cuda_epilogue(const Epilogue& epilogue, const std::vector<Operand>& operands,
                          std::optional<size_t> returned, const char* name) {
  HEDDLE_CHECK(!returned || *returned < epilogue.stores.size(), "store {} of {}", *returned, epilogue.stores.size());
  return EpilogueWriter(epilogue, operands, returned).write(name);
}

}  // namespace heddle::codegen
