#pragma once

// Draws histograms of durations, one below the other, as an SVG file.

#include <chrono>
#include <string>
#include <vector>

#include "common/histogram.h"

namespace common {

struct Bars {
  std::string name;   // for the legend
  std::string color;  // of SVG
  const Histogram* histogram;
};

/// A vertical line with a label, such as a percentile.
struct Mark {
  std::string label;
  std::chrono::nanoseconds at;
  bool is_limit = false;  // drawn so that it stands out
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
  // The tick of the timer in nanoseconds, or 0. Durations that a timer ends are whole ticks, so narrower bars would
  // show a comb. All edges are multiples of the tick. The area of a bar is its count: twice the width is half the
  // height.
  double tick = 0;
  std::vector<Bars> series;
  std::vector<Mark> marks;
};

/// The 1, 2 or 5 times a power of ten that is next to the value on that side.
double round_125(double value, bool upwards);

/// Where a picture goes.
class PictureFile {
 public:
  /// Before the run, so that it is not in vain. Throws BadArgument, naming the option, if nothing can be written there.
  PictureFile(const std::string& option, const std::string& path);

  /// Either the whole picture is there then or what was there before. Throws std::runtime_error.
  void draw(const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels) const;

 private:
  std::string path_;
  const std::string name_;  // for errors
  std::string temporary_;   // in the same folder; empty for a device, which cannot be replaced
};

}  // namespace common
