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

// Writes the body of a kernel on the operators of tile/block.
namespace heddle::lang::cuda {

// An operand of products in shared memory.
struct OperandText {
  std::string operand;  // block::Operand<...>
  std::string pointer;  // C++
  bool copied = false;  // from memory, unchanged
};

struct EmitOptions {
  int64_t warps = 4;
  int stages = 1;           // slots of pipelined loads
  int64_t most_shared = 0;  // limit on the shared memory of a block, in bytes
  bool boxes = false;       // TMA may make loads
  bool producer = false;    // a warpgroup of its own may issue them
  bool emulated = false;    // for the emulator, which has no PTX
};

// A tensor map that is a parameter of the kernel.
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
  // The layout of the first operand that is not uniform, else of operand 0.
  const Layout& common_layout(const Op& op) const {
    for (const ValueId v : op.operands) {
      if (!uniform(v)) return layout(v);
    }
    return layout(op.operands[0]);
  }
  // A unique name for a value.
  std::string name(ValueId v);
  std::string fresh(const std::string& wanted);
  void bind(ValueId v, std::string text) { text_[v] = std::move(text); }
  // Binds a tile whose elements are all the same number to the text of that number.
  void bind_uniform(ValueId v, std::string text) {
    uniform_.insert(v);
    bind(v, std::move(text));
  }
  bool uniform(ValueId v) const { return uniform_.count(v) != 0; }
  // A scalar or a tile as an operand of map(): uniform tiles are scalars.
  const std::string& text(ValueId v) const { return text_.at(v); }
  bool is_bound(ValueId v) const { return text_.count(v) != 0; }
  // A tile in its own layout or another one.
  std::string tile(ValueId v) { return tile(v, layout(v)); }
  std::string tile(ValueId v, const Layout& in);
  // Converts the text of a tile from layout `from` to `to`.
  std::string converted(std::string text, const Layout& from, const Layout& to, const Type& type);
  // The C++ type in which a value is held.
  std::string held_type(ValueId v);
  std::string layout_name(const Layout& layout);

  // "const auto NAME = TEXT;  // softmax.py:7"; `pure`: it may move into the next statement.
  void declare(const Op& op, ValueId v, const std::string& text, bool pure = false);
  void statement(const Op& op, const std::string& text);
  std::string comment(const Op& op);
  // Reserves bytes of shared memory until the loop ends; returns their offset.
  int64_t keep(int64_t bytes) {
    const int64_t at = kept_bytes;
    constexpr int64_t kAlignment = 1024;  // of operands that are swizzled
    kept_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    most_kept_bytes = std::max(most_kept_bytes, kept_bytes);
    return at;
  }
  void need_shared(int64_t bytes) {
    int64_t& most = kept_bytes > 0 ? shared_bytes : free_bytes;
    most = std::max(most, bytes);
  }
  // The text of an operator that uses shared memory. It gets all of it if nothing is kept there.
  std::string placed(std::string text) const;
  // The text that f() emits. Names that f() binds are dropped afterwards.
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
  // Declares a lambda for a region of scalars before the statement that uses it; returns its name.
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
  // Bytes that operators use in turn: while something is kept in shared memory, and while nothing is.
  int64_t shared_bytes = 0, free_bytes = 0;
  // Bytes kept in shared memory while a loop runs, in front of the operators' bytes: current and maximum.
  int64_t kept_bytes = 0, most_kept_bytes = 0;
  std::unordered_map<ValueId, OperandText> operands;
  bool uses_groups = false;
  // Statements at the start of the kernel. They set up rings, whose barriers come last in shared memory.
  std::vector<std::string> prologue;
  std::string producer;  // code of the producer warpgroup, which fills rings
  int64_t barrier_bytes = 0;
  std::vector<TensorMapParameter> maps;
  std::set<const Op*> skipped;       // ops whose results are no longer needed
  std::string meanwhile;             // the lambda that the next warpgroup product calls while it runs
  std::vector<std::string> aliases;  // "using L0 = ...;" in order

