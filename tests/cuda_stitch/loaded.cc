#include "loaded.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/cuda/launch.h"

namespace heddle::testing {

RunKernels run_on_gpu(runtime::GpuApi api, const std::string& machine_code) {
  struct Loaded {
    runtime::CudaContext context;
    std::unique_ptr<runtime::CudaModule> module;
    explicit Loaded(runtime::GpuApi api) : context(0, api) {}
  };
  const auto loaded = std::make_shared<Loaded>(api);
  loaded->module = std::make_unique<runtime::CudaModule>(loaded->context, machine_code);
  return [loaded](const schedule::ScheduledGroup& group, const std::vector<codegen::KernelSource>& sources,
                  const std::string&, Memory& memory) {
    std::map<Guarded*, std::unique_ptr<runtime::CudaBuffer>> buffers;
    const auto upload = [&](Guarded& host, bool filled) {
      auto buffer = std::make_unique<runtime::CudaBuffer>(loaded->context, std::max<int64_t>(host.size(), 1));
      if (filled && host.size() > 0) buffer->write(host.data(), static_cast<size_t>(host.size()));
      buffers[&host] = std::move(buffer);
    };
    for (auto& [id, host] : memory.values) upload(*host, true);
    for (auto& host : memory.workspaces) upload(*host, false);
    for (size_t k = 0; k < group.kernels.size(); ++k) {
      std::vector<uint64_t> operands;
      for (const auto& b : group.kernels[k].bindings) {
        const bool is_value = b.kind == schedule::Binding::Kind::kValue;
        Guarded* host = is_value ? memory.values.at(b.value).get() : memory.workspaces[b.workspace].get();
        operands.push_back(buffers.at(host)->address());
      }
      // What the driver supplies behind a kernel's operands; counters are left at zero.
      runtime::CudaBuffer workspace(loaded->context, std::max<size_t>(sources[k].workspace_bytes, 1));
      runtime::CudaBuffer counters(loaded->context, std::max<size_t>(sources[k].counter_bytes, 4));
      std::vector<uint8_t> zeros(counters.size());
      counters.write(zeros.data(), zeros.size());
      if (sources[k].workspace_bytes > 0 || sources[k].counter_bytes > 0) {
        operands.insert(operands.end(), {workspace.address(), counters.address()});
      }
      runtime::CudaSequence(loaded->context, *loaded->module, sources[k].launches, operands).enqueue();
      loaded->context.synchronize();
      counters.read(zeros.data(), zeros.size());
      HEDDLE_CHECK(std::count(zeros.begin(), zeros.end(), 0) == static_cast<ptrdiff_t>(zeros.size()));
    }
    for (auto& [id, host] : memory.values) {
      if (host->size() > 0) buffers.at(host.get())->read(host->data(), static_cast<size_t>(host->size()));
    }
  };
}

}  // namespace heddle::testing
