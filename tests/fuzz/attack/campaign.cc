#include "tests/fuzz/attack/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <typeinfo>

#include "base/clock.h"
#include "base/file/file.h"
#include "heddle/error.h"
#include "tests/fuzz/attack/isolation.h"

// Null without the sanitizer.
extern "C" void __asan_init() __attribute__((weak));

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

// A process that waits, on a busy machine, is no hang for so many times the limit of its processor time.
constexpr int kPatience = 15;

int64_t peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

int64_t printed_bytes() {
  struct stat status {};
  return fstat(STDOUT_FILENO, &status) == 0 ? status.st_size : 0;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void clear_folder(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::create_directories(folder);
}

// In the child.
std::string settle(Attack& attack, uint64_t seed, const std::string& folder, uint64_t memory_mb) {
  const int64_t peak = peak_mb();
  std::string outcome;
  try {
    outcome = attack.run(seed, folder);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) return fmt::format("fail internal error: {}", error.what());
    outcome = fmt::format("HDL{}", static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    return fmt::format("fail foreign exception: {}: {}", typeid(error).name(), error.what());
  } catch (...) {
    return "fail foreign exception";
  }
  const int64_t grown = peak_mb() - peak;
  if (grown > static_cast<int64_t>(memory_mb)) return fmt::format("fail memory: {} MB", grown);
  return outcome;
}

// What a dead child's log says of its end.
std::string cause_in(const std::string& log) {
  for (const char* mark : {"runtime error: ", "SUMMARY: ", "what():  ", "terminate called"}) {
    const size_t at = log.find(mark);
    if (at == std::string::npos) continue;
    const size_t begin = log.rfind('\n', at) + 1;
    return log.substr(begin, log.find('\n', at) - begin);
  }
  return "";
}

// Without what differs between cases of one defect: numbers, quoted names, processes.
std::string kind_of(const std::string& what) {
  static const std::regex varying("==[0-9]+==|0x[0-9a-f]+|\"[^\"]*\"|[0-9]+");
  return std::regex_replace(what.substr(0, what.find('\t')), varying, "#").substr(0, 160);
}

// Whether an outcome of run_case() is a failure of this kind.
bool is_failure(const std::string& outcome, const std::string& kind) {
  return outcome.starts_with("fail ") && kind_of(outcome.substr(5)) == kind;
}

void limit_resources() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (&__asan_init != nullptr) return;  // reserves terabytes of addresses, and has limits of its own
  const rlimit address_space{rlim_t{24} << 30, rlim_t{24} << 30};
  setrlimit(RLIMIT_AS, &address_space);
}

// One child process and the batch it works on.
class Worker {
 public:
  Worker(Attack& attack, const CampaignOptions& options, std::string folder)
      : attack_(attack), options_(options), folder_(std::move(folder)) {}

  bool busy() const { return child_ != nullptr; }
  int descriptor() const { return child_->descriptor(); }
  const std::string& case_folder() const { return case_; }
  std::pair<uint64_t, uint64_t> batch() const { return {begin_, end_}; }

  void start(uint64_t begin, uint64_t end) {
    begin_ = current_ = begin;
    end_ = end;
    outcomes_.clear();
    failure_.clear();
    case_ = folder_ + "/case";
    fs::create_directories(folder_);
    child_ = std::make_unique<Child>([&](const SendLine& send) { work(send); }, folder_ + "/log");
    mark();
  }

  // False: the child has ended.
  bool receive() {
    return child_->receive([&](const std::string& line) {
      if (line.starts_with("begin ")) {
        current_ = std::stoull(line.substr(6));
        mark();
      } else if (line.starts_with("end fail ")) {
        failure_ = line.substr(9);
      } else {
        ++outcomes_[line.substr(4)];
        ++current_;
      }
    });
  }

  // Why it must not go on; "" while it may.
  std::string overdue() const {
    if (child_->cpu_seconds() - cpu_ > options_.timeout) return fmt::format("hang: {} s", options_.timeout);
    if (wall_seconds() - start_ > kPatience * options_.timeout) {
      return fmt::format("hang: waits for {} s", kPatience * options_.timeout);
    }
    return "";
  }

  // After receive() returned false or with the reason for its end. Returns what went wrong with the case current(), and
  // "" where all cases are settled.
  std::string finish(const std::string& killed = "") {
    if (!killed.empty()) child_->kill();
    std::string death = child_->wait();
    child_.reset();
    if (!killed.empty()) return killed;
    if (!failure_.empty()) return failure_;
    if (death.empty()) return current_ == end_ ? "" : "crash: exit code 0";
    const std::string cause = cause_in(read_bytes(folder_ + "/log"));
    return cause.empty() ? death : fmt::format("{}: {}", death.substr(0, death.find(" (")), cause);
  }

