// `heddle devices`: what this machine has, and its calibration for the cost models. `heddle doctor`: what it lacks, and
// a test of every kind of kernel.
#include <nlohmann/json.hpp>

#include "base/build_id.h"
#include "base/check.h"
#include "base/file/file.h"
#include "cli/support.h"
#include "driver/tune/calibrate.h"
#include "driver/verify/self_test.h"
#include "heddle/version.h"
#include "jit/compiler.h"
#include "jit/cuda/nvrtc.h"
#include "jit/hip/code_object.h"
#include "target/cuda_driver.h"
#include "target/hip_driver.h"

namespace heddle::cli {
namespace {

void print_devices_as_json(const CpuTarget& cpu, const std::string& compiler) {
  const nlohmann::json device = {{"name", "cpu"},
                                 {"isa", std::string(to_string(cpu.isa))},
                                 {"threads", cpu.threads},
                                 {"peak_gflops_per_core", cpu.peak_gflops()},
                                 {"avx512_bf16", cpu.avx512_bf16},
                                 {"avx512_vnni", cpu.avx512_vnni},
                                 {"amx", cpu.amx},
                                 {"l1_bytes", cpu.l1_bytes},
                                 {"l2_bytes", cpu.l2_bytes},
                                 {"l3_bytes", cpu.l3_bytes},
                                 {"compiler", compiler}};
  nlohmann::json devices = nlohmann::json::array({device});
  for (const CudaDevice& gpu : cuda_devices()) {
    devices.push_back({{"name", fmt::format("cuda:{}", gpu.ordinal)},
                       {"model", gpu.name},
                       {"sm", gpu.target.sm},
                       {"sms", gpu.target.sms},
                       {"memory_bytes", gpu.memory_bytes},
                       {"l2_bytes", gpu.target.l2_bytes},
                       {"driver", gpu.driver_version}});
  }
  for (const HipDevice& gpu : hip_devices()) {
    devices.push_back({{"name", fmt::format("hip:{}", gpu.ordinal)},
                       {"model", gpu.name},
                       {"architecture", gpu.target.gfx},
                       {"compute_units", gpu.target.sms},
                       {"memory_bytes", gpu.memory_bytes},
                       {"runtime", gpu.runtime_version}});
  }
  print_json(nlohmann::json{{"devices", devices}});
}

void print_devices(const CpuTarget& cpu, const std::string& compiler) {
  Table table({"device", "what"});
  table.add({"cpu", fmt::format("{}{}{}{}, {} threads of {:.0f} GFLOP/s (f32), caches {} / {} / {}", to_string(cpu.isa),
                                cpu.avx512_bf16 ? " bf16" : "", cpu.avx512_vnni ? " vnni" : "", cpu.amx ? " amx" : "",
                                cpu.threads, cpu.peak_gflops(), human_bytes(static_cast<double>(cpu.l1_bytes)),
                                human_bytes(static_cast<double>(cpu.l2_bytes)),
                                human_bytes(static_cast<double>(cpu.l3_bytes)))});
  table.add({"compiler", compiler});
  for (const CudaDevice& gpu : cuda_devices()) {
    table.add({fmt::format("cuda:{}", gpu.ordinal),
               fmt::format("{}, sm_{}, {} SMs, {}, L2 {}, driver for CUDA {}.{}", gpu.name, gpu.target.sm,
                           gpu.target.sms, human_bytes(static_cast<double>(gpu.memory_bytes)),
                           human_bytes(static_cast<double>(gpu.target.l2_bytes)), gpu.driver_version / 1000,
                           gpu.driver_version % 1000 / 10)});
  }
  for (const HipDevice& gpu : hip_devices()) {
    table.add({fmt::format("hip:{}", gpu.ordinal),
               fmt::format("{}, {}, {} compute units, {}, HIP {}", gpu.name, gpu.target.gfx, gpu.target.sms,
                           human_bytes(static_cast<double>(gpu.memory_bytes)), gpu.runtime_version)});
  }
  table.print();
}

struct Calibration {
  std::string device, name, numbers, path;
  nlohmann::ordered_json rates;
};

Calibration calibrate_cpu() {
  const CpuRates rates = driver::measure_cpu(0);
  return {"cpu",
          cpu_name(),
          fmt::format("{:.2f} GHz, {:.0f} bytes of FMA a cycle, {:.1f} GB/s copied by a thread, {:.2f} us a barrier",
                      rates.ghz, rates.fma_bytes_per_cycle, rates.copy_gbps, rates.barrier_us),
          write_calibration(cpu_name(), rates),
          {{"ghz", rates.ghz},
           {"fma_bytes_per_cycle", rates.fma_bytes_per_cycle},
           {"copy_gbps", rates.copy_gbps},
           {"barrier_us", rates.barrier_us}}};
}

Calibration calibrate_gpu(const CudaDevice& gpu) {
  const CudaRates rates = driver::measure_cuda(gpu.ordinal);
  return {
      fmt::format("cuda:{}", gpu.ordinal),
      gpu.name,
      fmt::format("{:.2f} GHz, memory {:.2f} TB/s copied, L2 {:.2f} TB/s, f16 products {:.0f} TFLOP/s, {:.2f} us from "
                  "kernel to kernel",
                  rates.clock_ghz, rates.memory_tbps, rates.l2_tbps, rates.tensor_tflops, rates.boundary_us),
      write_calibration(gpu.name, rates),
      {{"clock_ghz", rates.clock_ghz},
       {"memory_tbps", rates.memory_tbps},
       {"l2_tbps", rates.l2_tbps},
       {"tensor_tflops", rates.tensor_tflops},
       {"boundary_us", rates.boundary_us}}};
}

int calibrate(const Arguments& arguments) {
  const std::string& wanted = arguments.devices;
  std::vector<Calibration> done;
  if (wanted == "all" || wanted == "cpu") done.push_back(calibrate_cpu());
  for (const CudaDevice& gpu : cuda_devices()) {
    const std::string name = fmt::format("cuda:{}", gpu.ordinal);
    const bool named = wanted == name || (wanted == "cuda" && gpu.ordinal == 0);
    if (named || (wanted == "all" && !gpu.target.emulated)) done.push_back(calibrate_gpu(gpu));
  }
  if (done.empty()) {
    fail(ErrorCode::kDevice, wanted, "there is no such device", "`heddle devices` lists them; take cpu, cuda:N or all");
  }
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::json::array();
    for (const Calibration& c : done) {
      list.push_back({{"name", c.device}, {"model", c.name}, {"rates", c.rates}, {"file", c.path}});
    }
    print_json(nlohmann::ordered_json{{"calibrated", list}});
    return 0;
  }
  Table table({"device", "measured", "kept in"});
  for (const Calibration& c : done) table.add({fmt::format("{} ({})", c.device, c.name), c.numbers, c.path});
  table.print();
  return 0;
}

}  // namespace

