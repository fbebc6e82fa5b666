#include "lang/cpu/launch/kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/thread/cancel.h"
#include "base/check.h"
#include "base/thread/run_in_order.h"
#include "codegen/codegen.h"
#include "jit/compiler.h"
#include "lang/analysis/waits.h"
#include "lang/cpu/types.h"
#include "lang/cpu/launch/waiting.h"
#include "lang/interpret/number.h"
#include "lang/interpret/report.h"
#include "tile/core/cpu_program.h"

namespace heddle::lang::cpu {
namespace {

// Values of a buffer of generated text.
Cells cells_of(const Type& type, const void* values) {
  const auto count = static_cast<size_t>(type.elements());
  Cells cells(count);
  const auto bytes = static_cast<size_t>(buffer_size(type));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(values) + i * bytes, bytes);
    if (type.pointer) {
      cells[i].i = static_cast<int64_t>(bits);
    } else if (is_mask(type)) {
      cells[i].i = bits != 0;
    } else if (is_rounded(type)) {
      cells[i].f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    } else {
      cells[i] = decode(type.element, bits);
    }
  }
  return cells;
}

// Nothing will end the wait of a program.
[[noreturn]] void fail_wait(const Kernel& kernel, const Op& op, const Waiting::Program& first, int64_t programs) {
  fail(ErrorCode::kValueOutOfRange, program_place(kernel, op, first.program),
       fmt::format("it waits for memory that no running program writes: all {} of them wait", programs),
       "Programs begin in the order of their numbers as threads become free: wait for earlier ones only");
}

}  // namespace

// What a launch hears from its programs, on any thread.
class CpuKernel::Launch {
 public:
  Launch(const CpuKernel& kernel, const Print& print, int threads)
      : kernel_(kernel), print_(print), waiting_(threads, patience()) {
    for (int i = 0; i < threads; ++i) workers_.push_back({this, i});
  }

  // What programs on a thread ask for.
  tile::program_services services(int worker) {
    return {&workers_[static_cast<size_t>(worker)], &Launch::print, &Launch::fail, &Launch::wait, &Launch::resume};
  }
  Waiting& waiting() { return waiting_; }

  void finish() const {
    if (failed_ != nullptr) fail_assertion(kernel_.kernel(), *failed_, program_, element_);
    if (waiting_.stuck())
      fail_wait(kernel_.kernel(), op_of(waiting_.stuck()->site), *waiting_.stuck(), waiting_.stuck_programs());
  }

 private:
  struct Worker {
    Launch* launch;
    int number;
  };
  static Launch& launch_of(void* self) { return *static_cast<Worker*>(self)->launch; }
  static std::array<int64_t, 3> program_of(const int64_t* program) { return {program[0], program[1], program[2]}; }

  static void print(void* self, int64_t site, int64_t operand, const int64_t* program, const void* values) {
    Launch& launch = launch_of(self);
    const std::lock_guard lock(launch.mutex_);
    if (!launch.print_) return;
    const Op& op = launch.op_of(site);
    const auto at = static_cast<size_t>(operand);
    const Kernel& kernel = launch.kernel_.kernel();
    print_values(kernel, op, at, program_of(program),
                 values == nullptr ? Cells() : cells_of(kernel.type(op.operands[at]), values), launch.print_);
  }

  static void fail(void* self, int64_t site, const int64_t* program, int64_t element) {
    Launch& launch = launch_of(self);
    const std::lock_guard lock(launch.mutex_);
    const auto where = program_of(program);
    const auto order = [](const std::array<int64_t, 3>& p) { return std::array{p[2], p[1], p[0]}; };
    if (launch.failed_ != nullptr && order(launch.program_) <= order(where)) return;  // the first one is named
    launch.failed_ = &launch.op_of(site);
    launch.program_ = where;
    launch.element_ = element;
  }

  static int wait(void* self, int64_t site, const int64_t* program) {
    const auto& worker = *static_cast<Worker*>(self);
    return worker.launch->waiting_.wait(worker.number, site, program) ? 1 : 0;
  }
  static void resume(void* self) {
    const auto& worker = *static_cast<Worker*>(self);
    worker.launch->waiting_.resume(worker.number);
  }

