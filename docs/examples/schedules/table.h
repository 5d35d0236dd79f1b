#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace schedules {

/// Lines of cells, printed in columns: the first column to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heads) : lines_{std::move(heads)} {}
  void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace schedules
