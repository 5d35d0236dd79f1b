#include "common/picture.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "common/example.h"
#include "common/format.h"

namespace common {
namespace {

constexpr double kWidth = 1030;
constexpr double kLeft = 120;  // a label fits left of it
constexpr double kRight = 990;
constexpr double kHeaderHeight = 84;
constexpr double kPanelTitleHeight = 40;
constexpr double kMarkRowHeight = 17;
constexpr double kPlotHeight = 230;
constexpr double kPanelFooterHeight = 72;

constexpr std::string_view kStyle = R"(
    text { font-family: "Helvetica Neue", Arial, "Liberation Sans", sans-serif; font-size: 13px; fill: #24292f }
    .title { font-size: 22px; font-weight: bold }
    .subtitle, .tick { fill: #57606a }
    .panel { font-size: 16px; font-weight: bold }
    .grid { stroke: #d8dee4; stroke-width: 1 }
    .axis { stroke: #57606a; stroke-width: 1 }
    .mark { stroke: #24292f; stroke-width: 1; stroke-dasharray: 2 3 }
    .limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 7 4 }
    .limit-label { fill: #cf222e; font-weight: bold }
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

std::string duration_text(double ns) {
  return ns == 0 ? "0" : short_duration(std::chrono::duration<double, std::nano>(ns));
}

class Drawing {
 public:
  void text(double x, double y, const char* anchor, const char* style, const std::string& content, int turn = 0) {
    svg_ += formatted("  <text transform=\"translate(%.1f %.1f) rotate(%d)\" text-anchor=\"%s\" class=\"%s\">", x, y,
                      turn, anchor, style) +
            escaped(content) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    svg_ += formatted("  <path d=\"M%.1f %.1fL%.1f %.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, style);
  }
  void box(double x, double y, double width, double height, const std::string& color, const std::string& tooltip = "") {
    svg_ += formatted("  <rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">", x, y, width, height,
                      color.c_str()) +
            "<title>" + escaped(tooltip) + "</title></rect>\n";
  }
  const std::string& svg() const { return svg_; }

 private:
  std::string svg_;
};

class PanelDrawing {
 public:
  PanelDrawing(Drawing& out, const Panel& panel, double top)
      : out_(out),
        panel_(panel),
        title_y_(top + 18),
        plot_top_(top + kPanelTitleHeight + kMarkRowHeight * static_cast<double>(panel.marks.size())) {
    set_edges();
    double highest = 0;
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
      double sum = 0;
      for (const Bars& bars : panel_.series) sum += count_of(bars, i);
      highest = std::max(highest, sum / relative_width_of(i));
    }
    empty_ = highest == 0;
    top_count_ = std::max(1.0, 1.04 * highest);
  }

  static double height(const Panel& panel) {
    return kPanelTitleHeight + kMarkRowHeight * static_cast<double>(panel.marks.size()) + kPlotHeight +
           kPanelFooterHeight;
  }

  void draw() {
    draw_title_and_legend();
    draw_y_axis();
    draw_x_axis();
    draw_bars();
    draw_marks();
  }

 private:
  double x_of(double ns) const {
    const double part = panel_.logarithmic
                            ? std::log(std::max(ns, 1.0) / panel_.from) / std::log(panel_.to / panel_.from)
                            : (ns - panel_.from) / (panel_.to - panel_.from);
    return kLeft + std::clamp(part, 0.0, 1.0) * (kRight - kLeft);
  }
  double y_of(double count) const { return plot_bottom_ - count / top_count_ * kPlotHeight; }
  void set_edges() {
    edges_ = {panel_.from};
    for (int i = 1; i < panel_.bars; ++i) {
      const double part = static_cast<double>(i) / panel_.bars;
      double edge = panel_.logarithmic ? panel_.from * std::pow(panel_.to / panel_.from, part)
                                       : panel_.from + part * (panel_.to - panel_.from);
      if (panel_.tick > 0) edge = std::round(edge / panel_.tick) * panel_.tick;
      if (edge - edges_.back() >= panel_.tick && panel_.to - edge >= panel_.tick) edges_.push_back(edge);
    }
    edges_.push_back(panel_.to);
  }
  double count_of(const Bars& bars, std::size_t bar) const {
    return bars.histogram->count_between(edges_[bar], edges_[bar + 1]);
  }
  /// Returns the width of a bar, relative to the width that `Panel::bars` gives.
  double relative_width_of(std::size_t bar) const {
    return (x_of(edges_[bar + 1]) - x_of(edges_[bar])) / ((kRight - kLeft) / panel_.bars);
  }

  void draw_title_and_legend() {
    out_.text(kLeft, title_y_, "start", "panel", panel_.title);
    if (panel_.series.size() < 2) return;  // the title names it
    double x = kRight;
    for (auto bars = panel_.series.rbegin(); bars != panel_.series.rend(); ++bars) {
      x -= 8.0 * static_cast<double>(bars->name.size()) + 32;
      out_.box(x, title_y_ - 11, 12, 12, bars->color);
      out_.text(x + 18, title_y_, "start", "legend", bars->name);
    }
  }

  void draw_y_axis() {
    const double step = std::max(1.0, round_125(top_count_ / 5, true));
    for (double count = 0; count <= top_count_; count += step) {
      out_.line(kLeft, y_of(count), kRight, y_of(count), count == 0 ? "axis" : "grid");
      out_.text(kLeft - 8, y_of(count) + 4, "end", "tick", with_thousands(std::llround(count)));
    }
    const double middle = (plot_top_ + plot_bottom_) / 2;
    out_.text(52, middle, "middle", "label", panel_.y_label, -90);
  }

  void draw_x_axis() {
    if (panel_.logarithmic) {
      // Above four decades there is no room for the labels of 2 and 5.
      const bool label_all = panel_.to / panel_.from <= 2e4;
      for (double power = std::pow(10, std::floor(std::log10(panel_.from))); power <= panel_.to; power *= 10) {
        for (int factor = 1; factor < 10; ++factor) {
          draw_x_tick(factor * power, factor == 1 || (label_all && (factor == 2 || factor == 5)));
        }
      }
    } else {
      const double step = round_125((panel_.to - panel_.from) / 10, true);
      for (int i = 0; panel_.from + i * step <= panel_.to * 1.000001; ++i) draw_x_tick(panel_.from + i * step, true);
    }
    out_.text((kLeft + kRight) / 2, plot_bottom_ + 44, "middle", "label", panel_.x_label);
  }

  void draw_x_tick(double ns, bool labelled) {
    if (ns < panel_.from * 0.999999 || ns > panel_.to * 1.000001) return;
    const double x = x_of(ns);
    if (labelled) out_.line(x, plot_top_, x, plot_bottom_, "grid");
    out_.line(x, plot_bottom_, x, plot_bottom_ + (labelled ? 6 : 3), "axis");
    if (labelled) out_.text(x, plot_bottom_ + 21, "middle", "tick", duration_text(ns));
  }

  void draw_bars() {
    if (empty_) out_.text((kLeft + kRight) / 2, (plot_top_ + plot_bottom_) / 2, "middle", "label", "none");
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
      const double x = x_of(edges_[i]);
      const double width = std::max(0.5, x_of(edges_[i + 1]) - x - 0.8);
      double below = 0;
      for (const Bars& bars : panel_.series) {
        const double count = count_of(bars, i);
        if (count < 0.5) continue;
        const double height = count / relative_width_of(i);
        const double top = y_of(below + height);
        out_.box(x + 0.4, top, width, y_of(below) - top, bars.color,
                 duration_text(edges_[i]) + " .. " + duration_text(edges_[i + 1]) + ": " +
                     with_thousands(std::llround(count)) + " " + bars.name);
        below += height;
      }
    }
  }

  /// Each label has its own row, left of its line, with the leftmost mark in the lowest row. So no line crosses a
  /// label.
  void draw_marks() {
    std::vector<Mark> marks = panel_.marks;
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.at < b.at; });
    double y = plot_top_;
    for (const Mark& mark : marks) {
      y -= kMarkRowHeight;
      const auto at = static_cast<double>(mark.at.count());
      const double x = x_of(at);
      out_.line(x, y + 2, x, plot_bottom_, mark.is_limit ? "limit" : "mark");
      out_.text(x - 6, y + 12, "end", mark.is_limit ? "limit-label" : "label",
                mark.label + " " + short_duration(mark.at) + (at > panel_.to ? " (beyond)" : ""));
    }
  }

  Drawing& out_;
  const Panel& panel_;
  std::vector<double> edges_;  // of the bars, in nanoseconds
  const double title_y_;
  const double plot_top_;
  const double plot_bottom_ = plot_top_ + kPlotHeight;
  bool empty_ = false;
  double top_count_ = 0;
};

std::string svg_of(const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels) {
  Drawing drawing;
  drawing.text(kLeft, 38, "start", "title", title);
  drawing.text(kLeft, 62, "start", "subtitle", subtitle);
  double height = kHeaderHeight;
  for (const Panel& panel : panels) {
    PanelDrawing(drawing, panel, height).draw();
    height += PanelDrawing::height(panel);
  }
  return formatted(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
             "viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n",
             kWidth, height, kWidth, height) +
         "  <title>" + escaped(title) + "</title>\n  <style>" + std::string(kStyle) +
         "  </style>\n"
         // An opaque background: dark pages would otherwise show dark text on dark.
         "  <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n" +
         drawing.svg() + "</svg>\n";
}

/// Writes the text with this mode of fopen(). Returns false, with errno, if that fails.
bool write_file(const std::string& path, const char* mode, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (!file) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = error;
  return written && closed;
}

}  // namespace

std::vector<Mark> percentiles_of(const Histogram& histogram) {
  if (histogram.count() == 0) return {};
  return {{"p50", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"p99.9", histogram.quantile(0.999)},
          {"max", histogram.max()}};
}

double round_125(double value, bool upwards) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  const double factor = value / power;
  if (upwards) return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
  return power * (factor >= 5 ? 5 : factor >= 2 ? 2 : 1);
}

PictureFile::PictureFile(const std::string& option, const std::string& path)
    : path_(path), name_(option + " \"" + one_line(path) + "\": cannot write: ") {
  namespace fs = std::filesystem;
  const auto check = [this](bool possible) {
    if (!possible) throw BadArgument(name_ + std::strerror(errno));
  };
  errno = ENOENT;
  check(!path_.empty());
  std::error_code error;
  if (fs::exists(path_, error)) check(write_file(path_, "ab", ""));
  if (fs::exists(path_, error) && !fs::is_regular_file(path_, error)) return;
  // Follows a link, so that the picture does not replace it. The limit ends cycles of links.
  for (int links = 0; links < 40 && fs::is_symlink(path_, error); ++links) {
    path_ = (fs::path(path_).parent_path() / fs::read_symlink(path_, error)).string();
  }
  temporary_ = path_ + ".part-" + std::to_string(std::random_device()());
  check(write_file(temporary_, "wbx", ""));
  std::remove(temporary_.c_str());
}

void PictureFile::draw(const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels) const {
  const std::string svg = svg_of(title, subtitle, panels);
  if (temporary_.empty() && write_file(path_, "wb", svg)) return;
  if (!temporary_.empty() && write_file(temporary_, "wbx", svg) &&
      std::rename(temporary_.c_str(), path_.c_str()) == 0) {
    return;
  }
  const std::string why = std::strerror(errno);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
  throw std::runtime_error(name_ + why);
}

}  // namespace common
