#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace heddle::tune {

// What timings hold for, apart from the problem: another device, driver (on the CPU: compiler) or version of Heddle may
// have another winner.
struct Place {
  std::string device, driver, version;
};

// The outcome of tuning one problem. Configurations are kept by name (schedule::name_of()): one that no candidate has
// any more is simply not used, so nothing read from the file is trusted to be a configuration.
struct Record {
  std::string winner, pick;             // `pick`: what the cost model would have taken
  double winner_us = 0, pick_us = 0;    // medians
  double spread = 0;                    // of the winner's times: (90th - 10th percentile) / median
  int64_t candidates = 0, samples = 0;  // timed; runs of the winner
};

// Winners of the tuner in one SQLite file that all processes of a user share.
//
// No function throws: where the file cannot be read there are no records, where it cannot be written nothing is kept,
// and note() says why. That goes for a file, too, that others than this user and root may have written
// (base/file/trust.h). A damaged file is renamed (note() says how) and a new one begun. Writers of several processes
// and threads wait for each other up to some seconds.
class Database {
 public:
  // The file is opened when it is first needed, and made when the first record is stored.
  explicit Database(std::string path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // In a cache folder (jit::Cache::folder(); without one there is no file either). The name carries the version of the
  // file's format: other versions of Heddle keep their own.
  static std::string path_in(const std::string& folder);

  const std::string& path() const { return path_; }
  std::string note() const;  // "" where all is well

  std::optional<Record> find(const Place& place, const std::string& problem);
  bool store(const Place& place, const std::string& problem, const Record& record);  // false: it is not kept

  int64_t count();         // of records
  uint64_t bytes() const;  // of the file and what belongs to it
  bool clear();            // removes all records, and files that were set aside

 private:
  class Session;
  enum class Need : uint8_t { kRead, kWrite };
  template <typename Work>
  bool with(Need need, const Work& work);
  bool open(Need need);
  void set_aside(const std::string& why);

  std::string path_;
  mutable std::mutex mutex_;
  std::string note_;
  std::unique_ptr<Session> session_;
  bool may_write_ = true;
};

}  // namespace heddle::tune
