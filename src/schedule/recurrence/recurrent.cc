#include "schedule/recurrence/recurrent.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "ir/reference/array.h"
#include "schedule/expr/inline.h"
#include "schedule/floor.h"
#include "schedule/product/contraction_builder.h"
#include "schedule/product/dot_problem.h"
#include "schedule/recurrence/mapping.h"

namespace heddle::schedule {
namespace {

using ir::Graph;

[[noreturn]] void refuse(std::string why) {
  fail(ErrorCode::kUnsupportedOperator, "loop", std::move(why));
}

// A loop with what one kernel needs to run it. Its constants are operands with the tensor itself.
struct Recurrence {
  std::shared_ptr<RecurrentDesc> desc = std::make_shared<RecurrentDesc>();
  std::vector<Operand> operands;
  std::vector<Binding> bindings;
  size_t products = 0, casts = 0;  // nodes of the body
  double operations = 0;           // of all steps
};

class RecurrenceReader {
 public:
  RecurrenceReader(const Graph& outer, const Node& loop)
      : outer_(outer), loop_(loop), body_(loop.attrs.graph("body")), d_(*result_.desc) {}

  Recurrence run() {
    read_length();
    read_states();
    mark_needed();
    find_vectors();
    d_.step = d_.pool.indices.new_var(d_.steps);
    d_.row = d_.pool.indices.new_var(d_.rows);
    for (const auto& [value, vector] : made_) {
      add_phase(body_.shape(value).back());
      add_result(value).vectors.push_back(vector);
    }
    add_final_phases();
    settle_states();
    d_.loop_operands = static_cast<uint32_t>(result_.operands.size());
    return std::move(result_);
  }

 private:
  size_t state_count() const { return d_.states.size(); }

  static bool is_true(const Tensor* tensor) {
    return tensor != nullptr && tensor->size() == 1 && tensor->values<uint8_t>()[0] != 0;
  }

  void read_length() {
    const Tensor* trip = outer_.constant_of(loop_.inputs[0]);
    if (trip == nullptr || !is_true(outer_.constant_of(loop_.inputs[1]))) refuse("its length is not known");
    const ValueId again = body_.outputs()[0].value;
    if (again != body_.inputs()[1].value && !is_true(body_.constant_of(again))) refuse("its data decide when it ends");
    d_.steps = trip->values<int64_t>()[0];
    if (loop_.attrs.has("trip")) {
      const int64_t bound = loop_.attrs.integer("trip");
      if (loop_.attrs.integer("scans") > 0 && bound > d_.steps) refuse("it ends early");
      d_.steps = std::min(d_.steps, bound);
    }
    if (d_.steps < 1 || d_.steps > INT32_MAX / 2) refuse("it has no steps, or too many");
  }

  int64_t rows_of(const Shape& shape) {
    if (shape.empty()) refuse("it carries a scalar");
    const int64_t size = element_count(shape);
    if (size == 0 || size > INT32_MAX) refuse("it carries an empty or a huge value");
    return size / shape.back();
  }

  void read_states() {
    const auto states = static_cast<size_t>(loop_.attrs.integer("states"));
    if (states == 0) refuse("it carries nothing from step to step");
    for (size_t s = 0; s < states; ++s) {
      const ValueId parameter = body_.inputs()[2 + s].value;
      const Shape& shape = body_.shape(parameter);
      const DType dtype = body_.dtype(parameter);
      if (!is_small_float(dtype)) refuse(fmt::format("a state is {}", ir::to_string(body_.type(parameter))));
      if (s == 0) d_.rows = rows_of(shape);
      if (rows_of(shape) != d_.rows) refuse("its states differ in their rows");
      const uint32_t initial = outer_input(2 + s);
      d_.states.push_back({dtype, shape.back(), initial, {}});
      parameters_[parameter] = 2 + s;
    }
    for (size_t i = 0; i < body_.inputs().size(); ++i) parameters_[body_.inputs()[i].value] = i;
  }

  static bool is_small_float(DType dtype) {
    return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  }

  uint32_t add_operand(Operand::Role role, DType dtype, Shape shape, Binding binding) {
    result_.operands.push_back({role, dtype, std::move(shape), {}});
    result_.bindings.push_back(std::move(binding));
    return static_cast<uint32_t>(result_.operands.size() - 1);
  }

