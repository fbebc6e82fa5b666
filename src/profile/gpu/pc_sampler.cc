#include "profile/gpu/pc_sampler.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "profile/gpu/cupti_library.h"

namespace heddle::profile {
namespace {

// Reasons of CUPTI, such as smsp__pcsamp_warps_issue_stalled_long_scoreboard: waits for loads, for room in the queue of
// loads and stores, for stores at the end.
bool waits_for_memory(std::string_view reason) {
  for (const char* part : {"long_scoreboard", "lg_throttle", "drain"}) {
    if (reason.find(part) != std::string_view::npos) return true;
  }
  return false;
}

const cupti::Library& sampling_library() {
  const cupti::Library& library = cupti::library();
  if (library.sampling_enable == nullptr || library.sampling_configure == nullptr || library.sampling_read == nullptr ||
      library.sampling_start == nullptr || library.sampling_stop == nullptr || library.sampling_disable == nullptr ||
      library.count_stalls == nullptr || library.name_stalls == nullptr) {
    fail(ErrorCode::kDevice, "GPU profiling", library.path + " samples no program counters",
         "Name a libcupti.so of CUDA 12 or later in HEDDLE_CUPTI");
  }
  return library;
}

}  // namespace

struct PcSampler::Buffers {
  // Records that CUPTI fills, each with a count for each reason.
  struct Batch {
    Batch(size_t room, size_t reasons) : counters(room), counts(room * reasons) {
      for (size_t i = 0; i < room; ++i) counters[i].by_reason = counts.data() + i * reasons;
      data.room = room;
      data.by_counter = counters.data();
    }
    std::vector<cupti::PcSamples> counters;
    std::vector<cupti::StallSamples> counts;
    cupti::SampledData data;
  };

  explicit Buffers(void* cuda_context) : context(cuda_context) {}
  void call(cupti::Result (*function)(cupti::SamplingCall*), const char* name) {
    cupti::SamplingCall call;
    call.context = context;
    check(function(&call), name);
  }
  void check(cupti::Result result, const char* name) const {
    if (result != cupti::kSuccess) cupti::refuse(library, result, name);
  }
  // On the way out of an error, which is the one to tell.
  void disable() {
    cupti::SamplingCall call;
    call.context = context;
    library.sampling_disable(&call);
    enabled = false;
  }
  void name_reasons();
  void configure(uint32_t period);
  void add(const cupti::SampledData& data);

  const cupti::Library& library = sampling_library();
  void* context;
  bool enabled = false;
  std::vector<uint32_t> reasons;
  std::map<uint32_t, bool> of_memory;    // by reason
  std::unique_ptr<Batch> unasked, read;  // what CUPTI fills by itself; what stop() reads
  std::map<std::pair<std::string, uint64_t>, PcSample> found;
  uint64_t dropped = 0;
};

void PcSampler::Buffers::name_reasons() {
  constexpr size_t kNameBytes = 128;
  size_t count = 0;
  cupti::CountStallsCall how_many;
  how_many.context = context, how_many.count = &count;
  check(library.count_stalls(&how_many), "cuptiPCSamplingGetNumStallReasons");
  reasons.resize(count);
  std::vector<char> text(count * kNameBytes);
  std::vector<char*> names;
  for (size_t i = 0; i < count; ++i) names.push_back(text.data() + i * kNameBytes);
  cupti::NameStallsCall call;
  call.context = context, call.count = count, call.numbers = reasons.data(), call.names = names.data();
  check(library.name_stalls(&call), "cuptiPCSamplingGetStallReasons");
  for (size_t i = 0; i < count; ++i) of_memory[reasons[i]] = waits_for_memory(names[i]);
}

void PcSampler::Buffers::configure(uint32_t period) {
  constexpr uint32_t kContinuous = 1;
  constexpr size_t kRoom = 8192;
  unasked = std::make_unique<Batch>(kRoom, reasons.size());
  read = std::make_unique<Batch>(kRoom, reasons.size());
  std::vector<cupti::SamplingOption> options(5);
  options[0].kind = cupti::kStallReasons;
  options[0].reasons.count = reasons.size();
  options[0].reasons.numbers = reasons.data();
  options[1].kind = cupti::kSamplingPeriod, options[1].number = period;
  options[2].kind = cupti::kSamplingMode, options[2].number = kContinuous;
  options[3].kind = cupti::kStartStop, options[3].number = 1;
  options[4].kind = cupti::kSampledData, options[4].pointer = &unasked->data;
  cupti::ConfigureSamplingCall call;
  call.context = context, call.count = options.size(), call.options = options.data();
  const cupti::Result result = library.sampling_configure(&call);
  for (const cupti::SamplingOption& option : options) {
    if (option.status != cupti::kSuccess) check(option.status, "cuptiPCSamplingSetConfigurationAttribute");
  }
  check(result, "cuptiPCSamplingSetConfigurationAttribute");
}

// Names of functions stay CUPTI's: several records may share one.
void PcSampler::Buffers::add(const cupti::SampledData& data) {
  dropped += data.dropped;
  for (size_t i = 0; i < std::min(data.counters, data.room); ++i) {
    const cupti::PcSamples& counter = data.by_counter[i];
    if (counter.function == nullptr) continue;
    PcSample& sample = found[{counter.function, counter.offset}];
    sample.kernel = counter.function;
    sample.offset = counter.offset;
    for (size_t k = 0; k < std::min(counter.reasons, reasons.size()); ++k) {
      sample.samples += counter.by_reason[k].samples;
      if (of_memory[counter.by_reason[k].reason]) sample.memory += counter.by_reason[k].samples;
    }
  }
}

PcSampler::PcSampler(void* cuda_context, uint32_t period) : buffers_(std::make_unique<Buffers>(cuda_context)) {
  buffers_->call(buffers_->library.sampling_enable, "cuptiPCSamplingEnable");
  buffers_->enabled = true;
  try {
    buffers_->name_reasons();
    buffers_->configure(period);
  } catch (...) {
    buffers_->disable();
    throw;
  }
}

PcSampler::~PcSampler() {
  if (buffers_->enabled) buffers_->disable();
}

void PcSampler::start() {
  buffers_->call(buffers_->library.sampling_start, "cuptiPCSamplingStart");
}

std::vector<PcSample> PcSampler::stop() {
  Buffers& b = *buffers_;
  b.call(b.library.sampling_stop, "cuptiPCSamplingStop");
  do {
    b.read->data.counters = b.read->data.left = 0;
    cupti::ReadSamplesCall call;
    call.context = b.context, call.data = &b.read->data;
    b.check(b.library.sampling_read(&call), "cuptiPCSamplingGetData");
    b.add(b.read->data);
  } while (b.read->data.left > 0 && b.read->data.counters > 0);
  // What is left then goes where CUPTI was told to put what nobody asks for.
  b.enabled = false;
  b.call(b.library.sampling_disable, "cuptiPCSamplingDisable");
  b.add(b.unasked->data);
  std::vector<PcSample> samples;
  for (auto& [at, sample] : b.found) samples.push_back(std::move(sample));
  return samples;
}

uint64_t PcSampler::dropped() const {
  return buffers_->dropped;
}

}  // namespace heddle::profile
