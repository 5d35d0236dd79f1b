#include "common/options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <utility>

#include "common/format.h"

namespace common {
namespace {

std::string plain(double value) {
  if (value == std::floor(value)) return text_of(static_cast<std::int64_t>(value));
  return formatted("%g", value);
}

}  // namespace

Options::Options(int argc, char** argv, const About& about)
    : argc_(argc), argv_(argv), app_(std::make_unique<CLI::App>(about.text, about.name)) {
  app_->get_formatter()->column_width(34);
  app_->footer(
      std::string("Ctrl-C and SIGTERM end the run early; a second one ends it at once.\n") +
      "Exit status: 0, also when interrupted; 2 for an invalid argument; 1 for an error while running, and if\n" +
      about.failure + ".");
}

Options::~Options() = default;

// Replaces CLI11's conversions and checks: they round, accept NaN, and do not always name value and range.
void Options::add_number(const std::string& name, double preset, bool whole, const Range& range,
                         const std::string& help, std::function<void(double)> store) {
  const std::string bounds = plain(range.min) + " .. " + plain(range.max);
  text(name, "NUMBER", plain(preset), help + " (" + bounds + ")", [=](const std::string& text) {
    const std::optional<double> value = parse_number(text);
    if (!value || *value < range.min || *value > range.max || (whole && *value != std::floor(*value)) ||
        (range.odd && std::fmod(*value, 2) != 1)) {
      refuse(name, text, (range.odd ? "an odd number " : whole ? "a whole number " : "a number ") + bounds);
    }
    store(*value);
  });
}

void Options::percentage(const std::string& name, double& target, const std::string& help) {
  text(name, "PERCENT", plain(target * 100) + "%", help + " (0% .. 100%)", [&target, name](const std::string& text) {
    const bool sign = !text.empty() && text.back() == '%';
    const std::optional<double> value = parse_number(std::string_view(text).substr(0, text.size() - (sign ? 1 : 0)));
    if (!value || *value < 0 || *value > 100) refuse(name, text, "a percentage 0% .. 100%");
    target = *value / 100;
  });
}

void Options::text(const std::string& name, const std::string& type, const std::string& preset, const std::string& help,
                   std::function<void(const std::string&)> take) {
  app_->add_option_function<std::string>(name, take, help)->type_name(type)->default_str(preset);
}

void Options::flag(const std::string& name, bool& target, const std::string& help) {
  app_->add_flag(name, target, help);
}

void Options::parse() {
  flag("--quiet", quiet_, "No line of progress on the terminal");
  try {
    app_->parse(argc_, argv_);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw BadArgument(error.what());
    print(app_->help());
    throw HelpGiven();
  }
  if (quiet_) hide_progress_for_good();
}

bool Options::given(const std::string& name) const { return app_->count(name) > 0; }

void Options::refuse(const std::string& name, std::string_view value, const std::string& expected) {
  throw BadArgument(name + ": \"" + one_line(value, 40) + "\" (expected: " + expected + ")");
}

}  // namespace common
