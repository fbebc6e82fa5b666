#include "lang/cpu/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "lang/analysis/waits.h"
#include "lang/cpu/expression.h"
#include "lang/cpu/pending.h"
#include "lang/cpu/sinks.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

constexpr unsigned kTouches = kWrites | kEffect;

std::string variable_type(const Type& type) {
  return is_mask(type) ? "mask<4, 1>" : fmt::format("vec<{}, 1>", lane_type(type));
}

// Whether a loop goes on.
std::string condition(const std::string& index, const std::string& end, const std::string& step, bool counts_up) {
  if (counts_up) return fmt::format("{} < {}", index, end);
  return fmt::format("{0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}", step, index, end);
}

// Whether a buffer that this trip made for one value alone can take the place of the carried one.
bool can_swap(const State& state, ValueId value, const std::vector<ValueId>& from, size_t first,
              const std::vector<std::string>& to, const Region& region) {
  if (!state.is_buffer(value) || !state.at(value).owned || state.uses.region(value) != &region) return false;
  if (std::find(region.arguments.begin(), region.arguments.end(), value) != region.arguments.end()) return false;
  const auto same = [&](ValueId other) {
    return state.is_buffer(other) && state.at(other).name == state.at(value).name;
  };
  if (std::count_if(from.begin() + static_cast<std::ptrdiff_t>(first), from.end(), same) != 1) return false;
  return std::find(to.begin(), to.end(), state.at(value).name) == to.end();
}

class BodyWriter {
 public:
  explicit BodyWriter(State& state)
      : state_(state),
        loops_(state),
        pending_(state),
        context_{state, loops_, &lines_,
                 [this](const auto& region, const auto& names) { return run_region(region, names); }} {}

  Writer run() {
    write_region(state_.kernel.body);
    return std::move(lines_);
  }

 private:
  Writer& out() { return *context_.out; }

  // Writes a region; its terminator.
  const Op* write_region(const Region& region) {
    Part part = next_part(region, 0);
    for (size_t i = 0; i < region.ops.size(); ++i) {
      const Op& op = region.ops[i];
      loops_.enter(op, region);
      if (info_of(op.code).has(kTerminator)) return &op;
      write(op);
      if (state_.uses.ops() <= kLong || i + 1 == region.ops.size()) continue;
      if (state_.uses.order(region.ops[i + 1]) - part.first_op >= kPart) {
        end_part(part, op);
        part = next_part(region, i + 1);
      }
    }
    return nullptr;
  }

  // The time of C++ compilers grows faster than the length of functions, so that parts of long kernels are functions.
  static constexpr int kLong = 1024, kPart = 256;  // in ops
  struct Part {
    int first_op;
    size_t lines, changes;  // in front of it
  };
  Part next_part(const Region& region, size_t i) {
    return {region.ops.empty() ? 0 : state_.uses.order(region.ops[i]), out().size(), state_.changes()};
  }

  // The lines of a part become a function. Scalars that others may still name are handed out of it.
  void end_part(const Part& part, const Op& last) {
    Writer body = out().take_from(part.lines);
    if (body.empty()) return;
    const int now = state_.uses.order(last);
    for (const ValueId value : state_.scalars_since(part.changes)) {
      const std::vector<const Op*>& users = state_.uses.users(value);
      const bool is_needed = std::any_of(users.begin(), users.end(), [&](const Op* user) {
        return state_.uses.order(*user) > now || is_lazy(state_.kernel, *user) || user->code == OpCode::kMakeView;
      });
      if (!is_needed) continue;
      const std::string name = new_variable(value);
      body.line("{} = {};", name, state_.at(value).name);
      state_.set_scalar(value, name);
    }
    out().block("[&]() __attribute__((noinline))", body, "}();");
  }

  // A region within the text of another op.
  std::vector<std::string> run_region(const Region& region, const std::vector<std::string>& arguments) {
    const Op* const sink = loops_.sink();
    const Region* const outer = loops_.region();
    const std::string watch = std::exchange(state_.watch, "");
    const bool in_function = std::exchange(in_function_, false);
    for (size_t i = 0; i < arguments.size(); ++i) state_.set_scalar(region.arguments[i], arguments[i]);
    const Op* end = write_region(region);
    std::vector<std::string> yields;
    for (const ValueId value : end->operands) yields.push_back(state_.at(value).name);
    loops_.enter(*sink, *outer);
    state_.watch = watch;
    in_function_ = in_function;
    return yields;
  }

  // The lines of a region that `write` makes, apart. It may not run, so what it puts into buffers of values from
  // outside is known within it alone.
  template <typename F>
  Writer captured(const F& write) {
    Writer lines;
    Writer* const outer = std::exchange(context_.out, &lines);
    const size_t before = state_.changes();
    const std::vector<ValueId> loads = loops_.loads();
    write();
    state_.undo_to(before);
    loops_.set_loads(loads);
    context_.out = outer;
    return lines;
  }

