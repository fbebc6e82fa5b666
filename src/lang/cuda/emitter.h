#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/text/writer.h"
#include "lang/analysis/uses.h"
#include "lang/cuda/assign.h"
#include "lang/cuda/axis_facts.h"
#include "lang/cuda/pipeline.h"
#include "lang/ir/kernel.h"

// Writes the body of a kernel in terms of the operators of tile/block.
namespace heddle::lang::cuda {

// A product operand that is in shared memory.
struct OperandText {
  std::string operand;  // block::Operand<...>
  std::string pointer;  // C++ expression
  bool copied = false;  // true if copied from global memory without conversion
};

struct EmitOptions {
  int64_t warps = 4;
  int stages = 1;           // slots of pipelined loads
  int64_t most_shared = 0;  // limit on the shared memory of a block, in bytes
  bool keeps = true;        // loops without pipelined loads may keep operands of products in shared memory
  bool boxes = false;       // loads may use TMA
  bool producer = false;    // a separate producer warpgroup may issue the TMA loads
  bool emulated = false;    // the kernel is for the emulator, which has no PTX
};

// A TMA tensor map that is a parameter of the kernel.
struct TensorMapParameter {
  std::string name;
  TensorMapPlan plan;
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const std::vector<AxisFacts>& facts, const Assignment& layouts, EmitOptions options)
      : kernel(kernel), facts(facts), assignment(layouts), options(options), warps(options.warps), windows(kernel) {}

  void emit(const Region& region);
  void emit(const Op& op);

  // ---- Values

  const Type& type(ValueId v) const { return kernel.type(v); }
  const AxisFacts& facts_of(ValueId v) const { return facts[static_cast<size_t>(v)]; }
  const Layout& layout(ValueId v) const { return assignment.of(v); }
  // The layout of the first operand that is not uniform, or of operand 0 if all operands are uniform.
  const Layout& common_layout(const Op& op) const {
    for (const ValueId v : op.operands) {
      if (!uniform(v)) return layout(v);
    }
    return layout(op.operands[0]);
  }
  // Returns a unique C++ name for a value.
  std::string name(ValueId v);
  std::string fresh(const std::string& wanted);
  void bind(ValueId v, std::string text) { text_[v] = std::move(text); }
  // Binds a uniform tile (all elements are equal). `text` is the text of the common value.
  void bind_uniform(ValueId v, std::string text) {
    uniform_.insert(v);
    bind(v, std::move(text));
  }
  bool uniform(ValueId v) const { return uniform_.count(v) != 0; }
  // The text of a scalar or tile, as an operand of map(). The text of a uniform tile is that of a scalar.
  const std::string& text(ValueId v) const { return text_.at(v); }
  bool is_bound(ValueId v) const { return text_.count(v) != 0; }
  // The text of a tile, in its assigned layout or in layout `in`.
  std::string tile(ValueId v) { return tile(v, layout(v)); }
  std::string tile(ValueId v, const Layout& in);
  // The text that converts a tile from layout `from` to layout `to`. `text` is the text of the tile.
  std::string converted(std::string text, const Layout& from, const Layout& to, const Type& type);
  // The C++ type of the variable that holds a value.
  std::string held_type(ValueId v);
  std::string layout_name(const Layout& layout);

