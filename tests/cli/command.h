#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "base/file/file.h"

namespace heddle::cli {

struct Outcome {
  int exit_code;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }

  // `prefix` comes before the command, for variables of the environment.
  Outcome heddle(const std::string& arguments, const std::string& prefix = "") const {
    const std::string command = "cd " + dir_.path() + " && HEDDLE_CACHE_DIR=" + path("cache") + " " + prefix + " " +
                                HEDDLE_BINARY + " " + arguments + " >" + path("out") + " 2>" + path("err");
    const int status = std::system(command.c_str());
    const auto text = [&](const char* name) { return std::string(MappedFile::open(path(name))->text()); };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"), text("err")};
  }

  // The one form of errors, on stderr alone.
  void expect_error(const Outcome& outcome, int exit_code, const std::string& said) const {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("heddle: error: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }

  // What `run` printed, without the line of times.
  static std::string table_of(const Outcome& outcome) {
    return outcome.out.substr(0, outcome.out.rfind('\n', outcome.out.size() - 2));
  }

  TempDir dir_;
};

}  // namespace heddle::cli
