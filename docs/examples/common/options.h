#pragma once

// The options of an example. An invalid value gives one line that names the value and the valid range.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/example.h"

namespace CLI {
class App;
}

namespace common {

/// The valid values of a number: min .. max, and only odd ones if `odd` is true.
struct Range {
  double min;
  double max;
  bool odd = false;
};

/// Thrown after --help has been printed.
struct HelpGiven {};

/// Declares the options of an example, then parses its arguments into their targets. The targets must outlive it.
class Options {
 public:
  Options(int argc, char** argv, const About& about);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// Declares a number. `target` holds the default: any number, or a std::chrono::duration in the unit of the option.
  /// Integral types and durations take no fractions.
  template <class Target>
  void number(const std::string& name, Target& target, const Range& range, const std::string& help) {
    if constexpr (std::is_arithmetic_v<Target>) {
      add_number(name, static_cast<double>(target), !std::is_floating_point_v<Target>, range, help,
                 [&target](double value) { target = static_cast<Target>(value); });
    } else {
      add_number(name, static_cast<double>(target.count()), true, range, help,
                 [&target](double value) { target = Target(static_cast<typename Target::rep>(value)); });
    }
  }
  /// Declares a percentage, which may be given without the sign. `target` is 0 .. 1 and holds the default.
  void percentage(const std::string& name, double& target, const std::string& help);
  /// Declares an option with a text. `take` throws or calls refuse() if the text is invalid.
  void text(const std::string& name, const std::string& type, const std::string& preset, const std::string& help,
            std::function<void(const std::string&)> take);
  /// Declares an option without a value, which sets `target`.
  void flag(const std::string& name, bool& target, const std::string& help);

  /// Parses the arguments. Call it after all declarations. Throws BadArgument and HelpGiven.
  void parse();
  /// Returns whether the option was among the arguments.
  bool given(const std::string& name) const;

  /// Throws BadArgument with the name of the option, the invalid value and the valid range.
  [[noreturn]] static void refuse(const std::string& name, std::string_view value, const std::string& expected);

 private:
  void add_number(const std::string& name, double preset, bool whole, const Range& range, const std::string& help,
                  std::function<void(double)> store);

  const int argc_;
  char** const argv_;
  const std::unique_ptr<CLI::App> app_;
  bool quiet_ = false;
};

}  // namespace common
