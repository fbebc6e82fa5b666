#pragma once

#include <optional>
#include <string>

namespace heddle::cli {

// Shows the progress of a long command on stderr. A terminal gets one line that is rewritten, with a bar and the time
// that is left. Other outputs get a line now and then, and none for a command that ends soon.
class Progress {
 public:
  Progress();
  // `fraction` of all work is done, `stage` has begun. Stages that count ("kernels 3 of 40") set the pace from which
  // the time left is estimated.
  void show(const std::string& stage, double fraction);
  // Erases the line.
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
