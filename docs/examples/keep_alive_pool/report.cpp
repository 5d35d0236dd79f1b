#include "report.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "common/format.h"

namespace pool {
namespace {

using common::fixed;
using common::short_duration;
using common::with_thousands;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

bool as_promised(const Results& results) {
  const bool simulated = results.simulated != std::chrono::nanoseconds::zero();
  const bool exact = results.late == 0 && results.overdue == 0 && results.wrong == 0;
  return results.early == 0 && results.lost == 0 && (exact || !simulated);
}

void write_report(std::ostream& out, const std::string& title, const Times& times, const Results& results) {
  const auto line = [&out](const char* name, const std::string& text) {
    out << "  " << std::left << std::setw(12) << name << text << '\n';
  };
  const auto count = static_cast<double>(results.heartbeats);
  out << title << '\n';
  line("pool", common::counted(results.connections, "connection") + ", heartbeat every " +
                   short_duration(times.heartbeat) + ", expiry after " + short_duration(times.expiry) + ", tick " +
                   short_duration(times.tick));
  line("time", (results.simulated.count() != 0 ? short_duration(results.simulated) + " in " : std::string()) +
                   short_duration(results.wall));
  line("heartbeats",
       with_thousands(results.heartbeats) +
           (results.heartbeats == 0
                ? std::string()
                : ": " + with_thousands(static_cast<std::int64_t>(count / std::max(seconds(results.wall), 1e-9))) +
                      " per second, " + fixed(static_cast<double>(results.cpu.count()) / count, 0) +
                      " ns of processor time each, all included"));
  line("expired", with_thousands(results.expired) +
                      (results.expired == 0 ? std::string()
                                            : ", " + fixed(seconds(results.earliest), 6) + " to " +
                                                  fixed(seconds(results.latest), 6) + " s after the last heartbeat"));
  line("connected", with_thousands(results.connected));
  line("early", with_thousands(results.early));
  // On the real clock a thread has to be woken as well.
  const bool excused = results.simulated.count() == 0;
  const auto lateness = [&](const char* name, std::int64_t value) {
    line(name, with_thousands(value) + (excused && value != 0 ? ", for want of processor time" : ""));
  };
  lateness("late", results.late);
  lateness("overdue", results.overdue);
  lateness("wrong", results.wrong);
  line("lost", with_thousands(results.lost));
}

}  // namespace pool
