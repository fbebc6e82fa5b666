#include "lang/interpret/interpret.h"

#include <algorithm>

#include "base/check.h"
#include "lang/interpret/elementwise.h"
#include "lang/interpret/environment.h"
#include "lang/interpret/report.h"

namespace heddle::lang {
namespace {

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::array<int64_t, 3> grid, const InterpretOptions& options)
      : env_{kernel, options, Memory(kernel, options.allocations, options.checked), grid, {}, {}, {}} {
    env_.values.resize(kernel.values.size());
    env_.evaluate = [this](const Region& region, std::vector<Cells> arguments, size_t lanes) {
      return evaluate(region, std::move(arguments), lanes);
    };
  }

  void bind(std::span<const Argument> arguments) {
    const auto& parameters = env_.kernel.parameters;
    if (arguments.size() != parameters.size()) {
      fail(ErrorCode::kInvalidArgument, "kernel @" + env_.kernel.name,
           fmt::format("it has {} parameters, {} arguments are given", parameters.size(), arguments.size()));
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Type& type = env_.type(parameters[i].value);
      const bool number = is_float(type.element) && !type.pointer;
      env_.set(parameters[i].value, {number ? Cell{.f = round_float(type.element, arguments[i].number)}
                                            : Cell{.i = type.pointer ? arguments[i].integer
                                                                     : wrap_int(type.element, arguments[i].integer)}});
    }
  }

  void run_program(std::array<int64_t, 3> program) {
    env_.program = program;
    env_.memory.enter_program(program);
    run_ops(env_.kernel.body);
  }

 private:
  // Runs a region; the values of its terminator are then in `ends_`.
  const Op* run_ops(const Region& region) {
    for (const Op& op : region.ops) {
      const OpInfo& info = info_of(op.code);
      if (info.has(kTerminator)) return &op;
      env_.memory.enter_op(op);
      if (info.has(kElementwise)) {
        run_elementwise(op, env_.elements(op.results[0]));
      } else if (!run_control(op) && !run_shape_op(env_, op) && !run_axis_op(env_, op) && !run_product_op(env_, op) &&
                 !run_memory_op(env_, op) && !run_effect_op(env_, op)) {
        HEDDLE_CHECK(false, "the interpreter has no meaning for `{}`", info.name);
      }
    }
    return nullptr;
  }

  void run_elementwise(const Op& op, size_t lanes) {
    std::vector<const Type*> types;
    std::vector<const Cells*> operands;
    std::vector<Cells> widened;
    widened.reserve(op.operands.size());
    for (const ValueId operand : op.operands) {
      types.push_back(&env_.type(operand));
      const Cells& cells = env_.get(operand);
      if (cells.size() != lanes) widened.emplace_back(lanes, cells[0]);  // a scalar from outside of a region of lanes
      operands.push_back(cells.size() == lanes ? &cells : &widened.back());
    }
    env_.set(op.results[0], evaluate_elementwise(op, types, env_.type(op.results[0]), operands, lanes));
  }

  bool run_control(const Op& op) {
    switch (op.code) {
      case OpCode::kProgramId:
      case OpCode::kNumPrograms: {
        const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
        env_.set(op.results[0], {Cell{.i = op.code == OpCode::kProgramId ? env_.program[axis] : env_.grid[axis]}});
        return true;
      }
      case OpCode::kFor:
        run_for(op);
        return true;
      case OpCode::kWhile:
        run_while(op);
        return true;
      case OpCode::kIf: {
        const Op* end = run_ops(op.regions[env_.operand(op, 0)[0].i != 0 ? 0 : 1]);
        hand_on(end->operands, 0, op.results);
        return true;
      }
      default:
        return false;
    }
  }

  // Values to values, all read before the first is set.
  void hand_on(const std::vector<ValueId>& from, size_t first, const std::vector<ValueId>& to, size_t first_to = 0) {
    std::vector<Cells> values;
    for (size_t i = first; i < from.size(); ++i) values.push_back(env_.get(from[i]));
    for (size_t i = 0; i < values.size(); ++i) env_.set(to[first_to + i], std::move(values[i]));
  }

