#include "table.h"

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <ostream>

namespace schedules {

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths(lines_.front().size());
  for (const auto& line : lines_) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines_) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out << "  " << (i == 0 ? std::left : std::right) << std::setw(static_cast<int>(widths[i])) << line[i];
    }
    out << '\n';
  }
  out << '\n';
}

}  // namespace schedules