  // The operand of an input of the loop.
  uint32_t outer_input(size_t input) {
    const ValueId value = loop_.inputs[input];
    if (const auto known = inputs_.find(value); known != inputs_.end()) return known->second;
    return inputs_[value] = add_operand(Operand::Role::kInput, outer_.dtype(value), outer_.shape(value),
                                        {.kind = Binding::Kind::kValue, .value = value});
  }
  uint32_t constant_operand(ValueId value) {
    if (const auto known = constants_.find(value); known != constants_.end()) return known->second;
    const Tensor& tensor = *body_.constant_of(value);
    return constants_[value] = add_operand(Operand::Role::kInput, tensor.dtype(), tensor.shape(),
                                           {.kind = Binding::Kind::kTensor, .tensor = tensor});
  }

  void mark_needed() {
    needed_.assign(body_.nodes().size(), false);
    for (const Graph::Port& port : body_.outputs()) needed_[body_.value(port.value).producer] = true;
    for (size_t i = body_.nodes().size(); i-- > 0;) {
      if (!needed_[i]) continue;
      const Node& node = body_.nodes()[i];
      for (const ValueId input : node.inputs) needed_[body_.value(input).producer] = true;
      result_.casts += node.op == Op::kCast;
    }
  }

  // The state behind a value that only its type, or nothing, tells from it.
  std::optional<uint32_t> state_behind(ValueId value) const {
    int casts = 0;
    const int64_t length = body_.shape(value).back();
    for (;; value = body_.producer(value).inputs[0]) {
      const Op op = body_.producer(value).op;
      if (op == Op::kCast && casts++ == 0) continue;
      if (op == Op::kReshape) continue;
      break;
    }
    const auto found = parameters_.find(value);
    if (found == parameters_.end() || found->second < 2 || found->second >= 2 + state_count()) return std::nullopt;
    if (body_.shape(value).back() != length) return std::nullopt;
    return static_cast<uint32_t>(found->second - 2);
  }

  void find_vectors() {
    for (ir::NodeId id = 0; id < body_.nodes().size(); ++id) {
      const Node& node = body_.node(id);
      if (!needed_[id] || node.op != Op::kDot) continue;
      const ValueId a = node.inputs[0], b = node.inputs[1];
      const auto compute = contraction_compute(body_.dtype(a), body_.dtype(b), body_.dtype(node.outputs[0]));
      if (compute != DType::kF32) refuse("a product in its body is of " + std::string(to_string(body_.dtype(a))));
      if (body_.constant_of(b) == nullptr) refuse("the right-hand side of a product in its body is not constant");
      const auto last = static_cast<int64_t>(body_.shape(a).size()) - 1;
      if (!node.attrs.ints("lhs_batch").empty() || node.attrs.ints("lhs_contract") != ir::Ints{last} ||
          body_.shape(b).size() != 2 || node.attrs.ints("rhs_contract").size() != 1) {
        refuse("a product in its body is not one of rows and a matrix");
      }
      if (rows_of(body_.shape(a)) != d_.rows) refuse("a product in its body has other rows than its states");
      ++result_.products;
      vector_of_[a] = vector_of(a);
    }
  }

  uint32_t vector_of(ValueId value) {
    if (const auto known = vector_of_.find(value); known != vector_of_.end()) return known->second;
    const DType dtype = body_.dtype(value);
    const auto state = state_behind(value);
    for (uint32_t v = 0; state && v < d_.vectors.size(); ++v) {
      if (d_.vectors[v].state == state && d_.vectors[v].dtype == dtype) return v;
    }
    d_.vectors.push_back({body_.shape(value).back(), dtype, state});
    const auto vector = static_cast<uint32_t>(d_.vectors.size() - 1);
    if (!state) made_[value] = vector;  // in order of their ids, which is topological
    return vector;
  }

  // --- phases ----------------------------------------------------------------------------------------------------

  void add_phase(int64_t units) {
    RecurrentPhase phase;
    phase.units = units;
    phase.unit = d_.pool.indices.new_var(units);
    d_.phases.push_back(std::move(phase));
    inliner_ = std::make_unique<Inliner>(body_, d_.pool);
    inliner_->set_binding([this](ValueId value, const std::vector<Index>& at) { return bind(value, at); });
    sums_.clear();
  }
  RecurrentPhase& phase() { return d_.phases.back(); }

