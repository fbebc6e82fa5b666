#pragma once

#include <optional>
#include <string>

namespace heddle::cli {

// Shows on stderr how far a long command is. On a terminal: one line, rewritten, with a bar and the time that is left.
// Elsewhere: a line now and then, none of a command that is done soon.
class Progress {
 public:
  Progress();
  // `fraction` of all work is done, `stage` has begun. Stages that count ("kernels 3 of 40") give the pace from which
  // the time left is told.
  void show(const std::string& stage, double fraction);
  // The line is as if it had never been.
  static void end();

 private:
  struct Point {
    double seconds, fraction;
  };
  double seconds_left(const std::string& stage, double fraction, double now);

  double start_, told_;
  std::optional<Point> counted_from_;
};

}  // namespace heddle::cli
