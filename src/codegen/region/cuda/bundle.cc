#include "codegen/region/cuda/bundle.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "codegen/region/cuda/stitch.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/writer.h"
#include "schedule/region/cuda/launch/bundle.h"

namespace heddle::codegen {

using schedule::CudaBundleDesc;

namespace {

// Parts of one text.
struct Kind {
  CudaPart part;
  std::vector<const CudaBundleDesc::Part*> members;
};

// Those of fewest blocks come first. The last step, if any, is the last kind.
std::vector<Kind> kinds_of(const CudaBundleDesc& bundle, bool marked) {
  std::vector<Kind> kinds;
  std::map<std::pair<std::string, int64_t>, size_t> known;
  const auto text_of = [&](const CudaBundleDesc::Part& part) {
    return emit_cuda_part({part.operands, part.body}, *part.body, bundle.threads, marked);
  };
  for (const CudaBundleDesc::Part& part : bundle.parts) {
    CudaPart text = text_of(part);
    const auto [at, is_new] = known.try_emplace({text.parameters + text.body, part.body->blocks}, kinds.size());
    if (is_new) kinds.push_back({std::move(text), {}});
    kinds[at->second].members.push_back(&part);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
    return a.members[0]->body->blocks < b.members[0]->body->blocks;
  });
  if (bundle.last) kinds.push_back({text_of(bundle.last->part), {&bundle.last->part}});
  return kinds;
}

class BundleWriter {
 public:
  BundleWriter(const CudaBundleDesc& bundle, const std::vector<Kind>& kinds, const CudaLaunch& launch, size_t pointers,
               bool marked, std::string symbol)
      : bundle_(bundle),
        kinds_(kinds),
        launch_(launch),
        pointers_(pointers),
        marked_(marked),
        symbol_(std::move(symbol)) {}

  // Parts of one text are one function, whose pointers come from a table: the first part's, then the second's, and so
  // on.
  std::string run() {
    out_.line("namespace {}_parts {{", symbol_);
    out_.line("struct Pointers {{ void* at[{}]; }};", pointers_);
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const CudaPart& part = kinds_[k].part;
      out_.line("__device__ __forceinline__ void part{}({}) {{\n{}}}\n", k, part.parameters, part.body);
    }
    out_.raw("}");
    out_.open(
        fmt::format("extern \"C\" __global__ void __launch_bounds__({0}{2}) {1}(const __grid_constant__ "
                    "{1}_parts::Pointers pointers) {{",
                    launch_.block, symbol_, least_blocks()));
    if (launch_.shared_bytes > 0) {
      out_.raw("extern __shared__ __align__(16) uint8_t raw_shared[];");
    } else {
      out_.line("uint8_t* const raw_shared = nullptr;");
    }
    if (launch_.early) out_.raw(kBeginEarly);
    out_.line("unsigned block = blockIdx.x;");
    size_t first = 0;
    const size_t beside = kinds_.size() - (bundle_.last ? 1 : 0);
    for (size_t k = 0; k < beside; ++k) {
      const Kind& kind = kinds_[k];
      const int64_t each = kind.members[0]->body->blocks, all = each * static_cast<int64_t>(kind.members.size());
      const size_t operands = kind.members[0]->operands.size();
      if (k + 1 < beside) out_.open(fmt::format("if (block < {}) {{", all));
      const bool one = kind.members.size() == 1;
      out_.line("void* const* at = pointers.at + {}{};", first,
                one ? "" : fmt::format(" + block / {} * {}", each, operands));
      call(k, one ? "block" : fmt::format("block % {}", each), each, launch_.early);
      if (k + 1 < beside) {
        out_.line("return;");
        out_.close();
        out_.line("block -= {};", all);
      }
      first += operands * kind.members.size();
    }
    if (bundle_.last) last_step(first);
    out_.close();
    return out_.text();
  }

 private:
  std::string least_blocks() const {
    const int least = bundle_.parts.size() == 1 ? bundle_.parts[0].body->min_blocks_per_sm : 0;
    return least > 0 ? fmt::format(", {}", least) : "";
  }

