#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/format.h"

namespace common {

/// A report of sections. Each line has a name, a value and an optional note.
class Report {
 public:
  explicit Report(std::string title) : text_(std::move(title) + '\n') {}

  void section(const std::string& title) { text_ += '\n' + title + '\n'; }

  /// `value` is a count, a duration, or a text with its unit.
  template <class Value>
  void line(const std::string& name, const Value& value, std::string_view note = "") {
    // The blank first row sets the widths, so that the values of all lines are aligned. It is then cut off.
    const std::string row = columns({{std::string(kName, ' '), std::string(kValue, ' ')}, {name, text_of(value)}});
    text_ += row.substr(row.find('\n') + 1);
    if (!note.empty()) text_.replace(text_.size() - 1, 1, "  " + std::string(note) + '\n');
  }

  void table(const std::vector<std::vector<std::string>>& lines) { text_ += columns(lines); }

  const std::string& text() const { return text_; }

 private:
  static constexpr std::size_t kName = 22;
  static constexpr std::size_t kValue = 12;

  std::string text_;
};

}  // namespace common
