#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

/// A JSON object that is written member by member, on one line.
class JsonObject {
 public:
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::int64_t value) { add_raw(key, std::to_string(value)); }
  void add(std::string_view key, std::uint64_t value) { add_raw(key, std::to_string(value)); }
  void add(std::string_view key, int value) { add_raw(key, std::to_string(value)); }
  /// With three decimals; nothing: null.
  void add(std::string_view key, std::optional<double> value);
  void add(std::string_view key, double value) { add(key, std::optional(value)); }
  void add(std::string_view key, const std::vector<double>& values);

  std::string text() const { return "{" + members_ + "}"; }

 private:
  void add_raw(std::string_view key, std::string_view value);

  std::string members_;
};

}  // namespace perf
