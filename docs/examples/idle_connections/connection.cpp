#include "connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "server.h"

namespace idle {

Connection::Heard Connection::listen() {
  std::array<char, 256> bytes;
  Heard heard = Heard::Nothing;
  for (;;) {
    const ssize_t count = recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) {
      heard = Heard::Something;
      last_heard_ = server_.now_;
      kind_ = static_cast<Kind>(bytes[static_cast<std::size_t>(count) - 1]);
      server_.figures_.bytes += count;
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return heard;
    } else {
      return Heard::End;
    }
  }
}

void Connection::on_timeout() {
  // The last look: when this thread was held up, bytes may be waiting of which it has not heard yet.
  if (listen() == Heard::Something) {
    server_.wheel_.schedule(*this, server_.options_.limit);  // not postpone(): it is out of the wheel by now
  } else {
    server_.close_idle(*this);  // which destroys it
  }
}

}  // namespace idle
