#include "target/calibration.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file/file.h"
#include "base/log.h"
#include "heddle/error.h"
#include "heddle/version.h"

namespace heddle {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string folder_of_user() {
  if (std::string folder = environment("HEDDLE_DEVICES"); !folder.empty()) return folder;
  if (const std::string base = environment("XDG_CONFIG_HOME"); base.starts_with('/')) return base + "/heddle/devices";
  if (const std::string home = environment("HOME"); home.starts_with('/')) return home + "/.config/heddle/devices";
  return "";
}

template <typename Rates, size_t N>
using Fields = std::array<std::pair<const char*, double Rates::*>, N>;

constexpr Fields<CpuRates, 4> kCpuFields = {{{"ghz", &CpuRates::ghz},
                                             {"fma_bytes_per_cycle", &CpuRates::fma_bytes_per_cycle},
                                             {"copy_gbps", &CpuRates::copy_gbps},
                                             {"barrier_us", &CpuRates::barrier_us}}};
constexpr Fields<CudaRates, 5> kCudaFields = {{{"clock_ghz", &CudaRates::clock_ghz},
                                               {"memory_tbps", &CudaRates::memory_tbps},
                                               {"l2_tbps", &CudaRates::l2_tbps},
                                               {"tensor_tflops", &CudaRates::tensor_tflops},
                                               {"boundary_us", &CudaRates::boundary_us}}};

template <typename Rates, size_t N>
std::optional<Rates> read_rates(std::string_view device, const Fields<Rates, N>& fields) {
  const std::string path = calibration_path(device);
  if (path.empty() || !file_exists(path)) return std::nullopt;
  std::string why;
  try {
    const auto json = nlohmann::json::parse(MappedFile::read(path)->text());
    Rates rates;
    for (const auto& [name, member] : fields) {
      const double value = json.at("rates").at(name).template get<double>();
      // Wide enough for any machine there is.
      if (!std::isfinite(value) || value < 1e-4 || value > 1e6) {
        why = fmt::format("{} is {}", name, value);
        break;
      }
      rates.*member = value;
    }
    if (why.empty()) return rates;
  } catch (const nlohmann::json::exception& error) {
    why = error.what();
  } catch (const Error& error) {
    why = error.why();
  }
  warn_once(
      fmt::format("the calibration of {} in {} is not used: {}. Make it anew (heddle devices --calibrate) or "
                  "remove it",
                  device, path, why));
  return std::nullopt;
}

template <typename Rates, size_t N>
std::string write_rates(std::string_view device, const Rates& rates, const Fields<Rates, N>& fields) {
  const std::string path = calibration_path(device);
  if (path.empty()) {
    throw Error(ErrorCode::kFile, std::string(device), "there is no folder for its calibration",
                "Set HEDDLE_DEVICES to a folder");
  }
  nlohmann::ordered_json json = {{"device", device}, {"heddle", version()}};
  for (const auto& [name, member] : fields) json["rates"][name] = rates.*member;
  make_directories(path.substr(0, path.rfind('/')));
  write_file(path, json.dump(2) + "\n");
  return path;
}

}  // namespace

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

std::string calibration_path(std::string_view device) {
  const std::string folder = folder_of_user();
  if (folder.empty()) return "";
  std::string name(device);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  }
  return fmt::format("{}/{}.json", folder, name);
}

std::optional<CpuRates> cpu_calibration(std::string_view device) {
  return read_rates(device, kCpuFields);
}
std::optional<CudaRates> cuda_calibration(std::string_view device) {
  return read_rates(device, kCudaFields);
}
std::string write_calibration(std::string_view device, const CpuRates& rates) {
  return write_rates(device, rates, kCpuFields);
}
std::string write_calibration(std::string_view device, const CudaRates& rates) {
  return write_rates(device, rates, kCudaFields);
}

}  // namespace heddle