  uint64_t current() const { return current_; }
  const std::map<std::string, uint64_t>& outcomes() const { return outcomes_; }
  std::string log() const { return read_bytes(folder_ + "/log"); }

 private:
  void mark() {
    start_ = wall_seconds();
    cpu_ = child_->cpu_seconds();
  }

  void work(const SendLine& send) {
    limit_resources();
    for (uint64_t seed = begin_; seed < end_; ++seed) {
      send(fmt::format("begin {}", seed));
      const int64_t printed = printed_bytes();
      std::string outcome;
      try {
        clear_folder(case_);
        attack_.make(seed, case_);
        outcome = settle(attack_, seed, case_, options_.memory_mb);
      } catch (const std::exception& error) {
        outcome = fmt::format("fail the attack itself: {}", error.what());
      }
      std::fflush(stdout);
      if (printed_bytes() != printed && !outcome.starts_with("fail")) outcome = "fail output on stdout";
      send("end " + outcome);
      if (outcome.starts_with("fail")) return;  // the folder stays as it is
    }
  }

  Attack& attack_;
  const CampaignOptions& options_;
  std::string folder_, case_;
  std::unique_ptr<Child> child_;
  uint64_t begin_ = 0, end_ = 0, current_ = 0;
  std::map<std::string, uint64_t> outcomes_;
  std::string failure_;
  double start_ = 0, cpu_ = 0;
};

double children_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Removes parts of the case's main file as long as it fails in the same way.
class CaseReducer {
 public:
  CaseReducer(Attack& attack, const CampaignOptions& options, uint64_t seed, std::string kind)
      : attack_(attack), options_(options), seed_(seed), kind_(std::move(kind)) {}

  void reduce(const std::string& folder) {
    const std::string file = attack_.main_file();
    if (file.empty() || kind_.starts_with("hang")) return;
    const TempDir scratch("heddle-fuzz-reduce");
    const std::string trial = scratch.path() + "/case";
    std::string best = read_bytes(folder + "/" + file);
    const double start = wall_seconds();
    for (size_t chunk = attack_.parts(best) / 2; chunk >= 1; chunk /= 2) {
      for (size_t at = 0; at < attack_.parts(best);) {
        if (wall_seconds() - start > kSeconds) break;
        const std::string smaller = attack_.without(best, at, at + chunk);
        clear_folder(trial);
        fs::copy(folder, trial, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
        write_bytes(trial + "/" + file, smaller);
        if (smaller.size() < best.size() && is_failure(run_case(attack_, seed_, trial, options_), kind_)) {
          best = smaller;
        } else {
          at += chunk;
        }
      }
    }
    write_bytes(folder + "/" + file, best);
  }

 private:
  static constexpr double kSeconds = 60;
  Attack& attack_;
  const CampaignOptions& options_;
  uint64_t seed_;
  std::string kind_;
};

class Campaign {
 public:
  Campaign(Attack& attack, const CampaignOptions& options)
      : attack_(attack), options_(options), scratch_("heddle-fuzz"), progress_(read_progress(options.state)) {
    if (progress_.first_day.empty()) {
      progress_.next = options.seed;
      progress_.first_day = today();
    }
    for (const Failure& failure : progress_.failures) kinds_.insert(failure.kind);
    todo_.assign(progress_.unfinished.begin(), progress_.unfinished.end());
    for (int i = 0; i < options.jobs; ++i)
      workers_.emplace_back(attack, options, fmt::format("{}/{}", scratch_.path(), i));
  }