int devices_command(const Arguments& arguments) {
  if (arguments.calibrate) return calibrate(arguments);
  const CpuTarget cpu = Target::host_cpu().cpu;
  std::string compiler;
  try {
    compiler = jit::find_compiler().path;
  } catch (const Error& error) {
    compiler = fmt::format("none ({})", error.why());
  }
  if (arguments.json) {
    print_devices_as_json(cpu, compiler);
  } else {
    print_devices(cpu, compiler);
  }
  return 0;
}

namespace {

// A library or program that a target needs: what was found, or why there is none.
struct Requirement {
  std::string target, name, found, why;
};

Requirement requirement(std::string target, std::string name, const std::function<std::string()>& find) {
  Requirement r{std::move(target), std::move(name), "", ""};
  try {
    r.found = find();
  } catch (const Error& error) {
    r.why = fmt::format("{}: {}. {}", error.where(), error.why(), error.remedy());
  }
  return r;
}

template <typename Devices>
std::string gpus(const Devices& devices, std::string_view kind) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(fmt::format("{}:{} {}", kind, device.ordinal, device.name));
  if (names.empty()) fail(ErrorCode::kDevice, std::string(kind), "the driver reports no GPU that Heddle compiles for");
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Requirement> requirements() {
  return {
      requirement("cpu", "compiler", [] { return jit::find_compiler().path; }),
      requirement("cuda", "GPU",
                  [] {
                    CudaDriver::get();
                    return gpus(cuda_devices(), "cuda");
                  }),
      requirement("cuda", "compiler",
                  [] {
                    const jit::NvrtcInfo nvrtc = jit::find_nvrtc();
                    return fmt::format("NVRTC {}.{}, {}", nvrtc.major, nvrtc.minor, nvrtc.path);
                  }),
      requirement("hip", "GPU",
                  [] {
                    hip_driver();
                    return gpus(hip_devices(), "hip");
                  }),
      requirement("hip", "compiler",
                  [] {
                    const jit::HipCompiler compiler = jit::find_hip_compiler();
                    return compiler.is_clang ? compiler.path : fmt::format("{}, {}", compiler.version, compiler.path);
                  }),
  };
}

std::vector<std::string> testable(const std::string& wanted) {
  std::vector<std::string> targets = {"cpu"};
  for (const CudaDevice& gpu : cuda_devices()) targets.push_back(fmt::format("cuda:{}", gpu.ordinal));
  for (const HipDevice& gpu : hip_devices()) targets.push_back(fmt::format("hip:{}", gpu.ordinal));
  if (wanted == "all") return targets;
  if (std::find(targets.begin(), targets.end(), wanted) == targets.end()) {
    fail(ErrorCode::kDevice, wanted, "this machine has no such device", "`heddle doctor` says what is missing");
  }
  return {wanted};
}

nlohmann::json json_of(const driver::SelfTestResult& result) {
  return {{"kind", result.kind},   {"ok", result.why.empty()}, {"why", result.why},
          {"error", result.error}, {"bound", result.bound},    {"seconds", result.seconds}};
}

}  // namespace

