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

struct Range {
  double min;
  double max;
  bool odd = false;
};

/// Thrown after --help has been printed.
struct HelpGiven {};

class Options {
 public:
  Options(int argc, char** argv, const About& about);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// `target` holds the default: any number, or a std::chrono::duration in the unit of the option. Integral types take
  /// no fractions.
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
  /// `target` is 0 .. 1. The option is a percentage with or without the sign.
  void percentage(const std::string& name, double& target, const std::string& help);
  /// `take` throws or calls refuse() if the text is invalid.
  void text(const std::string& name, const std::string& type, const std::string& preset, const std::string& help,
            std::function<void(const std::string&)> take);
  void flag(const std::string& name, bool& target, const std::string& help);

  /// Call it after all declarations. Throws BadArgument and HelpGiven.
  void parse();
  bool given(const std::string& name) const;

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