  void write(const Op& op) {
    if (is_lazy(state_.kernel, op)) {
      const bool reads = info_of(op.code).has(kReads);
      if (reads) loops_.add_load(op.results[0]);
      if (pending_.exceeds(op)) loops_.write_now(out());
      return;
    }
    switch (op.code) {
      case OpCode::kProgramId:
      case OpCode::kNumPrograms:
        return declare(
            op.results[0],
            fmt::format("vec<int32_t, 1>{{int32_t({}[{}])}}", op.code == OpCode::kProgramId ? "program" : "arguments",
                        op.attributes.integer("axis")),
            op);
      case OpCode::kFor:
        return write_for(op);
      case OpCode::kWhile:
        return write_while(op);
      case OpCode::kIf:
        return write_if(op);
      default:
        break;
    }
    if (write_memory_op(context_, op) || write_axis_op(context_, op) || write_product_op(context_, op) ||
        write_effect_op(context_, op)) {
      return;
    }
    write_scalar(op);
  }

  void declare(ValueId value, const std::string& text, const Op& op) {
    const std::string name = state_.fresh(value), comment = place_comment(state_.kernel, op);
    out().line("const auto {} = {};{}{}", name, text, comment.empty() ? "" : "  ", comment);
    state_.set_scalar(value, name);
  }

  // Ops with scalar results: of scalars, or of tiles of one element.
  void write_scalar(const Op& op) {
    for (const ValueId operand : op.operands) loops_.prepare(out(), operand);
    if (op.code == OpCode::kSplit || op.code == OpCode::kReshape) {
      const std::string from = loops_.buffer(out(), op.operands[0]);
      for (size_t i = 0; i < op.results.size(); ++i) {
        const char* held = is_mask(state_.type(op.results[i])) ? "held_mask" : "held";
        declare(op.results[i], fmt::format("{}<1>({} + {}, index_constant<1>{{}})", held, from, i), op);
      }
      return;
    }
    HEDDLE_CHECK(op.results.size() == 1 && state_.type(op.results[0]).is_scalar(), "no text for `{}`",
                 to_string(op.code));
    if (is_volatile(op)) loops_.flush_loads(out());
    Lanes lanes(state_);
    const std::string name = lanes.at(op.results[0], {}).name;
    out().append(lanes.row);
    out().append(lanes.inner);
    state_.set_scalar(op.results[0], name);
    if (is_volatile(op) && !state_.watch.empty()) out().line("{}.saw({});", state_.watch, name);
  }

  // ---- Values that change

  // A variable or a buffer that is assigned to: its name.
  std::string new_variable(ValueId value) {
    const Type& type = state_.type(value);
    if (type.is_tile()) return state_.new_buffer(value);
    const std::string name = state_.fresh(value);
    out().line("{} {}{{}};", variable_type(type), name);
    return name;
  }
  void set(ValueId value, const std::string& name) {
    state_.type(value).is_tile() ? state_.set_buffer(value, name) : state_.set_scalar(value, name);
  }
  void assign(ValueId value, const std::string& name) {
    if (state_.type(value).is_tile()) {
      loops_.prepare(out(), value);
      loops_.write_to(out(), value, name);
    } else {
      out().line("{} = {};", name, state_.at(value).name);
    }
  }

  // Carried values get their next values, all of which are made before the first is replaced.
  void assign_all(const std::vector<ValueId>& from, size_t first, const std::vector<std::string>& to,
                  const Region& region) {
    std::vector<std::string> replacing;
    for (size_t i = 0; i < to.size(); ++i) {
      const ValueId value = from[first + i];
      const Type& type = state_.type(value);
      if (type.is_scalar()) {
        const std::string next = state_.fresh(value);
        out().line("const auto {} = {};", next, state_.at(value).name);
        replacing.push_back(fmt::format("{} = {};", to[i], next));
      } else if (state_.is_buffer(value) && state_.at(value).name == to[i]) {
        continue;
      } else if (can_swap(state_, value, from, first, to, region)) {
        replacing.push_back(fmt::format("swap_buffers({}, {});", to[i], state_.at(value).name));
      } else {
        const std::string next = state_.new_buffer(value);
        assign(value, next);
        replacing.push_back(fmt::format("swap_buffers({}, {});", to[i], next));
      }
    }
    for (const std::string& line : replacing) out().raw(line);
  }

