#include "svg_histogram.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>

#include "common/format.h"

namespace rpc::svg {
namespace {

constexpr double kWidth = 1000;
constexpr double kLeft = 90;
constexpr double kRight = 960;
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
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string px(double value) { return common::fixed(value, 1); }

void text(std::ostream& out, double x, double y, std::string_view anchor, std::string_view style,
          std::string_view content) {
  out << "  <text x=\"" << px(x) << "\" y=\"" << px(y) << "\" text-anchor=\"" << anchor << "\" class=\"" << style
      << "\">" << escaped(content) << "</text>\n";
}

void line(std::ostream& out, double x1, double y1, double x2, double y2, std::string_view style) {
  out << "  <line x1=\"" << px(x1) << "\" y1=\"" << px(y1) << "\" x2=\"" << px(x2) << "\" y2=\"" << px(y2)
      << "\" class=\"" << style << "\"/>\n";
}

/// The 1, 2 or 5 times a power of ten that divides the range into at most so many steps.
double nice_step(double range, int most_steps) {
  const double power = std::pow(10, std::floor(std::log10(range / most_steps)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range / (factor * power) <= most_steps) return factor * power;
  }
  return 10 * power;
}

class PanelDrawing {
 public:
  PanelDrawing(std::ostream& out, const Panel& panel, double top)
      : out_(out),
        panel_(panel),
        title_y_(top + 18),
        plot_top_(top + kPanelTitleHeight + kMarkRowHeight * static_cast<double>(panel.marks.size())),
        plot_bottom_(plot_top_ + kPlotHeight) {
    for (int i = 0; i < panel_.bars; ++i) {
      double sum = 0;
      for (const Bars& bars : panel_.series) sum += bars.histogram->count_between(edge(i), edge(i + 1));
      highest_ = std::max(highest_, sum);
    }
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
    const double part = panel_.scale == Scale::Linear
                            ? (ns - panel_.from) / (panel_.to - panel_.from)
                            : std::log(std::max(ns, 1.0) / panel_.from) / std::log(panel_.to / panel_.from);
    return kLeft + std::clamp(part, 0.0, 1.0) * (kRight - kLeft);
  }
  double y_of(double count) const { return plot_bottom_ - count / top_count() * kPlotHeight; }
  double top_count() const { return std::max(1.0, 1.04 * highest_); }
  double edge(int bar) const {
    const double part = static_cast<double>(bar) / panel_.bars;
    return panel_.scale == Scale::Linear ? panel_.from + part * (panel_.to - panel_.from)
                                         : panel_.from * std::pow(panel_.to / panel_.from, part);
  }

  void draw_title_and_legend() {
    text(out_, kLeft, title_y_, "start", "panel", panel_.title);
    if (panel_.series.size() < 2) return;  // the title says it
    const auto width = [](const Bars& bars) { return 8.0 * static_cast<double>(bars.name.size()) + 32; };
    double x = kRight;
    for (const Bars& bars : panel_.series) x -= width(bars);
    for (const Bars& bars : panel_.series) {
      out_ << "  <rect x=\"" << px(x) << "\" y=\"" << px(title_y_ - 11) << "\" width=\"12\" height=\"12\" fill=\""
           << bars.color << "\"/>\n";
      text(out_, x + 18, title_y_, "start", "legend", bars.name);
      x += width(bars);
    }
  }

  void draw_y_axis() {
    const double step = std::max(1.0, nice_step(top_count(), 5));
    for (double count = 0; count <= top_count(); count += step) {
      line(out_, kLeft, y_of(count), kRight, y_of(count), count == 0 ? "axis" : "grid");
      text(out_, kLeft - 8, y_of(count) + 4, "end", "tick", common::with_thousands(std::llround(count)));
    }
    const double middle = (plot_top_ + plot_bottom_) / 2;
    out_ << "  <text transform=\"translate(22 " << px(middle) << ") rotate(-90)\" text-anchor=\"middle\">"
         << escaped(panel_.y_label) << "</text>\n";
  }

