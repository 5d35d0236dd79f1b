#pragma once

#include <functional>

#include "tests/host/stand_in/trantor/net/EventLoop.h"

namespace trantor {

class Channel : public stand_in::Channel {
 public:
  Channel(EventLoop* loop, int fd) : stand_in::Channel(loop, fd), owner_(loop) {}
  void setReadCallback(const std::function<void()>& callback) { set_callback(callback); }
  EventLoop* ownerLoop() { return owner_; }

 private:
  EventLoop* const owner_;
};

}  // namespace trantor
