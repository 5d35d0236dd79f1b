#pragma once

// Draws histograms of durations, one below the other, as an SVG document.

#include <iosfwd>
#include <string>
#include <vector>

#include "histogram.h"

namespace rpc::svg {

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

enum class Scale { Linear, Logarithmic };

struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  Scale scale;
  double from;  // nanoseconds; above 0 for a logarithmic scale
  double to;
  int bars;  // number of bars between them
  std::vector<Bars> series;
  std::vector<Mark> marks;
};

void write(std::ostream& out, const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels);

}  // namespace rpc::svg
