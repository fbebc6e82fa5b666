#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace heddle::tune {

// The conditions, apart from the problem, under which timings are valid. A different device, driver (on the CPU:
// compiler) or version of Heddle may have a different winner.
struct Place {
  std::string device, driver, version;
};

// The result of tuning one problem. Configurations are stored by name (schedule::name_of()). A name that matches no
// current candidate is ignored, so the file need not be trusted to contain valid configurations.
struct Record {
  std::string winner, pick;             // `pick`: the cost model's choice
  double winner_us = 0, pick_us = 0;    // median times
  double winner_uj = 0, pick_uj = 0;    // energies of a run; 0 if the winner was chosen by its time
  double spread = 0;                    // of the winner: (90th - 10th percentile) / median of its times
  int64_t candidates = 0, samples = 0;  // candidates timed; timed runs of the winner

  bool by_energy() const { return winner_uj > 0; }
  // The pick's time / the winner's, or their energies.
  double gain() const {
    const double winner_cost = by_energy() ? winner_uj : winner_us, pick_cost = by_energy() ? pick_uj : pick_us;
    return winner_cost > 0 ? pick_cost / winner_cost : 1;
  }
};

// The tuner's winners, in one SQLite file that all processes of a user share.
//
// No function throws. If the file cannot be read, there are no records; if it cannot be written, nothing is stored. A
// file that anyone other than the current user and root could have written (base/file/trust.h) is neither read nor
// written. In each of these cases note() gives the reason. A damaged file is renamed and a new file is started; note()
// gives the name of the renamed file. Concurrent writers, in any thread or process, wait for each other for up to a few
// seconds.
class Database {
 public:
  // The file is opened on first use and created by the first store().
  explicit Database(std::string path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // The path of the database in a cache folder (jit::Cache::folder()). If `folder` is "", there is no file. The file
  // name contains the version of the file format, so versions of Heddle with other formats use other files. note() and
  // a warning name files of older formats; clear() removes them.
  static std::string path_in(const std::string& folder);

  const std::string& path() const { return path_; }
  std::string note() const;  // why the database is not used fully; "" if all is well

  std::optional<Record> find(const Place& place, const std::string& problem);
  bool store(const Place& place, const std::string& problem, const Record& record);  // returns false if not stored

  int64_t count();         // number of records
  uint64_t bytes() const;  // size of the file and its companion files
  bool clear();            // removes all records and all renamed damaged files

 private:
  class Session;
  enum class Need : uint8_t { kRead, kWrite };
  template <typename Work>
  bool with(Need need, const Work& work);
  bool open(Need need);
  void set_aside(const std::string& why);
  // Sets note_ if there is a database of an older format, whose winners nobody reads.
  void note_older_files();

  std::string path_;
  mutable std::mutex mutex_;
  std::string note_;
  bool notes_older_ = false;  // note_ is of note_older_files()
  std::unique_ptr<Session> session_;
  bool may_write_ = true;
};

}  // namespace heddle::tune
