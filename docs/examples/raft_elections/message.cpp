#include "message.h"

namespace raft {

std::array<char, kMessageBytes> encode(const Message& message) {
  std::array<char, kMessageBytes> bytes = {static_cast<char>(message.kind), static_cast<char>(message.from),
                                           static_cast<char>(message.granted)};
  for (std::size_t i = 0; i < 8; ++i) bytes[3 + i] = static_cast<char>(message.term >> (56 - 8 * i));
  return bytes;
}

std::optional<Message> decode(std::string_view datagram) {
  if (datagram.size() != kMessageBytes) return std::nullopt;
  const auto byte = [datagram](std::size_t at) { return static_cast<unsigned char>(datagram[at]); };
  if (byte(0) > static_cast<unsigned char>(Kind::HeartbeatReply) || byte(2) > 1) return std::nullopt;
  Message message{static_cast<Kind>(byte(0)), byte(1), 0, byte(2) == 1};
  for (std::size_t i = 0; i < 8; ++i) message.term = message.term << 8 | byte(3 + i);
  return message;
}

}  // namespace raft