int doctor_command(const Arguments& arguments) {
  const std::vector<std::string> targets = testable(arguments.devices);
  nlohmann::json report = {{"heddle", version()}, {"build", build_id()}, {"cpu", cpu_name()}};
  Table needed({"target", "what", "found"});
  for (const Requirement& r : requirements()) {
    needed.add({r.target, r.name, r.why.empty() ? r.found : "missing: " + r.why});
    report["requirements"].push_back({{"target", r.target}, {"what", r.name}, {"found", r.found}, {"missing", r.why}});
  }
  if (!arguments.json) needed.print();
  Table table({"target", "kind of kernel", "error", "bound", "result"});
  int failed = 0;
  for (const std::string& target : targets) {
    CompileOptions options;
    options.target = target;
    for (const driver::SelfTestResult& result : driver::run_self_test(options)) {
      failed += result.why.empty() ? 0 : 1;
      table.add({target, result.kind, fmt::format("{:.3g}", result.error), fmt::format("{:.3g}", result.bound),
                 result.why.empty() ? "ok" : "FAILED: " + result.why});
      report["tests"][target].push_back(json_of(result));
    }
  }
  report["failed"] = failed;
  if (!arguments.output.empty()) write_file(arguments.output, report.dump(2) + "\n");
  if (arguments.json) {
    print_json(report);
    return failed == 0 ? 0 : 1;
  }
  table.print();
  print_line(failed == 0
                 ? "all kinds of kernels agree with the float64 reference"
                 : fmt::format("{} tests FAILED; please report them with the file of `heddle doctor -o FILE`", failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace heddle::cli
