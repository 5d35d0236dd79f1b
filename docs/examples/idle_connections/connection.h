#pragma once

#include <chrono>
#include <utility>

#include "descriptor.h"
#include "hashed_wheel_timer/passive_wheel.h"

namespace idle {

class Server;

/// What the client puts into each byte it sends.
enum class Kind : char { Quiet = 'q', Active = 'a' };

/// A connection of the server. It is its own timeout: no map from timeouts to connections, nothing allocated for it.
class Connection : public hwt::WheelNode {
 public:
  Connection(Server& server, Descriptor socket, std::chrono::steady_clock::time_point now)
      : server_(server), socket_(std::move(socket)), last_heard_(now) {}

  enum class Heard { Nothing, Something, End };
  /// Takes what has arrived.
  Heard listen();

  int fd() const { return socket_.get(); }
  Kind kind() const { return kind_; }
  std::chrono::steady_clock::time_point last_heard() const { return last_heard_; }

 private:
  void on_timeout() override;

  Server& server_;
  Descriptor socket_;
  Kind kind_ = Kind::Quiet;
  std::chrono::steady_clock::time_point last_heard_;
};

}  // namespace idle
