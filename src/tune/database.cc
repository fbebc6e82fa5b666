#include "tune/database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/file/file.h"
#include "base/file/trust.h"
#include "base/log.h"
#include "tune/sqlite_session.h"

namespace heddle::tune {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 3;  // of the tables and of the configurations' names; in the file's name and in the file
constexpr int kWaitMs = 5000;
constexpr int64_t kForgetSeconds = int64_t{90} * 24 * 3600;  // records of other versions of Heddle

constexpr const char* kTables =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS winners(problem TEXT NOT NULL, device TEXT NOT NULL, driver TEXT NOT NULL,"
    " version TEXT NOT NULL, winner TEXT NOT NULL, pick TEXT NOT NULL, winner_us REAL NOT NULL, pick_us REAL NOT NULL,"
    " winner_uj REAL NOT NULL, pick_uj REAL NOT NULL, spread REAL NOT NULL, candidates INTEGER NOT NULL, samples "
    "INTEGER NOT NULL, made INTEGER NOT NULL,"
    " PRIMARY KEY(problem, device, driver, version)) WITHOUT ROWID;"
    "PRAGMA user_version=3;"
    "COMMIT";
static_assert(kFormat == 3, "kTables says the version too");

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_damage(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}
bool is_good(int code) {
  return code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW;
}

std::string file_of_format(const std::string& folder, int format) {
  return fmt::format("{}/tune-{}.sqlite", folder, format);
}

// For "file:" names: what would end the path is escaped.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

// Whether the tables are there (1), the file is still empty (0), or it is something else (-1); an error code in `code`.
int state_of(SqliteSession& session, int& code) {
  Statement check(session, "PRAGMA quick_check(1)");
  code = check.step();
  if (code != SQLITE_ROW) return -1;
  if (check.text(0) != "ok") {
    code = SQLITE_CORRUPT;
    return -1;
  }
  Statement version(session, "PRAGMA user_version");
  code = version.step();
  if (code != SQLITE_ROW) return -1;
  if (version.integer(0) == kFormat) return 1;
  Statement tables(session, "SELECT count(*) FROM sqlite_master");
  code = tables.step();
  if (code != SQLITE_ROW) return -1;
  if (version.integer(0) == 0 && tables.integer(0) == 0) return 0;
  code = SQLITE_NOTADB;
  return -1;
}

// Of the folder and of the files in it, which nobody else changes then.
std::optional<Distrust> distrust_of_database(const std::string& path) {
  auto distrust = distrust_of_folder(fs::path(path).parent_path());
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    if (distrust) break;
    const std::string name = path + suffix;
    const Descriptor file(::open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (file.get() >= 0) distrust = distrust_of_file(file.get(), name);
  }
  return distrust;
}

// The databases of older formats beside this one.
std::vector<std::string> older_files(const std::string& path) {
  std::vector<std::string> found;
  const std::string folder = fs::path(path).parent_path().string();
  if (path != Database::path_in(folder)) return found;
  for (int format = 1; format < kFormat; ++format) {
    std::string older = file_of_format(folder, format);
    if (file_exists(older)) found.push_back(std::move(older));
  }
  return found;
}

// Held while a damaged file is set aside, so that no second process takes the new file for the damaged one.
class Lock {
 public:
  explicit Lock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ >= 0) ::flock(fd_, LOCK_EX);
  }
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

}  // namespace

class Database::Session : public SqliteSession {
 public:
  Session(const std::string& path, int flags, bool writable)
      : SqliteSession(path, flags | SQLITE_OPEN_NOMUTEX), writable(writable) {}
  const bool writable;
};