  // Writes "const auto NAME = TEXT;  // softmax.py:7" and binds the value to NAME. `pure`: the text has no side
  // effects, so it may be moved into the next statement.
  void declare(const Op& op, ValueId v, const std::string& text, bool pure = false);
  void statement(const Op& op, const std::string& text);
  std::string comment(const Op& op);
  // Reserves shared memory until the end of the loop. Returns its offset in bytes.
  int64_t keep(int64_t bytes) {
    const int64_t at = kept_bytes;
    constexpr int64_t kAlignment = 1024;  // swizzled operands need it
    kept_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    most_kept_bytes = std::max(most_kept_bytes, kept_bytes);
    return at;
  }
  void need_shared(int64_t bytes) {
    int64_t& most = kept_bytes > 0 ? shared_bytes : free_bytes;
    most = std::max(most, bytes);
  }
  // Adapts the text of an operator that uses shared memory: while nothing is kept in shared memory, the operator may
  // use all of it.
  std::string placed(std::string text) const;
  // Returns the text that f() emits, without adding it to the output. Names that f() binds are dropped afterwards.
  template <typename F>
  std::string apart(const F& f) {
    codegen::Writer other(2);
    std::swap(out, other);
    const auto texts = text_;
    const auto uniform = uniform_;
    f();
    text_ = texts;
    uniform_ = uniform;
    std::swap(out, other);
    return other.text();
  }
  // Declares a lambda for a region of scalar ops, before the statement that uses it. Returns the name of the lambda.
  std::string functor(const Op& op, const Region& region, const std::vector<std::string>& parameters,
                      const std::vector<std::string>& unpacked);

  const Kernel& kernel;
  const std::vector<AxisFacts>& facts;
  const Assignment& assignment;
  const EmitOptions options;
  const int64_t warps;
  const WindowAnalysis windows;
  const Uses& uses = windows.uses();
  codegen::Writer out{1};
  // The maximum shared memory of an operator, in bytes; operators use the same memory one after another. `shared_bytes`
  // is for operators that run while a loop keeps data in shared memory, `free_bytes` for all other operators.
  int64_t shared_bytes = 0, free_bytes = 0;
  // The shared memory in which loops currently keep data, and its maximum, in bytes. It precedes the operators' memory.
  int64_t kept_bytes = 0, most_kept_bytes = 0;
  std::unordered_map<ValueId, OperandText> operands;
  bool uses_groups = false;
  // Statements for the start of the kernel. They set up the rings, whose barriers are at the end of shared memory.
  std::vector<std::string> prologue;
  std::string producer;  // code of the producer warpgroup, which fills rings
  int64_t barrier_bytes = 0;
  std::vector<TensorMapParameter> maps;
  std::set<const Op*> skipped;       // ops that need no code, since nothing uses their results any more
  std::string meanwhile;             // lambda to call while the next warpgroup product runs
  std::vector<std::string> aliases;  // "using L0 = ...;", in order of declaration

 private:
  // True if the op's result exists only in shared memory, where asynchronous copies store it.
  bool is_staged(const Op& op) const;
  std::string alias_of(const std::string& type);

  std::unordered_map<ValueId, std::string> text_;
  std::set<ValueId> uniform_;
  std::set<std::string> names_;
  std::map<std::string, std::string> layout_names_;
  std::string last_place_;
};

// A scope in which a loop may keep data in shared memory. The destructor releases this memory and forgets the operands
// in it.
class KeptForLoop {
 public:
  explicit KeptForLoop(Emitter& e) : e_(e), bytes_(e.kept_bytes), operands_(e.operands) {}
  ~KeptForLoop() {
    e_.kept_bytes = bytes_;
    e_.operands = std::move(operands_);
  }
  KeptForLoop(const KeptForLoop&) = delete;
  KeptForLoop& operator=(const KeptForLoop&) = delete;

 private:
  Emitter& e_;
  int64_t bytes_;
  std::unordered_map<ValueId, OperandText> operands_;
};

// The text of a polynomial (a sum of products of scalars), computed in the integer type `type`.
std::string sum_text(const Emitter& e, const Polynomial& p, const std::string& type);

