#pragma once

// What nodes say to each other: one datagram of 11 bytes, kind, sender and `granted` in one byte each, then the term,
// big-endian.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace raft {

enum class Kind : std::uint8_t { RequestVote, Vote, Heartbeat, HeartbeatReply };

struct Message {
  Kind kind;
  int from;
  std::uint64_t term;
  bool granted = false;  // of Vote and HeartbeatReply
};

inline constexpr std::size_t kMessageBytes = 11;

std::array<char, kMessageBytes> encode(const Message& message);

/// Nothing if it is not a message.
std::optional<Message> decode(std::string_view datagram);

}  // namespace raft