  RecurrentResult& add_result(ValueId value) {
    IndexPool& indices = d_.pool.indices;
    const Shape& shape = body_.shape(value);
    std::vector<Index> at = indices.delinear(indices.var(d_.row), Shape(shape.begin(), shape.end() - 1));
    at.push_back(indices.var(phase().unit));
    const ExprId e = inliner_->at(value, at);
    for (RecurrentResult& known : phase().results) {
      if (known.value == e && known.dtype == body_.dtype(value)) return known;
    }
    RecurrentResult made;
    made.value = e;
    made.dtype = body_.dtype(value);
    made.place = indices.add(indices.scale(indices.var(d_.row), phase().units), indices.var(phase().unit));
    made.place_of_step = indices.add(indices.scale(indices.var(d_.step), d_.rows * phase().units), made.place);
    phase().results.push_back(std::move(made));
    return phase().results.back();
  }

  // Next states and slices, a phase for each length of their rows.
  void add_final_phases() {
    std::vector<int64_t> lengths;
    for (size_t port = 1; port < body_.outputs().size(); ++port) {
      const Shape& shape = body_.shape(body_.outputs()[port].value);
      if (rows_of(shape) != d_.rows) refuse("what it stacks has other rows than its states");
      if (std::find(lengths.begin(), lengths.end(), shape.back()) == lengths.end()) lengths.push_back(shape.back());
    }
    for (const int64_t length : lengths) {
      add_phase(length);
      for (size_t port = 1; port < body_.outputs().size(); ++port) {
        const ValueId value = body_.outputs()[port].value;
        if (body_.shape(value).back() != length) continue;
        const ValueId output = loop_.outputs[port - 1];
        const uint32_t operand = add_operand(Operand::Role::kOutput, outer_.dtype(output), outer_.shape(output),
                                             {.kind = Binding::Kind::kValue, .value = output});
        RecurrentResult& result = add_result(value);
        if (port > state_count()) {
          result.stacked.push_back(operand);
          continue;
        }
        result.finals.push_back(operand);
        const auto state = static_cast<uint32_t>(port - 1);
        result.states.push_back(state);
        for (uint32_t v = 0; v < d_.vectors.size(); ++v) {
          if (d_.vectors[v].state == state) result.vectors.push_back(v);
        }
      }
    }
  }

  // States that no expression reads live in vectors only.
  void settle_states() {
    for (RecurrentPhase& phase : d_.phases) {
      for (RecurrentResult& result : phase.results) {
        std::erase_if(result.states, [&](uint32_t s) { return !d_.states[s].local; });
      }
    }
  }

  // Whether a place in a value is (row, unit + *offset).
  bool in_place(ValueId value, const std::vector<Index>& at, int64_t* offset) {
    IndexPool& indices = d_.pool.indices;
    const Shape& shape = body_.shape(value);
    if (shape.empty() || element_count(shape) / shape.back() != d_.rows) return false;
    const Shape leading(shape.begin(), shape.end() - 1);
    if (indices.linear(std::span(at).first(leading.size()), leading) != indices.var(d_.row)) return false;
    *offset = at.back().constant;
    return indices.offset(at.back(), -*offset) == indices.var(phase().unit);
  }

  std::optional<ExprId> bind(ValueId value, const std::vector<Index>& at) {
    const Node& node = body_.producer(value);
    if (node.op == Op::kParameter) return bind_parameter(value, at);
    if (node.op == Op::kDot) return bind_sum(body_.value(value).producer, value, at);
    if (node.op == Op::kConstant && !splat_of(d_.pool, node.attrs.tensor("value"))) {
      return d_.pool.load(body_.dtype(value), constant_operand(value), d_.pool.indices.linear(at, body_.shape(value)));
    }
    return std::nullopt;
  }

