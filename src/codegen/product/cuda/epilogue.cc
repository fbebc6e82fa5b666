#include "codegen/product/cuda/epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "codegen/product/cuda/epilogue_facts.h"
#include "codegen/scalar/byte_form.h"

namespace heddle::codegen {
namespace {

using schedule::Operand;

// Writes the call operator: what is the same for all columns first, then loads of neighbours, then column by column.
class EpilogueWriter {
 public:
  EpilogueWriter(const Epilogue& e, const std::vector<Operand>& operands, std::optional<size_t> returned)
      : e_(e), operands_(operands), returned_(returned), facts_(e, operands, returned), members_(e.pool, operands) {
    for (size_t i = 0; i < e.stores.size(); ++i) {
      members_.use(e.stores[i].value);
      if (returned == i) continue;
      members_.use_operand(e.stores[i].operand);
      members_.use(e.stores[i].at);
    }
    for (const Epilogue::Bound& bound : e.bounds) members_.use(bound.index);
    if (e.gate) members_.use(e.gate->value);
    for (const Epilogue::Reduction& r : e.reductions) {
      members_.use(r.value);
      members_.use_operand(r.operand);
      members_.use(r.at);
    }
  }

  CudaFunctor write(const char* name) {
    out_.open(fmt::format("struct {} {{", name));
    members_.declare(out_);
    write_streamed();
    write_function("operator()", {{}, shared_, facts_.rounds_all()});
    if (const auto steps = facts_.steps()) write_steps(*steps);
    if (!e_.reductions.empty()) write_reductions(name);
    if (e_.gate) write_gate(*e_.gate);
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
    bool pairs = false;           // it is computed from pairs of sums, of which w holds the second ones
  };
  // Of operands, and of the coordinates that a call has.
  Names names_of_call() const {
    Names names = members_.names();
    names.vars[e_.batch] = "int64_t(batch)", names.vars[e_.row] = "int64_t(row)", names.vars[e_.col] = "int64_t(col)";
    return names;
  }

  void write_function(const char* name, const Part& part) {
    out_.line("template <typename T, int W{}>", residual_ ? ", typename Residual = tile::cuda::FromMemory" : "");
    out_.open(fmt::format("__device__ void {}(T (&v)[W], {}int batch, int row, int col, int n{}) const {{", name,
                          part.pairs ? "const T (&w)[W], " : "", residual_ ? ", const Residual& residual = {}" : ""));
    write_body(part);
    out_.close();
  }

  void write_steps(const EpilogueFacts::Steps& steps) {
    out_.line("static constexpr bool kInSteps = true, kInitsAccumulator = {}, kCostly = {};",
              steps.accumulator_init.has_value(), steps.costly);
    if (steps.accumulator_init) write_function("accumulator_init", {steps.accumulator_init, {}, true});
    write_function("inner", {steps.inner, steps.sum, true});
    out_.raw("template <typename Out>");
    out_.open("__device__ static uint32_t pack(float low, float high) {");
    out_.line("return {}<Out>(low, high);", steps.pack);
    out_.close();
  }

