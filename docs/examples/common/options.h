#pragma once

// The options of an example: declared one by one, then parsed. Each value that is not valid ends in one line that names
// it and what is valid.

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

/// --help was asked for, and has been given.
struct HelpGiven {};

class Options {
 public:
  Options(int argc, char** argv, const About& about);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  /// `target` holds the default: any number, or a std::chrono::duration in the unit that the option counts in. A type
  /// that cannot hold fractions takes none.
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
  /// `target` is 0 .. 1, the option a percentage with or without the sign.
  void percentage(const std::string& name, double& target, const std::string& help);
  /// `take` throws or calls refuse() when it cannot take the text.
  void text(const std::string& name, const std::string& type, const std::string& preset, const std::string& help,
            std::function<void(const std::string&)> take);
  void flag(const std::string& name, bool& target, const std::string& help);

  /// After all have been declared. Throws BadArgument and HelpGiven.
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