  ExprId bind_parameter(ValueId value, const std::vector<Index>& at) {
    const size_t parameter = parameters_.at(value);
    const DType dtype = body_.dtype(value);
    if (parameter == 0) {
      return d_.pool.add({.kind = Expr::Kind::kIndex, .dtype = dtype, .index = d_.pool.indices.var(d_.step)});
    }
    if (parameter == 1) return d_.pool.integer(DType::kBool, 1);
    if (parameter >= 2 + state_count()) {
      return d_.pool.load(dtype, outer_input(parameter), d_.pool.indices.linear(at, body_.shape(value)));
    }
    RecurrentState& state = d_.states[parameter - 2];
    int64_t offset = 0;
    if (!in_place(value, at, &offset) || offset != 0 || state.units != phase().units) {
      refuse("its body reads a state at other places than it writes");
    }
    if (!state.local) state.local = locals_++;
    return d_.pool.local(dtype, *state.local);
  }

  ExprId bind_sum(ir::NodeId dot, ValueId value, const std::vector<Index>& at) {
    int64_t offset = 0;
    if (!in_place(value, at, &offset)) refuse("its body reads a product at other places than it makes");
    if (const auto known = sums_.find({dot, offset}); known != sums_.end()) return known->second;
    const Node& node = body_.node(dot);
    const uint32_t vector = vector_of_.at(node.inputs[0]), local = locals_++;
    auto& products = phase().products;
    auto product = std::find_if(products.begin(), products.end(), [&](const auto& p) { return p.vector == vector; });
    if (product == products.end()) {
      products.emplace_back();
      product = products.end() - 1;
      product->vector = vector;
    }
    product->sums.push_back(
        {*body_.constant_of(node.inputs[1]), node.attrs.ints("rhs_contract")[0] == 1, offset, local});
    result_.operations += 2.0 * static_cast<double>(d_.steps * d_.rows * phase().units * d_.vectors[vector].length);
    return sums_[{dot, offset}] = d_.pool.local(body_.dtype(value), local);
  }

  const Graph& outer_;
  const Node& loop_;
  const Graph& body_;
  Recurrence result_;
  RecurrentDesc& d_;
  std::map<ValueId, size_t> parameters_;
  std::map<ValueId, uint32_t> inputs_, constants_, vector_of_, made_;
  std::vector<bool> needed_;
  std::unique_ptr<Inliner> inliner_;
  std::map<std::pair<ir::NodeId, int64_t>, ExprId> sums_;  // of the current phase
  uint32_t locals_ = 0;
};

bool same_operands(const Recurrence& a, const Recurrence& b) {
  return std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    [](const Operand& x, const Operand& y) { return x.role == y.role && x.dtype == y.dtype; });
}

bool same_text(const RecurrentDesc& a, const RecurrentDesc& b) {
  const auto same_products = [](const RecurrentPhase& p, const RecurrentPhase& q) {
    return std::equal(p.products.begin(), p.products.end(), q.products.begin(), q.products.end(),
                      [](const RecurrentProduct& x, const RecurrentProduct& y) {
                        return x.vector == y.vector && x.operand == y.operand &&
                               std::equal(
                                   x.sums.begin(), x.sums.end(), y.sums.begin(), y.sums.end(),
                                   [](const RecurrentSum& s, const RecurrentSum& t) { return s.local == t.local; });
                      });
  };
  const auto same_phase = [&](const RecurrentPhase& p, const RecurrentPhase& q) {
    return p.units == q.units && p.unit == q.unit && p.results == q.results && same_products(p, q);
  };
  return a.steps == b.steps && a.rows == b.rows && a.states == b.states && a.vectors == b.vectors &&
         std::equal(a.phases.begin(), a.phases.end(), b.phases.begin(), b.phases.end(), same_phase) &&
         a.pool.same_as(b.pool);
}

// One kernel of the loops' operands, those of one loop after the other.
ScheduledKernel make_kernel(const std::vector<Recurrence>& loops) {
  ScheduledKernel kernel;
  for (const Recurrence& loop : loops) {
    kernel.desc.operands.insert(kernel.desc.operands.end(), loop.operands.begin(), loop.operands.end());
    kernel.bindings.insert(kernel.bindings.end(), loop.bindings.begin(), loop.bindings.end());
  }
  return kernel;
}

double operand_bytes(const ScheduledKernel& kernel) {
  double bytes = 0;
  for (const Operand& o : kernel.desc.operands) {
    bytes += static_cast<double>(element_count(o.shape)) * static_cast<double>(size_of(o.dtype));
  }
  return bytes;
}

}  // namespace