  // A type for each reduction of neighbours, handed to a function (tile/kernel/cuda/gemm/reduce_fragments.h).
  void write_reductions(const char* name) {
    out_.line("static constexpr bool kReduces = true, kStores = {}, kShares = {};", !e_.stores.empty(),
              shared_.has_value());
    if (shared_) write_function("share", {shared_, {}, facts_.is_narrow(*shared_)});
    for (size_t i = 0; i < e_.reductions.size(); ++i) {
      const Epilogue::Reduction& r = e_.reductions[i];
      write_function(fmt::format("value{}", i).c_str(),
                     {facts_.unrounded(r.value), shared_, facts_.is_narrow(r.value)});
      out_.open(fmt::format("__device__ void keep{}(int batch, int row, int col, float v) const {{", i));
      ScalarEmitter emitter(e_.pool, names_of_call(), out_);
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

  // What pairs of sums become, before anything else sees them.
  void write_gate(const Epilogue::Gate& gate) {
    out_.line("static constexpr bool kGates = true;");
    write_function("gate", {gate.value, {}, facts_.rounds_all(), true});
  }

  void write_body(const Part& part) {
    loads_.emplace(e_.pool);
    loaded_.clear();
    Names names = names_of_call();
    names.vars[e_.col_outer] = "col_outer", names.vars[e_.col] = facts_.first_column();
    const bool split = facts_.split();
    if (split && facts_.whole()) {
      out_.declare("int64_t", "col_outer", fmt::format("col / {}", e_.split));
      out_.declare("int64_t", "first", fmt::format("col % {}", e_.split));
    }
    // Others for each column.
    const std::vector<Sum> sums = sums_of(part);
    for (const Sum& sum : sums) names.locals[sum.local] = {sum.name, sum.dtype, true};
    if (part.given) {
      names.cached[*part.given] = {"acc", e_.pool[*part.given].dtype, true};
      loads_->run(*part.given, [](ExprId) { return false; });  // it is there already
    }
    ScalarEmitter emitter(e_.pool, std::move(names), out_);
    emitter.set_style({.fast = part.fast});
    std::vector<ExprId> roots;
    if (part.value) roots = {*part.value};
    for (size_t i = 0; !part.value && i < e_.stores.size(); ++i) roots.push_back(facts_.stored(i));
    if (!facts_.bounds_lanes()) {  // else nothing is loaded before it is known which lanes are within
      if (!e_.bounds.empty()) out_.line("if (!({})) return;", within_bounds(emitter));
      hoist_shared(emitter, roots);
      load_neighbours(emitter, roots);
    }
    for (size_t i = 0; !part.value && i < e_.stores.size(); ++i) {
      if (returned_ == i || !facts_.in_row(i)) continue;
      out_.line("{} r{}[W];", storage_type(operands_[e_.stores[i].operand].dtype), i);
    }
    out_.raw("#pragma unroll");
    out_.open("for (int i = 0; i < W; ++i) {");
    if (!facts_.whole()) out_.line("if (i >= n) break;");
    Names& inside = emitter.names();
    for (const Sum& sum : sums) {
      out_.value(sum.name, fmt::format("tile::splat<1>(static_cast<{}>({}[i]))", computed_type(sum.dtype), sum.array),
                 "");
      inside.locals[sum.local] = {sum.name, sum.dtype, false};
    }
    if (part.given) inside.cached[*part.given].wide = false;
    if (split && !facts_.whole()) {
      out_.declare("int64_t", "col_outer", fmt::format("(col + i) / {}", e_.split));
      out_.declare("int64_t", "at", fmt::format("(col + i) % {}", e_.split));
      inside.vars[e_.col] = "at";
    } else {
      inside.vars[e_.col] = fmt::format("({} + i)", facts_.first_column());
    }
    if (facts_.bounds_lanes()) out_.line("if (!({})) continue;", within_bounds(emitter));
    for (const auto& [id, buffer] : loaded_) {
      inside.cached[id] = loaded_value(fmt::format("tile::load<1>(&{}[i])", buffer), e_.pool[id].dtype);
    }
    if (part.value) {
      write_returned(emitter.vector(*part.value));
    } else {
      write_stores(emitter);
    }
    out_.close();
    if (!part.value) store_neighbours(emitter);
  }

  // What a call hands over, as a local of the expressions.
  struct Sum {
    uint32_t local;
    const char *name, *array;
    DType dtype;
  };
  std::vector<Sum> sums_of(const Part& part) const {
    if (!part.pairs) return {{0, "acc", "v", e_.accumulator}};
    return {{1, "acc", "v", e_.gate->sums}, {2, "other", "w", e_.gate->sums}};
  }

  // What a kernel that takes the first result as a return value may know: that nothing else is stored, so that it may
  // call for any element of D; where it reads vectors along a row of D and matrices beside D, to have them residual;
  // and the size of the first matrix's elements, which the kernel may hand over as `residual`. What is not said is not
  // so.
  void write_streamed() {
    const auto [vectors, matrices] = facts_.rows(members_);
    std::vector<std::string> flags;
    if (facts_.returns_only()) flags.emplace_back("kReturnsOnly = true");
    if (!vectors.empty()) flags.emplace_back("kReadsVectors = true");
    if (!matrices.empty()) flags.emplace_back("kReadsMatrices = true");
    if (!flags.empty()) out_.line("static constexpr bool {};", fmt::join(flags, ", "));
    write_places("vectors", vectors);
    write_places("matrices", matrices);
    if (!matrices.empty()) residual_ = {e_.pool[matrices[0]].id, e_.pool[matrices[0]].index};
    if (residual_ && facts_.whole())
      out_.line("static constexpr int kResidualBytes = {};", size_of(operands_[residual_->first].dtype));
  }
  void write_places(const char* function, const std::vector<ExprId>& loads) {
    if (loads.empty()) return;
    Names names = names_of_call();
    names.vars[e_.col_outer] = "int64_t(0)";
    ScalarEmitter emitter(e_.pool, std::move(names), out_);
    std::string calls;
    for (const ExprId load : loads) {
      const Expr& e = e_.pool[load];
      calls += fmt::format(" f(p{} + {});", e.id, emitter.index(e.index));
    }
    out_.raw("template <typename F>");
    out_.line("__device__ void {}(F f, int batch, int row, int col) const {{{} }}", function, calls);
  }
  std::string within_bounds(ScalarEmitter& emitter) const {
    std::vector<std::string> all;
    for (const Epilogue::Bound& bound : e_.bounds) all.push_back(emitter.within(bound.index, 0, bound.end));
    return fmt::format("{}", fmt::join(all, " && "));
  }
  void hoist_shared(ScalarEmitter& emitter, const std::vector<ExprId>& roots) {
    uint64_t bound = uint64_t{1} << e_.batch | uint64_t{1} << e_.row;
    if (!facts_.split() || facts_.whole()) bound |= uint64_t{1} << e_.col_outer;
    for (const ExprId root : roots) emitter.hoist(root, bound);
  }

  // Loads that stand whatever guards say, lanes side by side: all neighbours at once.
  void load_neighbours(ScalarEmitter& emitter, const std::vector<ExprId>& roots) {
    for (const ExprId root : roots) {
      loads_->run(root, [this](ExprId id) {
        const Expr& e = e_.pool[id];
        if (e.kind == Expr::Kind::kLoad && facts_.lanes_adjoin(e.index))
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
  const char* count() const { return facts_.whole() ? "W" : "n"; }
  // Of row.h: kernels may begin at any column of rows that end between multiples.
  std::string alignment(uint32_t operand, const Index& at) const {
    return fmt::format("{}{}", members_.alignment(operand, at, e_.col), facts_.whole() ? "" : ", true");
  }

  void write_stores(ScalarEmitter& emitter) {
    for (size_t i = 0; i < e_.stores.size(); ++i) {
      const Epilogue::Store& store = e_.stores[i];
      const DType storage = operands_[store.operand].dtype;
      // The kernel saturates numbers of 8 bits.
      const auto form = returned_ == i ? ByteForms(e_.pool).stored_by_gpu(facts_.stored(i)) : std::nullopt;
      if (form) {
        write_returned(fmt::format(fmt::runtime(form->format), emitter.vector(form->arguments[0]), "", 1));
        continue;
      }
      const TextValue value = emitter.value(facts_.stored(i));
      std::string text = emitter.vector(facts_.stored(i));
      if (storage == DType::kBool) {
        text = value.literal ? fmt::format("tile::splat<1>({})", value.text)
                             : fmt::format("tile::from_mask<uint8_t>({})", text);
      }
      if (returned_ == i) {
        write_returned(text);
      } else if (facts_.in_row(i)) {
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
    emitter.names().vars[e_.col] = facts_.first_column();
    for (size_t i = 0; i < e_.stores.size(); ++i) {
      const Epilogue::Store& store = e_.stores[i];
      if (returned_ == i || !facts_.in_row(i)) continue;
      out_.line("tile::cuda::store_row<{}>(p{} + {}, r{}, {});", alignment(store.operand, store.at), store.operand,
                emitter.index(store.at), i, count());
    }
  }

  const Epilogue& e_;
  const std::vector<Operand>& operands_;
  const std::optional<size_t> returned_;
  const EpilogueFacts facts_;
  const std::optional<ExprId> shared_ = facts_.shared();  // that reductions and stores are computed from
  FunctorMembers members_;
  Writer out_;
  std::map<ExprId, std::string> loaded_;
  std::optional<std::pair<uint32_t, Index>> residual_;  // the matrix whose elements a kernel may bring itself
  std::optional<schedule::ExprWalk> loads_;             // of what a text loads
};

}  // namespace

CudaFunctor cuda_epilogue(const Epilogue& epilogue, const std::vector<Operand>& operands,
                          std::optional<size_t> returned, const char* name) {
  HEDDLE_CHECK(!returned || *returned < epilogue.stores.size(), "store {} of {}", *returned, epilogue.stores.size());
  return EpilogueWriter(epilogue, operands, returned).write(name);
}

}  // namespace heddle::codegen
