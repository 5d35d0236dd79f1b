#pragma once

// Draws histograms of durations, one below the other, as an SVG file.

#include <chrono>
#include <string>
#include <vector>

#include "common/histogram.h"

namespace common {

struct Bars {
  std::string name;   // for the legend
  std::string color;  // an SVG color
  const Histogram* histogram;
};

/// A vertical line with a label, such as a percentile.
struct Mark {
  std::string label;
  std::chrono::nanoseconds at;
  bool is_limit = false;  // highlighted
};

std::vector<Mark> percentiles_of(const Histogram& histogram);

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool logarithmic;
  double from;  // nanoseconds; above 0 if logarithmic
  double to;
  int bars;  // number of bars between them
  // The tick of the timer in nanoseconds, or 0. Timeouts end at whole ticks, so narrower bars would show a comb. All
  // edges are multiples of the tick. The area of a bar is its count: a bar of twice the width has half the height.
  double tick = 0;
  std::vector<Bars> series;
  std::vector<Mark> marks;
};

/// Rounds to 1, 2 or 5 times a power of ten.
double round_125(double value, bool upwards);

/// The file of a picture.
class PictureFile {
 public:
  /// Call it before the run: it throws BadArgument with the name of the option if the file cannot be written.
  PictureFile(const std::string& option, const std::string& path);

  /// Replaces the file as a whole, or leaves it unchanged and throws std::runtime_error.
  void draw(const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels) const;

 private:
  std::string path_;
  const std::string name_;  // for error messages
  std::string temporary_;   // in the same folder; empty for a device, which cannot be replaced
};

}  // namespace common