namespace {

// A session with tables; null: the file is empty and only to be read. The outcome is in `code`.
template <typename Session>
std::unique_ptr<Session> connect_to(const std::string& path, bool writes, int& code) {
  auto session = std::make_unique<Session>(path, SQLITE_OPEN_READWRITE | (writes ? SQLITE_OPEN_CREATE : 0), true);
  code = session->code();
  if (code != SQLITE_OK) return session;
  sqlite3_busy_timeout(session->handle(), kWaitMs);
  const int state = state_of(*session, code);
  if (state < 0) return session;
  code = SQLITE_OK;
  if (!writes) return state == 1 ? std::move(session) : nullptr;
  // Readers and one writer at a time; where the file system cannot do that, SQLite's older way serves.
  session->run("PRAGMA journal_mode=WAL");
  session->run("PRAGMA synchronous=NORMAL");
  if (state == 0) code = session->run(kTables);
  if (is_good(code) && sqlite3_db_readonly(session->handle(), "main") == 1) code = SQLITE_READONLY;
  return session;
}

}  // namespace

Database::Database(std::string path) : path_(std::move(path)) {}
Database::~Database() = default;

std::string Database::path_in(const std::string& folder) {
  return folder.empty() ? "" : file_of_format(folder, kFormat);
}

std::string Database::note() const {
  const std::lock_guard lock(mutex_);
  return note_;
}

// Leaves a session that serves `need`; false: there is none, with the reason in note_ (a file that does not exist is no
// reason). A session that reads stays where one that writes cannot be had.
bool Database::open(Need need) {
  if (session_ != nullptr && (need == Need::kRead || session_->writable)) return true;
  if (need == Need::kRead && !file_exists(path_)) {
    note_older_files();
    return false;
  }
  if (need == Need::kWrite && !may_write_) return false;
  const auto refuse = [&](const std::string& why) {
    if (need == Need::kWrite) may_write_ = false;
    note_ = fmt::format("the tuning database {} cannot be {} ({}); going on without it", path_,
                        need == Need::kRead ? "read" : "written", why);
    return false;
  };
  if (session_ != nullptr) return refuse("its folder is read-only");
  if (path_.empty()) return refuse("there is no folder for it: set HEDDLE_CACHE_DIR");
  try {
    if (need == Need::kWrite) make_directories(fs::path(path_).parent_path());
  } catch (const Error& error) {
    return refuse(error.why());
  }
  if (const auto distrust = distrust_of_database(path_)) {
    return refuse(fmt::format("{}: {}. {}", distrust->where, distrust->why, distrust->remedy));
  }
  // SQLite gives its other files the mode of this one.
  if (need == Need::kWrite) Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  std::string why;
  for (int attempt = 0; attempt < 2; ++attempt) {
    int code = SQLITE_OK;
    std::unique_ptr<Session> session = connect_to<Session>(path_, need == Need::kWrite, code);
    if (session != nullptr && session->code() == SQLITE_OK && is_good(code)) {
      session_ = std::move(session);
      if (need == Need::kWrite && std::exchange(notes_older_, false)) note_.clear();  // it is being tuned again
      return true;
    }
    if (session == nullptr) return false;  // empty: nothing to read
    why = session->message();
    session.reset();
    if (is_damage(code)) {
      set_aside(code == SQLITE_NOTADB ? "it is no database of Heddle's" : "it is damaged");
      if (need == Need::kRead) return false;
      continue;
    }
    // A folder that cannot be written holds no shared-memory file beside the database: read it as it lies there.
    if (need == Need::kRead && (code == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY)) {
      session_ = std::make_unique<Session>(uri_of(path_), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, false);
      if (session_->code() == SQLITE_OK && state_of(*session_, code) == 1) return true;
      session_.reset();
    }
    break;
  }
  return refuse(why);
}

void Database::note_older_files() {
  if (!note_.empty()) return;
  const std::vector<std::string> older = older_files(path_);
  if (older.empty()) return;
  note_ = fmt::format(
      "the tuning database {} has an older format, and its winners are not used; tune again, and remove it with "
      "`heddle cache clear`",
      older.back());
  notes_older_ = true;
  log(LogLevel::kWarning, note_);
}

