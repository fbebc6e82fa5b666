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

// A value that lies in shared memory as an operand of products.
struct OperandText {
  std::string operand;  // block::Operand<...>
  std::string pointer;  // C++
  bool copied = false;  // from memory, as it was
};

struct EmitOptions {
  int64_t warps = 4;
  int stages = 1;           // slots of loads that run ahead of a loop
  int64_t most_shared = 0;  // bytes of a block
  bool boxes = false;       // TMA may bring loads
  bool producer = false;    // by a warpgroup of its own
  bool emulated = false;    // there is no PTX
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
  // Of operands that have one: that of the first which is not the same everywhere.
  const Layout& common_layout(const Op& op) const {
    for (const ValueId v : op.operands) {
      if (!uniform(v)) return layout(v);
    }
    return layout(op.operands[0]);
  }
  // A name for a value that no other has.
  std::string name(ValueId v);
  std::string fresh(const std::string& wanted);
  void bind(ValueId v, std::string text) { text_[v] = std::move(text); }
  // A tile that is the same number everywhere is written as that number.
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
  // The text of a tile of layout `from` as one of `to`.
  std::string converted(std::string text, const Layout& from, const Layout& to, const Type& type);
  // The C++ type of a value as it is held.
  std::string held_type(ValueId v);
  std::string layout_name(const Layout& layout);

  // "const auto NAME = TEXT;  // softmax.py:7"; `pure`: it may move into the next statement.
  void declare(const Op& op, ValueId v, const std::string& text, bool pure = false);
  void statement(const Op& op, const std::string& text);
  std::string comment(const Op& op);
  // Bytes that stay for the loop, at their offset.
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
  // Text of operators that use shared memory: where nothing is kept there they have all of it.
  std::string placed(std::string text) const;
  // The text that f() emits, whose names are bound only there.
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
  // A lambda of a region of scalars, declared before the statement that uses it; its name.
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
  // That operators use in turn, beside what is kept and where nothing is.
  int64_t shared_bytes = 0, free_bytes = 0;
  // What lies in shared memory while a loop runs, before that: bytes now and at most.
  int64_t kept_bytes = 0, most_kept_bytes = 0;
  std::unordered_map<ValueId, OperandText> operands;
  bool uses_groups = false;
  // What the kernel begins with: rings, whose barriers lie behind all else in shared memory.
  std::vector<std::string> prologue;
  std::string producer;  // text of a further thread, which fills rings
  int64_t barrier_bytes = 0;
  std::vector<TensorMapParameter> maps;
  std::set<const Op*> skipped;       // whose results nobody needs any more
  std::string meanwhile;             // what the next product of warpgroups calls while it runs
  std::vector<std::string> aliases;  // "using L0 = ...;" in order

 private:
  // Whether its result is only in shared memory, where copies bring it.
  bool is_staged(const Op& op) const;
  std::string alias_of(const std::string& type);

  std::unordered_map<ValueId, std::string> text_;
  std::set<ValueId> uniform_;
  std::set<std::string> names_;
  std::map<std::string, std::string> layout_names_;
  std::string last_place_;
};

// While it lives, a loop may keep things in shared memory: behind it their place is free, and no operand is there any
// more.
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

// Each writes the ops of its kind; false: the op is none of these.
bool emit_elementwise(Emitter& e, const Op& op);
bool emit_shape(Emitter& e, const Op& op);
bool emit_memory(Emitter& e, const Op& op);
bool emit_over_axis(Emitter& e, const Op& op);
bool emit_product(Emitter& e, const Op& op);
bool emit_control(Emitter& e, const Op& op);
// The window that an access to a view names.
std::string window_text(const Emitter& e, const Op& op, unsigned checked);
unsigned checked_of(const Op& op);
// Operand `side` of a product in shared memory, at `pointer`; its bytes.
OperandText operand_text(const Emitter& e, const Op& dot, size_t side, std::string pointer);
int64_t operand_size(const Emitter& e, const Op& dot, size_t side);
// The statement that lays it down.
std::string put_text(Emitter& e, const Op& dot, size_t side, const OperandText& text);
// A `for` whose loads run ahead; false: it has none.
bool emit_pipelined(Emitter& e, const Op& op);
// The lambda that does something for a later trip than the loop's: open_ahead() begins it and computes what addresses
// are made of, close_ahead() ends it. It does nothing behind the last trip.
struct Ahead {
  std::string index, lambda;
  std::vector<ValueId> targets, values;  // what it carries, and what that becomes
};
Ahead open_ahead(Emitter& e, const Op& loop, const Pipeline& pipeline, const std::string& lambda);
// `always`: what is done behind the last trip too.
void close_ahead(Emitter& e, const Op& loop, const Ahead& ahead, const std::vector<std::string>& always = {});
// Whether the first product of a loop's body is one of warpgroups and stands in it directly, so that what is done while
// it runs is done in every trip.
bool overlaps(const Emitter& e, const Region& body);
// The body of a loop that only adds a product to what it carries: one product runs while the next is issued. `behind`:
// what follows when a product has been issued and the one before has ended.
void emit_accumulating(Emitter& e, const Op& op, const AccumulatingProduct& product,
                       const std::vector<std::string>& behind);
// One whose loads go through registers.
void emit_by_registers(Emitter& e, const Op& op, const Pipeline& pipeline);
// The pieces of a load of groups of kShiftedRun neighbours that are not aligned.
constexpr int64_t kShiftedRun = 8;
std::string load_pieces_text(Emitter& e, const Op& op);
// One whose loads TMA brings.
void emit_by_boxes(Emitter& e, const Op& op, const Pipeline& pipeline);
// A product of operands in shared memory, without waiting for it, into the variable of its sums.
std::string begin_product_text(Emitter& e, const Op& dot, const std::string& sums);
// Operands of the loop's products that do not change in it are laid down before it; whether there are any.
bool lay_down_invariants(Emitter& e, const Region& body);
// Ops of a loop that only loads need which have been made already are left out from now on.
void skip_addresses(Emitter& e, const Region& body, const Pipeline& pipeline);
void emit_carried(Emitter& e, const Op& op);
std::string for_head(Emitter& e, const Op& op, const std::string& index);
void emit_for_body(Emitter& e, const Op& op);
// variables of targets[i] = values[i] for all i at once.
void assign(Emitter& e, const std::vector<ValueId>& targets, const std::vector<ValueId>& values);
bool emit_effect(Emitter& e, const Op& op);

}  // namespace heddle::lang::cuda
