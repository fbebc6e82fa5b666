#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace heddle::tune {

// A connection to a database file (SqliteSession) and a statement on it (Statement). Functions return SQLite's codes.
class SqliteSession {
 public:
  // The handle may be null or unusable unless code() is SQLITE_OK.
  SqliteSession(const std::string& path, int flags) { code_ = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr); }
  ~SqliteSession() { sqlite3_close(handle_); }
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;

  int code() const { return code_; }
  sqlite3* handle() const { return handle_; }
  std::string message() const { return handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_); }
  int run(const char* sql) { return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr); }

 private:
  sqlite3* handle_ = nullptr;
  int code_;
};

class Statement {
 public:
  Statement(SqliteSession& session, const char* sql) {
    code_ = sqlite3_prepare_v2(session.handle(), sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_text(statement_, ++bound_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
    return *this;
  }
  Statement& bind(double value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(int64_t value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  // Returns SQLITE_ROW, SQLITE_DONE or an error, which may be that of an earlier call.
  int step() { return code_ == SQLITE_OK ? sqlite3_step(statement_) : code_; }
  // Resets the statement so that it can run again with other values.
  void reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }

  std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(statement_, column);
    return value == nullptr ? "" : reinterpret_cast<const char*>(value);
  }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_;
  int bound_ = 0;
};

}  // namespace heddle::tune
