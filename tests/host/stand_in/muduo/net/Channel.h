#pragma once

#include "tests/host/stand_in/muduo/net/EventLoop.h"

namespace muduo::net {

class Channel : public stand_in::Channel {
 public:
  Channel(EventLoop* loop, int fd) : stand_in::Channel(loop, fd) {}
  void setReadCallback(std::function<void(Timestamp)> callback) {
    set_callback([callback] { callback(Timestamp::now()); });
  }
};

}  // namespace muduo::net