  void run_for(const Op& op) {
    const Region& body = op.regions[0];
    const Element element = env_.operand_type(op, 0).element;
    int64_t i = env_.operand(op, 0)[0].i;
    const int64_t end = env_.operand(op, 1)[0].i, step = env_.operand(op, 2)[0].i;
    const bool wide = element == Element::kU64;
    const auto goes_on = [&] {
      if (wide) return step != 0 && static_cast<uint64_t>(i) < static_cast<uint64_t>(end);
      return step > 0 ? i < end : step < 0 && i > end;
    };
    hand_on(op.operands, 3, body.arguments, 1);
    while (goes_on()) {
      env_.set(body.arguments[0], {Cell{.i = i}});
      hand_on(run_ops(body)->operands, 0, body.arguments, 1);
      int64_t next = 0;
      if (__builtin_add_overflow(i, step, &next) && !wide) break;
      i = next;
    }
    hand_on(body.arguments, 1, op.results);
  }

  void run_while(const Op& op) {
    hand_on(op.operands, 0, op.regions[0].arguments);
    for (int64_t trip = 0;; ++trip) {
      const int64_t changes = env_.memory.changes();
      const std::vector<Cells> carried = values_of(op.regions[0].arguments);
      const Op* condition = run_ops(op.regions[0]);
      if (env_.operand(*condition, 0)[0].i == 0) {
        hand_on(condition->operands, 1, op.results);
        return;
      }
      if (trip >= env_.options.most_trips) fail_loop(op, fmt::format("this loop has not ended after {} trips", trip));
      hand_on(condition->operands, 1, op.regions[1].arguments);
      hand_on(run_ops(op.regions[1])->operands, 0, op.regions[0].arguments);
      const bool same = env_.memory.changes() == changes && are_same(carried, values_of(op.regions[0].arguments));
      if (same) fail_loop(op, "this loop never ends: a trip changes neither memory nor what the next one begins with");
    }
  }

  [[noreturn]] void fail_loop(const Op& loop, const std::string& why) const {
    fail(ErrorCode::kValueOutOfRange, program_place(env_.kernel, loop, env_.program), why,
         "Programs run one after another here: a loop that waits for a later one never ends");
  }

  static bool are_same(const std::vector<Cells>& a, const std::vector<Cells>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Cells& x, const Cells& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](Cell p, Cell q) { return p.i == q.i; });
    });
  }

  std::vector<Cells> values_of(const std::vector<ValueId>& values) const {
    std::vector<Cells> cells;
    for (const ValueId value : values) cells.push_back(env_.get(value));
    return cells;
  }

  static bool is_elementwise(const Region& region) {
    return std::all_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
      return info_of(op.code).has(kElementwise) || info_of(op.code).has(kTerminator);
    });
  }

  std::vector<Cells> evaluate(const Region& region, std::vector<Cells> arguments, size_t lanes) {
    if (is_elementwise(region)) {
      for (size_t i = 0; i < arguments.size(); ++i) env_.set(region.arguments[i], std::move(arguments[i]));
      for (const Op& op : region.ops) {
        if (!info_of(op.code).has(kTerminator)) run_elementwise(op, lanes);
      }
      return yielded(region.ops.back(), lanes);
    }
    std::vector<Cells> results(region.ops.back().operands.size());
    for (size_t lane = 0; lane < lanes; ++lane) {
      for (size_t i = 0; i < arguments.size(); ++i) env_.set(region.arguments[i], {arguments[i][lane]});
      const std::vector<Cells> one = yielded(*run_ops(region), 1);
      for (size_t r = 0; r < one.size(); ++r) results[r].push_back(one[r][0]);
    }
    return results;
  }

  std::vector<Cells> yielded(const Op& yield, size_t lanes) const {
    std::vector<Cells> results;
    for (const ValueId value : yield.operands) {
      const Cells& cells = env_.get(value);
      results.push_back(cells.size() == lanes ? cells : Cells(lanes, cells[0]));
    }
    return results;
  }

  Environment env_;
};

}  // namespace

void interpret(const Kernel& kernel, std::array<int64_t, 3> grid, std::span<const Argument> arguments,
               const InterpretOptions& options) {
  Interpreter interpreter(kernel, grid, options);
  interpreter.bind(arguments);
  for (int64_t z = 0; z < grid[2]; ++z) {
    for (int64_t y = 0; y < grid[1]; ++y) {
      for (int64_t x = 0; x < grid[0]; ++x) interpreter.run_program({x, y, z});
    }
  }
}

}  // namespace heddle::lang