  void before_regions(const Op& op) {
    bool ordered = false;
    for (const Region& region : op.regions) ordered = ordered || has_trait(region, kTouches) || orders_loads(region);
    if (ordered) loops_.flush_loads(out());
    loops_.prepare_regions(out(), op);
    const std::string comment = place_comment(state_.kernel, op);
    if (!comment.empty()) out().raw(comment);
  }

  void write_for(const Op& op) {
    const Region& body = op.regions[0];
    before_regions(op);
    std::vector<std::string> carried;
    for (size_t i = 3; i < op.operands.size(); ++i) {
      carried.push_back(new_variable(op.results[i - 3]));
      assign(op.operands[i], carried.back());
    }
    const auto bound = [&](size_t i) { return state_.at(op.operands[i]).name + ".v"; };
    const Type& type = state_.type(op.operands[0]);
    const std::string index = state_.fresh(body.arguments[0]) + "index";
    const char* wide = type.element == Element::kU64 ? "uint64_t" : "int64_t";
    const std::optional<int64_t> step = state_.constant(op.operands[2]);
    const std::string goes_on = condition(index, fmt::format("{}({})", wide, bound(1)), bound(2), step && *step > 0);
    for (size_t i = 0; i < carried.size(); ++i) set(body.arguments[i + 1], carried[i]);
    const Writer lines = captured([&] {
      const std::string name = state_.fresh(body.arguments[0]);
      out().line("const auto {} = vec<{}, 1>{{{}({})}};", name, lane_type(type), lane_type(type), index);
      state_.set_scalar(body.arguments[0], name);
      const Op* end = write_region(body);
      assign_all(end->operands, 0, carried, body);
    });
    out().block(fmt::format("for ({0} {1} = {2}; {3}; {1} += {4})", wide, index, bound(0), goes_on, bound(2)), lines);
    for (size_t i = 0; i < carried.size(); ++i) set(op.results[i], carried[i]);
  }

  void write_while(const Op& op) {
    const Region &before = op.regions[0], &after = op.regions[1];
    before_regions(op);
    std::vector<std::string> carried, handed;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      carried.push_back(new_variable(before.arguments[i]));
      assign(op.operands[i], carried.back());
      set(before.arguments[i], carried.back());
    }
    for (const ValueId result : op.results) handed.push_back(new_variable(result));
    const std::string outer = begin_watch(op);
    const Writer lines = captured([&] {
      const Op* condition = write_region(before);
      for (size_t i = 0; i < handed.size(); ++i) {
        assign(condition->operands[i + 1], handed[i]);
        set(after.arguments[i], handed[i]);
      }
      out().line("if (!{}[0]) break;", state_.at(condition->operands[0]).name);
      const Op* end = write_region(after);
      assign_all(end->operands, 0, carried, after);
      end_trip(op, carried);
    });
    out().block("for (;;)", lines);
    if (!state_.watch.empty()) out().line("{}.end(services);", state_.watch);
    state_.watch = outer;
    for (size_t i = 0; i < handed.size(); ++i) set(op.results[i], handed[i]);
  }

  // A watch over what a loop hears from other programs, if it may wait for them. The one that watched before.
  std::string begin_watch(const Op& op) {
    if (!in_function_ || !waits(op)) return std::exchange(state_.watch, "");
    const std::string name = fmt::format("watch{}", state_.uses.order(op));
    out().line("spin_watch {};", name);
    return std::exchange(state_.watch, name);
  }
  void end_trip(const Op& op, const std::vector<std::string>& carried) {
    if (state_.watch.empty()) return;
    for (size_t i = 0; i < carried.size(); ++i) {
      if (state_.type(op.operands[i]).is_scalar()) out().line("{}.carries({});", state_.watch, carried[i]);
    }
    out().line("if ({}.turn(services, {}, program)) return;", state_.watch, state_.uses.order(op));
  }

  void write_if(const Op& op) {
    before_regions(op);
    std::vector<std::string> results;
    for (const ValueId result : op.results) results.push_back(new_variable(result));
    const auto branch = [&](const Region& region) {
      return captured([&] {
        const Op* end = write_region(region);
        for (size_t i = 0; i < results.size(); ++i) assign(end->operands[i], results[i]);
      });
    };
    const Writer then = branch(op.regions[0]), otherwise = branch(op.regions[1]);
    out().branch(state_.at(op.operands[0]).name + "[0]", then, otherwise);
    for (size_t i = 0; i < results.size(); ++i) set(op.results[i], results[i]);
  }

  State& state_;
  Loops loops_;
  PendingOps pending_;
  Writer lines_;
  bool in_function_ = true;  // not in a lambda, where `return` ends less than the program
  SinkContext context_;
};

}  // namespace

Writer write_body(State& state) {
  return BodyWriter(state).run();
}

}  // namespace heddle::lang::cpu