  const Op& op_of(int64_t site) const {
    for (const auto& [number, op] : kernel_.reports_) {
      if (number == site) return *op;
    }
    HEDDLE_CHECK(false, "no op has the number {}", site);
    return *kernel_.reports_[0].second;
  }

  const CpuKernel& kernel_;
  const Print& print_;
  Waiting waiting_;
  std::vector<Worker> workers_;
  std::mutex mutex_;
  const Op* failed_ = nullptr;
  std::array<int64_t, 3> program_{};
  int64_t element_ = 0;
};

CpuKernel::CpuKernel(Kernel kernel, ProgramText program) : kernel_(std::move(kernel)), program_(std::move(program)) {
  int64_t site = 0;
  for_each_op(kernel_.body, [&](const Op& op) {
    const bool reports = op.code == OpCode::kPrint || op.code == OpCode::kAssert || waits(op);
    if (reports) reports_.emplace_back(site, &op);
    ++site;
  });
}

std::shared_ptr<const CpuKernel> CpuKernel::compile(Kernel kernel, const Target& target, bool use_cache) {
  std::vector<Kernel> kernels;
  kernels.push_back(std::move(kernel));
  return compile_all(std::move(kernels), target, use_cache)[0];
}

std::vector<std::shared_ptr<const CpuKernel>> CpuKernel::compile_all(std::vector<Kernel> kernels, const Target& target,
                                                                     bool use_cache) {
  std::vector<std::shared_ptr<CpuKernel>> made;
  std::vector<std::string> units, symbols;
  for (Kernel& kernel : kernels) {
    ProgramText program = lower(kernel);
    if (std::find(symbols.begin(), symbols.end(), program.symbol) == symbols.end()) {  // equal texts are one function
      units.push_back(program.text);
      symbols.push_back(program.symbol);
    }
    made.push_back(std::shared_ptr<CpuKernel>(new CpuKernel(std::move(kernel), std::move(program))));
  }
  const jit::CompiledLibrary compiled = jit::compile(units, target.cpu, target.cpu.threads, use_cache, symbols);
  const std::shared_ptr<const jit::Library> library = jit::Library::load(compiled.bytes);
  for (const auto& kernel : made) {
    kernel->library_ = library;
    kernel->function_ = library->find(kernel->program_.symbol);
  }
  return {made.begin(), made.end()};
}

void CpuKernel::launch(std::array<int64_t, 3> grid, std::span<const Argument> arguments, ThreadPool& pool,
                       const Print& print) const {
  launch(grid, argument_words(kernel_, arguments), pool, print);
}

void CpuKernel::launch(std::array<int64_t, 3> grid, std::span<const uint64_t> words, ThreadPool& pool,
                       const Print& print) const {
  std::vector<uint64_t> slots;
  slots.reserve(grid.size() + words.size());
  for (const int64_t extent : grid) slots.push_back(static_cast<uint64_t>(extent));
  slots.insert(slots.end(), words.begin(), words.end());
  Launch state(*this, print, pool.threads());
  const int64_t bytes = program_.scratch_bytes, programs = grid[0] * grid[1] * grid[2];
  const std::shared_ptr<std::byte> scratch =
      bytes == 0 ? nullptr : allocate(static_cast<size_t>(bytes * pool.threads()), "buffers of tiles");
  const auto run = [&](int64_t begin, int64_t end, int worker) {
    tile::program_services services = state.services(worker);
    void* const operands[] = {slots.data(), &services};
    function_(operands, bytes == 0 ? nullptr : scratch.get() + worker * bytes, begin, end);
  };
  const bool in_order =
      std::any_of(reports_.begin(), reports_.end(), [](const auto& report) { return waits(*report.second); });
  if (in_order) {
    run_in_order(pool, programs, [&](int64_t program, int worker) {
      if (state.waiting().is_stuck()) return;
      state.waiting().begin(worker);
      run(program, program + 1, worker);
      state.waiting().end(worker);
    });
  } else {
    // A program may take any time.
    constexpr int64_t kRanges = 16;
    const int64_t longest = std::max<int64_t>(1, programs / kRanges);
    pool.run(programs, [&](int64_t begin, int64_t end, int worker) {
      each_part(begin, end, longest, [&](int64_t from, int64_t to) { run(from, to, worker); });
    });
  }
  state.finish();
}

}  // namespace heddle::lang::cpu
