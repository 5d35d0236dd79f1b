#include "report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/format.h"

namespace idle {
namespace {

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

class Lines {
 public:
  explicit Lines(std::ostream& out) : out_(out) { out_ << std::fixed << std::setprecision(1); }

  template <class Value>
  void line(std::string_view label, const Value& value, std::string_view note = "") {
    out_ << "  " << std::left << std::setw(20) << label << std::right << std::setw(10);
    if constexpr (std::is_integral_v<Value>) {
      out_ << common::with_thousands(static_cast<std::int64_t>(value));
    } else {
      out_ << value;
    }
    if (!note.empty()) out_ << "  " << note;
    out_ << '\n';
  }

 private:
  std::ostream& out_;
};

}  // namespace

bool write_report(std::ostream& out, const Options& options, const ServerFigures& server,
                  std::chrono::nanoseconds longest_silence) {
  std::vector<std::chrono::nanoseconds> idle = server.idle_at_close;
  std::sort(idle.begin(), idle.end());
  const auto early = std::lower_bound(idle.begin(), idle.end(), options.limit) - idle.begin();
  // A client that is held up for so long falls silent itself, and its connections are rightly closed.
  const bool client_held_up = longest_silence >= options.limit;
  const std::size_t active_closed = client_held_up ? 0 : server.active_closed;

  Lines lines(out);
  out << "Connections\n";
  lines.line("accepted", server.accepted);
  lines.line("closed, idle", idle.size());
  lines.line("gone", server.gone, "closed by the client");
  lines.line("open at the end", server.open_at_end);
  lines.line("active closed", active_closed, "must be 0");
  lines.line("overdue", server.overdue, "idle for too long and still open; must be 0");
  if (client_held_up) {
    lines.line("held up", server.active_closed, "active, closed because the client itself was silent for too long");
  }

  out << "\nIdle when closed, in ms\n";
  lines.line("limit", milliseconds(options.limit));
  if (!idle.empty()) {
    lines.line("min", milliseconds(idle.front()));
    lines.line("median", milliseconds(idle[idle.size() / 2]));
    lines.line("max", milliseconds(idle.back()));
  }
  lines.line("early", early, "below the limit; must be 0");

  out << "\nLoop\n";
  lines.line("wake-ups", server.wakeups);
  lines.line("bytes received", server.bytes, "each postpones a timeout");
  return early == 0 && active_closed == 0 && server.overdue == 0;
}

}  // namespace idle
