#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace heddle::tune {

// The conditions under which timings hold, apart from the problem: another device, driver (on the CPU: compiler) or
// version of Heddle may have another winner.
struct Place {
  std::string device, driver, version;
};

// The outcome of tuning one problem. Configurations are stored by name (schedule::name_of()). A name that no candidate
// has any more is not used, so the file is not trusted to contain valid configurations.
struct Record {
  std::string winner, pick;             // `pick`: the cost model's choice
  double winner_us = 0, pick_us = 0;    // medians
  double spread = 0;                    // of the winner's times: (90th - 10th percentile) / median
  int64_t candidates = 0, samples = 0;  // timed; runs of the winner
};

// Winners of the tuner in one SQLite file that all processes of a user share.
//
// No function throws. If the file cannot be read, there are no records; if it cannot be written, nothing is stored;
// note() gives the reason. The same holds for a file that users other than this one and root may have written
// (base/file/trust.h). A damaged file is renamed (note() gives the new name) and a new one is begun. Writers in several
// processes and threads wait for each other for up to some seconds.
class Database {
 public:
  // The file is opened on first use and created by the first store().
  explicit Database(std::string path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // The database's path in a cache folder (jit::Cache::folder(); without a folder there is no file). The name contains
  // the version of the file's format, so other versions of Heddle keep their own files.
  static std::string path_in(const std::string& folder);

  const std::string& path() const { return path_; }
  std::string note() const;  // "" if all is well

  std::optional<Record> find(const Place& place, const std::string& problem);
  bool store(const Place& place, const std::string& problem, const Record& record);  // false: it was not stored

  int64_t count();         // of records
  uint64_t bytes() const;  // of the file and its companion files
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