 private:
  // Whether the op's result exists only in shared memory, where copies put it.
  bool is_staged(const Op& op) const;
  std::string alias_of(const std::string& type);

  std::unordered_map<ValueId, std::string> text_;
  std::set<ValueId> uniform_;
  std::set<std::string> names_;
  std::map<std::string, std::string> layout_names_;
  std::string last_place_;
};

// A scope in which a loop may keep data in shared memory. At its end that memory is free, and the operands in it are
// forgotten.
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

// A sum of products of scalars in an integer type.
std::string sum_text(const Emitter& e, const Polynomial& p, const std::string& type);

// Each emits one kind of ops; false: the op is of another kind.
bool emit_elementwise(Emitter& e, const Op& op);
bool emit_shape(Emitter& e, const Op& op);
bool emit_memory(Emitter& e, const Op& op);
bool emit_over_axis(Emitter& e, const Op& op);
bool emit_product(Emitter& e, const Op& op);
bool emit_control(Emitter& e, const Op& op);
// The text of the window that an access to a view reads or writes.
std::string window_text(const Emitter& e, const Op& op, unsigned checked);
unsigned checked_of(const Op& op);
// Operand `side` of a product in shared memory at `pointer`, and its size in bytes.
OperandText operand_text(const Emitter& e, const Op& dot, size_t side, std::string pointer);
int64_t operand_size(const Emitter& e, const Op& dot, size_t side);
// The statement that stores an operand to shared memory.
std::string put_text(Emitter& e, const Op& dot, size_t side, const OperandText& text);
// A `for` with pipelined loads; false: the loop has none.
bool emit_pipelined(Emitter& e, const Op& op);
// A lambda that does work for a later iteration. open_ahead() begins it and computes the values that addresses depend
// on; close_ahead() ends it. The lambda does nothing after the last iteration.
struct Ahead {
  std::string index, lambda;
  std::vector<ValueId> targets, values;  // the values it carries, and their next values
};
Ahead open_ahead(Emitter& e, const Op& loop, const Pipeline& pipeline, const std::string& lambda);
// `always`: statements that run after the last iteration, too.
void close_ahead(Emitter& e, const Op& loop, const Ahead& ahead, const std::vector<std::string>& always = {});
// Whether the first product of a loop's body is a warpgroup product directly in the body, so that work overlapped with
// it runs in every iteration.
bool overlaps(const Emitter& e, const Region& body);
// The body of a loop that only adds a product to a carried value: one product runs while the next is issued. `behind`:
// statements to run once a product is issued and the previous one has ended.
void emit_accumulating(Emitter& e, const Op& op, const AccumulatingProduct& product,
                       const std::vector<std::string>& behind);
// A pipelined `for` whose loads go through registers.
void emit_by_registers(Emitter& e, const Op& op, const Pipeline& pipeline);
// The pieces of a load of unaligned groups of kShiftedRun neighbours.
constexpr int64_t kShiftedRun = 8;
std::string load_pieces_text(Emitter& e, const Op& op);
// A pipelined `for` whose loads TMA makes.
void emit_by_boxes(Emitter& e, const Op& op, const Pipeline& pipeline);
// Starts a product of operands in shared memory without waiting for it. It adds to the variable `sums`.
std::string begin_product_text(Emitter& e, const Op& dot, const std::string& sums);
// Stores loop-invariant operands of the loop's products to shared memory before the loop; returns whether there are
// any.
bool lay_down_invariants(Emitter& e, const Region& body);
// Skips ops that only the loop's loads need, once these loads have been emitted.
void skip_addresses(Emitter& e, const Region& body, const Pipeline& pipeline);
void emit_carried(Emitter& e, const Op& op);
std::string for_head(Emitter& e, const Op& op, const std::string& index);
void emit_for_body(Emitter& e, const Op& op);
// Assigns values[i] to the variables of targets[i], for all i at once.
void assign(Emitter& e, const std::vector<ValueId>& targets, const std::vector<ValueId>& values);
bool emit_effect(Emitter& e, const Op& op);

}  // namespace heddle::lang::cuda