  Progress run() {
    start_ = wall_seconds();
    for (;;) {
      for (Worker& worker : workers_) assign(worker);
      if (std::none_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.busy(); })) break;
      wait();
      for (Worker& worker : workers_) {
        if (!worker.busy()) continue;
        if (const std::string late = worker.overdue(); !late.empty()) settle_batch(worker, worker.finish(late));
      }
    }
    save();
    return progress_;
  }

 private:
  uint64_t end() const { return options_.seed + options_.count; }

  void assign(Worker& worker) {
    if (worker.busy() || wall_seconds() - start_ > options_.seconds || failed_ >= options_.max_failures) return;
    if (todo_.empty()) {
      if (progress_.next >= end()) return;
      const uint64_t last = std::min(end(), progress_.next + options_.batch);
      todo_.emplace_back(progress_.next, last);
      progress_.next = last;
    }
    const auto [begin, last] = todo_.front();
    todo_.pop_front();
    worker.start(begin, last);
  }

  void wait() {
    std::vector<pollfd> entries;
    std::vector<Worker*> waiting;
    for (Worker& worker : workers_) {
      if (!worker.busy()) continue;
      entries.push_back({worker.descriptor(), POLLIN, 0});
      waiting.push_back(&worker);
    }
    poll(entries.data(), entries.size(), 200);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].revents != 0 && !waiting[i]->receive()) settle_batch(*waiting[i], waiting[i]->finish());
    }
  }

  void settle_batch(Worker& worker, const std::string& wrong) {
    const auto [begin, last] = worker.batch();
    for (const auto& [outcome, count] : worker.outcomes()) progress_.outcomes[outcome] += count;
    progress_.builds[options_.build] += worker.current() - begin + (wrong.empty() ? 0 : 1);
    if (!wrong.empty()) {
      if (worker.current() + 1 < last) todo_.emplace_front(worker.current() + 1, last);
      fail(worker, wrong);
    }
    save();
  }

  void fail(const Worker& worker, const std::string& what) {
    ++failed_;
    const uint64_t seed = worker.current();
    const Failure failure{seed, kind_of(what), what};
    progress_.failures.push_back(failure);
    fmt::print("FAILED {} seed {}: {}\n", options_.attack, seed, what);
    // A hang does not say where it is, so each may be another one.
    if (!options_.save.empty() && (kinds_.insert(failure.kind).second || what.starts_with("hang"))) {
      const std::string kept = fmt::format("{}/{}-{}", options_.save, options_.attack, seed);
      clear_folder(kept);
      std::error_code ignored;
      fs::copy(worker.case_folder(), kept, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ignored);
      const std::string log = worker.log();
      write_bytes(kept + ".log", what + "\n" + log.substr(0, 1 << 20));
      const std::string again = run_case(attack_, seed, kept, options_);
      if (is_failure(again, failure.kind)) {
        CaseReducer(attack_, options_, seed, failure.kind).reduce(kept);
      } else {
        fmt::print("  alone it ends otherwise: {}\n", again);
      }
      fmt::print("  repeat: heddle_fuzz_attacks {} --seed {} --case {}\n", options_.attack, seed, kept);
    }
    std::fflush(stdout);
  }

  void save() {
    progress_.unfinished.assign(todo_.begin(), todo_.end());
    for (const Worker& worker : workers_) {
      if (worker.busy()) progress_.unfinished.push_back(worker.batch());
    }
    progress_.last_day = today();
    progress_.seconds += wall_seconds() - start_ - counted_;
    counted_ = wall_seconds() - start_;
    const double cpu = children_cpu_seconds();
    progress_.cpu_seconds += cpu - cpu_counted_;
    cpu_counted_ = cpu;
    write_progress(progress_, options_);
  }

  Attack& attack_;
  const CampaignOptions& options_;
  TempDir scratch_;
  Progress progress_;
  std::deque<std::pair<uint64_t, uint64_t>> todo_;
  std::deque<Worker> workers_;
  std::set<std::string> kinds_;  // that are kept already
  int failed_ = 0;
  double start_ = 0, counted_ = 0, cpu_counted_ = children_cpu_seconds();
};

}  // namespace

Progress run_campaign(Attack& attack, const CampaignOptions& options) {
  return Campaign(attack, options).run();
}

std::string run_case(Attack& attack, uint64_t seed, const std::string& folder, const CampaignOptions& options) {
  const TempDir scratch("heddle-fuzz-case");
  std::string outcome;
  Child child(
      [&](const SendLine& send) {
        limit_resources();
        send(settle(attack, seed, folder, options.memory_mb));
      },
      scratch.path() + "/log");
  const double start = wall_seconds();
  for (;;) {
    pollfd entry{child.descriptor(), POLLIN, 0};
    poll(&entry, 1, 200);
    if (entry.revents != 0 && !child.receive([&](const std::string& line) { outcome = line; })) break;
    if (child.cpu_seconds() > options.timeout || wall_seconds() - start > kPatience * options.timeout) {
      return fmt::format("fail hang: {} s", options.timeout);
    }
  }
  const std::string death = child.wait();
  if (death.empty()) return outcome;
  const std::string cause = cause_in(read_bytes(scratch.path() + "/log"));
  return "fail " + (cause.empty() ? death : fmt::format("{}: {}", death.substr(0, death.find(" (")), cause));
}

}  // namespace heddle::fuzz
