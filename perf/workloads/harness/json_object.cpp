#include "harness/json_object.h"

#include <cstdio>

#include "harness/format.h"

namespace perf {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

void JsonObject::add(std::string_view key, std::string_view value) { add_raw(key, quoted(value)); }

void JsonObject::add(std::string_view key, std::optional<double> value) {
  add_raw(key, value ? fixed(*value, 3) : "null");
}

void JsonObject::add(std::string_view key, const std::vector<double>& values) {
  std::string list;
  for (const double value : values) list += (list.empty() ? "" : ", ") + fixed(value, 3);
  add_raw(key, "[" + list + "]");
}

void JsonObject::add_raw(std::string_view key, std::string_view value) {
  if (!members_.empty()) members_ += ", ";
  members_ += quoted(key);
  members_ += ": ";
  members_ += value;
}

}  // namespace perf
