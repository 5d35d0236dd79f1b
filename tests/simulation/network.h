#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <vector>

#include "tests/simulation/world.h"

namespace hwt::simulation {

/// Messages on their way, in no order. Its owner decides the fate of each.
class Network {
 public:
  enum class Kind { Request, Heartbeat };
  struct Message {
    std::uint64_t number;
    int connection;
    Kind kind;
    std::uint64_t request;
  };

  std::uint64_t send(int connection, Kind kind, std::uint64_t request = 0) {
    messages_.push_back({++last_, connection, kind, request});
    return last_;
  }
  /// Removes a message. Returns false if it has been answered or lost.
  bool cancel(std::uint64_t number) {
    return std::erase_if(messages_, [=](const Message& message) { return message.number == number; }) != 0;
  }
  Message take(std::size_t index) {
    const Message message = messages_[index];
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
    return message;
  }
  void lose_all_of(int connection) {
    std::erase_if(messages_, [=](const Message& message) { return message.connection == connection; });
  }
  const std::vector<Message>& messages() const { return messages_; }

  /// Begins to make a connection. take_dial() or hang_up() ends that, or a stop of `token`, which calls `on_stop`.
  /// Precondition: `token` has not been stopped.
  void dial(int connection, std::stop_token token, std::function<void()> on_stop) {
    dials_.erase(connection);
    Dial& dial = dials_[connection];
    dial.on_stop = std::move(on_stop);
    dial.callback.emplace(std::move(token), Stopped{this, connection});
  }
  /// Removes the dial at this index, and returns its connection. The caller decides whether it is made.
  int take_dial(std::size_t index) {
    const auto dial = std::next(dials_.begin(), static_cast<std::ptrdiff_t>(index));
    const int connection = dial->first;
    dials_.erase(dial);
    return connection;
  }
  void hang_up(int connection) { dials_.erase(connection); }
  std::size_t dials() const { return dials_.size(); }

 private:
  struct Stopped {
    Network* network;
    int connection;
    void operator()() const {
      const std::function<void()> on_stop = std::move(network->dials_[connection].on_stop);
      network->dials_.erase(connection);  // this callback goes with it
      on_stop();
    }
  };
  struct Dial {
    std::function<void()> on_stop;
    std::optional<std::stop_callback<Stopped>> callback;
  };

  std::uint64_t last_ = 0;
  std::vector<Message> messages_;
  std::map<int, Dial> dials_;
};

}  // namespace hwt::simulation