// Each of these functions emits one kind of ops. Returns false if the op is of another kind.
bool emit_elementwise(Emitter& e, const Op& op);
bool emit_shape(Emitter& e, const Op& op);
bool emit_memory(Emitter& e, const Op& op);
bool emit_over_axis(Emitter& e, const Op& op);
bool emit_product(Emitter& e, const Op& op);
bool emit_control(Emitter& e, const Op& op);
// The text of the window that an access to a view reads or writes. Bit d of `checked` is set if dimension d is
// bounds-checked.
std::string window_text(const Emitter& e, const Op& op, unsigned checked);
unsigned checked_of(const Op& op);
// operand_text() describes operand `side` of a product, in shared memory at `pointer`. operand_size() is the operand's
// size in bytes.
OperandText operand_text(const Emitter& e, const Op& dot, size_t side, std::string pointer);
int64_t operand_size(const Emitter& e, const Op& dot, size_t side);
// The text of the statement that stores an operand to shared memory.
std::string put_text(Emitter& e, const Op& dot, size_t side, const OperandText& text);
// Emits a `for` with pipelined loads. Returns false if the loop has no such loads.
bool emit_pipelined(Emitter& e, const Op& op);
// A lambda that does the work of a later iteration in advance. open_ahead() begins the lambda and computes the values
// that addresses depend on; close_ahead() ends it. Once there are no more iterations, the lambda does nothing.
struct Ahead {
  std::string index, lambda;
  std::vector<ValueId> targets, values;  // loop-carried values of the lambda, and their next values
};
Ahead open_ahead(Emitter& e, const Op& loop, const Pipeline& pipeline, const std::string& lambda);
// `always`: statements of the lambda that run even if there are no more iterations.
void close_ahead(Emitter& e, const Op& loop, const Ahead& ahead, const std::vector<std::string>& always = {});
// True if the first product in a loop's body is a warpgroup product directly in the body (not nested in another op).
// Work that overlaps with this product then runs in every iteration.
bool overlaps(const Emitter& e, const Region& body);
// Emits the body of a loop that only adds a product to a carried value. Each product runs while the next one is being
// issued. `behind`: statements to run after a product has been issued and the previous product has finished.
void emit_accumulating(Emitter& e, const Op& op, const AccumulatingProduct& product,
                       const std::vector<std::string>& behind);
// Emits a pipelined `for` whose loads go through registers.
void emit_by_registers(Emitter& e, const Op& op, const Pipeline& pipeline);
// The size, in elements, of a group of neighbouring elements whose address need not be aligned. load_pieces_text()
// returns the text that loads the aligned pieces that contain such groups.
constexpr int64_t kShiftedRun = 8;
std::string load_pieces_text(Emitter& e, const Op& op);
// Emits a pipelined `for` whose loads use TMA.
void emit_by_boxes(Emitter& e, const Op& op, const Pipeline& pipeline);
// The text that starts a product of operands in shared memory without waiting for the result, which is added to the
// variable `sums`.
std::string begin_product_text(Emitter& e, const Op& dot, const std::string& sums);
// Stores the loop-invariant operands of a loop's products to shared memory before the loop. Returns true if there are
// any.
bool lay_down_invariants(Emitter& e, const Region& body);
// True if a loop without pipelined loads may keep operands of its products in shared memory.
bool may_keep_operands(const Emitter& e, const Op& loop);
// Emits a load that only products in a later loop read as a copy to shared memory. Returns false if it is another load.
bool copy_kept_load(Emitter& e, const Op& load);
// The text of the statement that starts to copy a load to shared memory.
std::string copy_text(Emitter& e, const StagedLoad& load, const std::string& slot);
// Marks ops as skipped if only the pipelined loads use them. Call this after these loads have been emitted.
void skip_addresses(Emitter& e, const Region& body, const Pipeline& pipeline);
void emit_carried(Emitter& e, const Op& op);
std::string for_head(Emitter& e, const Op& op, const std::string& index);
void emit_for_body(Emitter& e, const Op& op);
// Emits assignments of values[i] to the variables of targets[i], for all i at once: all values are read before any
// variable changes.
void assign(Emitter& e, const std::vector<ValueId>& targets, const std::vector<ValueId>& values);
bool emit_effect(Emitter& e, const Op& op);

}  // namespace heddle::lang::cuda
