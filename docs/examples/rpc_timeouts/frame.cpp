#include "frame.h"

#include <stdexcept>
#include <string>

namespace rpc {
namespace {

void append_big_endian(std::vector<char>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

std::uint64_t read_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

void append_frame(std::vector<char>& out, std::uint64_t id, std::string_view body) {
  append_big_endian(out, kIdBytes + body.size(), kLengthBytes);
  append_big_endian(out, id, kIdBytes);
  out.insert(out.end(), body.begin(), body.end());
}

std::optional<Frame> parse_frame(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  const std::uint64_t length = read_big_endian(bytes.substr(0, kLengthBytes));
  if (length < kIdBytes || length > kMaxFrameBytes - kLengthBytes) {
    throw std::runtime_error("received a frame of " + std::to_string(length) + " bytes (expected: " +
                             std::to_string(kIdBytes) + " .. " + std::to_string(kMaxFrameBytes - kLengthBytes) + ")");
  }
  const auto size = static_cast<std::size_t>(kLengthBytes + length);
  if (bytes.size() < size) return std::nullopt;
  return Frame{read_big_endian(bytes.substr(kLengthBytes, kIdBytes)),
               bytes.substr(kLengthBytes + kIdBytes, size - kLengthBytes - kIdBytes), size};
}

}  // namespace rpc