  void draw_x_axis() {
    if (panel_.scale == Scale::Linear) {
      const double step = nice_step(panel_.to - panel_.from, 10);
      for (int i = 0; panel_.from + i * step <= panel_.to * 1.000001; ++i) draw_x_tick(panel_.from + i * step, true);
    } else {
      // Beyond four decades there is no room for the labels of 2 and 5.
      const bool label_all = panel_.to / panel_.from <= 2e4;
      for (double power = std::pow(10, std::floor(std::log10(panel_.from))); power <= panel_.to; power *= 10) {
        for (int factor = 1; factor < 10; ++factor) {
          const double at = factor * power;
          if (at < panel_.from * 0.999999 || at > panel_.to * 1.000001) continue;
          draw_x_tick(at, factor == 1 || (label_all && (factor == 2 || factor == 5)));
        }
      }
    }
    text(out_, (kLeft + kRight) / 2, plot_bottom_ + 44, "middle", "label", panel_.x_label);
  }

  void draw_x_tick(double ns, bool labelled) {
    const double x = x_of(ns);
    if (labelled) line(out_, x, plot_top_, x, plot_bottom_, "grid");
    line(out_, x, plot_bottom_, x, plot_bottom_ + (labelled ? 6 : 3), "axis");
    if (!labelled) return;
    const std::string label = ns == 0 ? "0" : common::short_duration(std::chrono::duration<double, std::nano>(ns));
    text(out_, x, plot_bottom_ + 21, "middle", "tick", label);
  }

  void draw_bars() {
    if (highest_ <= 0) text(out_, (kLeft + kRight) / 2, (plot_top_ + plot_bottom_) / 2, "middle", "label", "none");
    for (int i = 0; i < panel_.bars; ++i) {
      const double x = x_of(edge(i));
      const double width = std::max(0.5, x_of(edge(i + 1)) - x - 0.8);
      double below = 0;
      for (const Bars& bars : panel_.series) {
        const double count = bars.histogram->count_between(edge(i), edge(i + 1));
        if (count < 0.5) continue;
        using Nanoseconds = std::chrono::duration<double, std::nano>;
        out_ << "  <rect x=\"" << px(x + 0.4) << "\" y=\"" << px(y_of(below + count)) << "\" width=\"" << px(width)
             << "\" height=\"" << px(y_of(below) - y_of(below + count)) << "\" fill=\"" << bars.color << "\"><title>"
             << common::short_duration(Nanoseconds(edge(i))) << " .. "
             << common::short_duration(Nanoseconds(edge(i + 1))) << ": " << common::with_thousands(std::llround(count))
             << ' ' << escaped(bars.name) << "</title></rect>\n";
        below += count;
      }
    }
  }

  /// Each label has a row of its own, left of its line, the leftmost mark in the lowest row: so no line can run
  /// through a label.
  void draw_marks() {
    std::vector<Mark> marks = panel_.marks;
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.at < b.at; });
    double y = plot_top_;
    for (const Mark& mark : marks) {
      y -= kMarkRowHeight;
      const auto at = static_cast<double>(mark.at.count());
      const double x = x_of(at);
      line(out_, x, y + 2, x, plot_bottom_, mark.is_limit ? "limit" : "mark");
      const std::string label =
          mark.label + " " + common::short_duration(mark.at) + (at > panel_.to ? " (beyond)" : "");
      const bool has_room = x - kLeft > 60;
      text(out_, has_room ? x - 6 : x + 6, y + 12, has_room ? "end" : "start", mark.is_limit ? "limit-label" : "label",
           label);
    }
  }

  std::ostream& out_;
  const Panel& panel_;
  double title_y_;
  double plot_top_;
  double plot_bottom_;
  double highest_ = 0;  // bar, in counts
};

}  // namespace

void write(std::ostream& out, const std::string& title, const std::string& subtitle, const std::vector<Panel>& panels) {
  double height = kHeaderHeight;
  for (const Panel& panel : panels) height += PanelDrawing::height(panel);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << px(kWidth) << ' ' << px(height) << "\" width=\""
      << px(kWidth) << "\" height=\"" << px(height) << "\" role=\"img\">\n"
      << "  <title>" << escaped(title) << "</title>\n"
      << "  <style>" << kStyle
      << "  </style>\n"
      // A background of its own: viewers with a dark page would otherwise show dark text on dark.
      << "  <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n";
  text(out, kLeft, 38, "start", "title", title);
  text(out, kLeft, 62, "start", "subtitle", subtitle);
  double top = kHeaderHeight;
  for (const Panel& panel : panels) {
    PanelDrawing(out, panel, top).draw();
    top += PanelDrawing::height(panel);
  }
  out << "</svg>\n";
}

}  // namespace rpc::svg
