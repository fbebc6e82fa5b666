#pragma once

#include <optional>
#include <string>

namespace heddle::cli {

// Shows the progress of a long command on stderr. On a terminal, rewrites one line with a progress bar and the
// remaining time. On other outputs, prints a line from time to time, but no line for a command that ends soon.
class Progress {
 public:
  Progress();
  // Reports that `stage` has begun and that `fraction` of all work is done. The remaining time is estimated from the
  // pace of stages whose text contains a count ("kernels 3 of 40").
  void show(const std::string& stage, double fraction);
  // Erases the line on a terminal.
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