std::optional<ScheduledGroup> schedule_recurrence(const Graph& graph, const std::vector<ir::NodeId>& loops,
                                                  const Target& target, std::string* why) {
  std::vector<Recurrence> read;
  try {
    for (const ir::NodeId id : loops) read.push_back(RecurrenceReader(graph, graph.node(id)).run());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
    *why = error.why();
    return std::nullopt;
  }
  const RecurrentDesc& first = *read.front().desc;
  // Addresses of operands are arguments of the kernel, of which it has 4 KB.
  constexpr size_t kMostOperands = 400;
  size_t operands = 0;
  for (const Recurrence& other : read) {
    operands += other.operands.size();
    if (!same_operands(read.front(), other) || !same_text(first, *other.desc) || operands > kMostOperands) {
      *why = operands > kMostOperands ? "it has too many operands" : "the loops differ";
      return std::nullopt;
    }
  }
  const auto count = static_cast<int>(read.size());
  const auto mapping = map_recurrence(first, count, target.gpu(), why);
  if (!mapping) return std::nullopt;
  // What a step costs as launches: a product and what follows it are a kernel each, boundary included.
  const auto& model = target.gpu().model.recurrent;
  const bool wide = first.vectors.empty() || first.vectors[0].dtype == DType::kF32;
  const double tflops = wide ? model.f32_tflops : model.f16_tflops;
  const double launches = static_cast<double>(1 + read.front().products + read.front().casts / 2);
  const double steps = static_cast<double>(first.steps);
  const double unrolled =
      count * (std::max(steps * launches * model.launch_us, read.front().operations / tflops * 1e-6));
  const double persistent = steps * mapping->step_us + model.start_us;
  const std::string numbers =
      fmt::format("{:.1f} us predicted against {:.1f} us as launches of every step", persistent, unrolled);
  if (persistent > unrolled) {
    *why = "as one kernel " + numbers;
    return std::nullopt;
  }
  for (Recurrence& loop : read) {
    loop.desc->mapping = *mapping;
    for (RecurrentPhase& phase : loop.desc->phases) {
      for (RecurrentProduct& product : phase.products) {
        const Tensor packed = pack_shares(*loop.desc, phase, product);
        product.operand = static_cast<uint32_t>(loop.operands.size());
        loop.operands.push_back({Operand::Role::kInput, packed.dtype(), packed.shape(), {}});
        loop.bindings.push_back({.kind = Binding::Kind::kTensor, .tensor = packed});
      }
    }
    loop.desc->loop_operands = static_cast<uint32_t>(loop.operands.size());
  }
  ScheduledKernel kernel = make_kernel(read);
  kernel.floor_seconds = least_seconds(operand_bytes(kernel), target);
  read.front().desc->loops = count;
  kernel.desc.body = std::shared_ptr<const RecurrentDesc>(read.front().desc);
  const RecurrentMapping& m = *mapping;
  kernel.label = fmt::format("recurrence of {} steps, {} rows of {}", first.steps, first.rows, first.states[0].units);
  if (count > 1) kernel.label += fmt::format(", {} side by side", count);
  kernel.config.choice = NoChoice{"recurrent"};
  kernel.config.reason =
      fmt::format("{} rows a cluster of {}, {} lanes a unit, weights in {}, {:.2f} us a step; {}", m.rows, m.cluster,
                  m.lanes, m.registers ? "registers" : "shared memory", m.step_us, numbers);
  ScheduledGroup group;
  group.notes.push_back(kernel.label + ": " + kernel.config.reason);
  group.kernels.push_back(std::move(kernel));
  return group;
}

CudaLaunch plan_launch(const RecurrentDesc& desc, size_t operands) {
  const RecurrentMapping& m = desc.mapping;
  CudaLaunch launch;
  launch.grid[0] = static_cast<uint32_t>(desc.loops * desc.clusters() * m.cluster);
  launch.block = static_cast<uint32_t>(m.threads);
  launch.cluster = static_cast<uint32_t>(m.cluster);
  launch.shared_bytes = static_cast<uint32_t>(m.shared_bytes);
  launch.arguments.emplace_back(operands * sizeof(uint64_t));
  for (size_t i = 0; i < operands; ++i) {
    launch.pointers.push_back({0, static_cast<int>(i * sizeof(uint64_t)), static_cast<int>(i)});
  }
  return launch;
}

}  // namespace heddle::schedule