void Database::set_aside(const std::string& why) {
  session_.reset();
  const Lock lock(path_ + ".lock");
  {
    // Another process may have done it meanwhile.
    Session again(path_, SQLITE_OPEN_READWRITE, true);
    int code = again.code();
    if (code == SQLITE_OK) {
      sqlite3_busy_timeout(again.handle(), kWaitMs);
      if (state_of(again, code) >= 0) return;
    }
    if (!is_damage(code)) return;
  }
  const std::string aside = fmt::format("{}.damaged-{}-{}", path_, now_seconds(), ::getpid());
  std::error_code error;
  fs::rename(path_, aside, error);
  if (error) {
    note_ = fmt::format("the tuning database {} cannot be used ({}) nor renamed ({})", path_, why, error.message());
    return;
  }
  for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(path_ + suffix, error);
  note_ =
      fmt::format("the tuning database {} was set aside as {} ({}); what it held is tuned again", path_, aside, why);
  log(LogLevel::kWarning, note_);
}

// Runs `work`, which returns an SQLite code, once more after damage was found by it.
template <typename Work>
bool Database::with(Need need, const Work& work) {
  const std::lock_guard lock(mutex_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!open(need)) return false;
    const int code = work(*session_);
    if (is_good(code)) return true;
    if (is_damage(code)) {
      set_aside("it is damaged");
      continue;
    }
    note_ = fmt::format("the tuning database {}: {}", path_, session_->message());
    return false;
  }
  return false;
}

std::optional<Record> Database::find(const Place& place, const std::string& problem) {
  std::optional<Record> found;
  with(Need::kRead, [&](Session& session) {
    Statement query(
        session,
        "SELECT winner, pick, winner_us, pick_us, winner_uj, pick_uj, spread, candidates, samples FROM winners"
        " WHERE problem=? AND device=? AND driver=? AND version=?");
    const int code = query.bind(problem).bind(place.device).bind(place.driver).bind(place.version).step();
    if (code == SQLITE_ROW) {
      found = Record{query.text(0), query.text(1), query.real(2),    query.real(3),   query.real(4),
                     query.real(5), query.real(6), query.integer(7), query.integer(8)};
    }
    return code;
  });
  return found;
}

bool Database::store(const Place& place, const std::string& problem, const Record& r) {
  return with(Need::kWrite, [&](Session& session) {
    Statement insert(session, "INSERT OR REPLACE INTO winners VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    insert.bind(problem).bind(place.device).bind(place.driver).bind(place.version).bind(r.winner).bind(r.pick);
    insert.bind(r.winner_us)
        .bind(r.pick_us)
        .bind(r.winner_uj)
        .bind(r.pick_uj)
        .bind(r.spread)
        .bind(r.candidates)
        .bind(r.samples)
        .bind(now_seconds());
    const int code = insert.step();
    if (!is_good(code)) return code;
    Statement forget(session, "DELETE FROM winners WHERE version<>? AND made<?");
    return forget.bind(place.version).bind(now_seconds() - kForgetSeconds).step();
  });
}

int64_t Database::count() {
  int64_t count = 0;
  with(Need::kRead, [&](Session& session) {
    Statement query(session, "SELECT count(*) FROM winners");
    const int code = query.step();
    if (code == SQLITE_ROW) count = query.integer(0);
    return code;
  });
  return count;
}

uint64_t Database::bytes() const {
  uint64_t bytes = 0;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code error;
    const uint64_t size = fs::file_size(path_ + suffix, error);
    if (!error) bytes += size;
  }
  return bytes;
}

// The file itself stays: another process may have it open, and a new file beside the old one would split them.
bool Database::clear() {
  bool cleared = true;
  if (file_exists(path_)) {
    cleared = with(Need::kWrite, [](Session& session) {
      const int code = session.run("BEGIN IMMEDIATE; DELETE FROM winners; COMMIT");
      session.run(is_good(code) ? "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)" : "ROLLBACK");
      return code;
    });
  }
  const fs::path path(path_);
  std::error_code error;
  const std::string prefix = path.filename().string() + ".damaged-";
  for (const auto& entry : fs::directory_iterator(path.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove(entry.path(), error);
  }
  const std::lock_guard lock(mutex_);
  for (const std::string& older : older_files(path_)) {
    note_.clear();
    for (const char* suffix : {"", "-wal", "-shm", "-journal", ".lock"}) fs::remove(older + suffix, error);
  }
  return cleared;
}

}  // namespace heddle::tune
