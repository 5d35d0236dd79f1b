#pragma once

// The wire format, the same in both directions: 4 bytes length of what follows, 8 bytes request id (both big-endian),
// then the body.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rpc {

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kIdBytes = 8;
inline constexpr std::size_t kMaxFrameBytes = 16 * 1024;  // length field included

struct Frame {
  std::uint64_t id;
  std::string_view body;
  std::size_t size;  // on the wire
};

/// Precondition: the frame fits kMaxFrameBytes.
void append_frame(std::vector<char>& out, std::uint64_t id, std::string_view body);

/// The frame at the beginning of `bytes`, or nothing as long as it is incomplete.
/// Throws std::runtime_error for a length that no frame has.
std::optional<Frame> parse_frame(std::string_view bytes);

}  // namespace rpc