  // `launders`: the compiler must not use loads that other blocks or launches might have made stale.
  void call(size_t k, const std::string& block, int64_t blocks, bool launders) {
    const Kind& kind = kinds_[k];
    std::string arguments;
    for (size_t i = 0; i < kind.members[0]->operands.size(); ++i) {
      const std::string pointer = fmt::format("static_cast<{}>(at[{}])", kind.part.types[i], i);
      arguments += launders ? fmt::format("tile::sm90::launder_after_wait({}), ", pointer) : pointer + ", ";
    }
    if (marked_) arguments += fmt::format("static_cast<const int64_t*>(pointers.at[{}]), ", pointers_ - 1);
    out_.line("{}_parts::part{}({}raw_shared, {}, {});", symbol_, k, arguments, block, blocks);
  }

  void last_step(size_t first) {
    const CudaBundleDesc::LastStep& last = *bundle_.last;
    std::string number;
    for (const auto& digit : last.digits) {
      std::string text = digit.below > 1 ? fmt::format("block / {}", digit.below) : "block";
      text = product(fmt::format("{} % {}", text, digit.count), digit.weight);
      number = number.empty() ? text : number + " + " + text;
    }
    out_.line("const unsigned last = {};", number.empty() ? "0" : number);
    out_.line("if (!tile::arrives_last(static_cast<uint32_t*>(pointers.at[{}]) + last, {})) return;", pointers_ - 1,
              last.arrivals);
    out_.line("at = pointers.at + {};", first);
    call(kinds_.size() - 1, "last", last.part.body->blocks, true);
  }

  const CudaBundleDesc& bundle_;
  const std::vector<Kind>& kinds_;
  const CudaLaunch& launch_;
  const size_t pointers_;
  const bool marked_;
  const std::string symbol_;
  Writer out_;
};

}  // namespace

KernelSource emit_cuda_bundle(const schedule::KernelPlan& plan, const CudaBundleDesc& bundle, bool marked) {
  const std::vector<Kind> kinds = kinds_of(bundle, marked);
  const size_t operands = plan.desc.operands.size();
  HEDDLE_CHECK(!marked || !bundle.last, "counters take the place of the arguments");
  const size_t pointers = operands + (marked || bundle.last ? 1 : 0);  // the last one is that of arguments or counters
  KernelSource source;
  source.launches = plan.launches;
  CudaLaunch& launch = source.launches.front();
  launch.arguments.front().resize(pointers * sizeof(uint64_t));
  const auto point_to = [&](size_t operand) {
    const int at = static_cast<int>(launch.pointers.size() * sizeof(uint64_t));
    launch.pointers.push_back({0, at, static_cast<int>(operand)});
  };
  std::set<std::string> includes;
  for (const Kind& kind : kinds) {
    includes.insert(kind.part.includes.begin(), kind.part.includes.end());
    for (const CudaBundleDesc::Part* member : kind.members) {
      for (size_t i = 0; i < member->operands.size(); ++i) point_to(member->first + i);
    }
  }
  if (marked) point_to(operands);
  if (bundle.last) point_to(operands + 1);  // counters lie behind the workspace
  source.includes.assign(includes.begin(), includes.end());
  source.counter_bytes = plan.counter_bytes;
  if (bundle.last) source.includes.emplace_back("tile/op/cuda/arrival.h");
  if (plan.waits || bundle.last) source.includes.emplace_back(kWaitHeader);
  const auto text = [&](const KernelHead& head) {
    return BundleWriter(bundle, kinds, launch, pointers, marked, head.symbol).run();
  };
  if (marked) {
    source.symbol = "bundle";
    source.text = text({kStandIn});
  } else {
    name_kernel(source, "bundle", text, false);
  }
  source.tasks = launch.grid[0];
  launch.symbol = source.symbol;
  return source;
}

}  // namespace heddle::codegen
