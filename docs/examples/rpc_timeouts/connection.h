#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/standalone_asio.h"
#include "frame.h"

namespace rpc {

/// What went wrong, with the remedy where there is one.
std::string explain(const std::error_code& error);

/// One TCP connection that carries frames, on either side. Used by the thread that runs its io_context only, and must
/// outlive the running of that io_context.
class Connection {
 public:
  using OnFrame = std::function<void(const Frame&)>;
  using OnError = std::function<void(const std::error_code&)>;

  /// `on_error` is called once, also when the other side closes; nothing is read or written after that.
  Connection(asio::ip::tcp::socket socket, OnFrame on_frame, OnError on_error);

  void start() { read(); }
  void send(std::uint64_t id, std::string_view body);

 private:
  void read();
  void take_frames();
  void write();
  void fail(const std::error_code& error);

  asio::ip::tcp::socket socket_;
  OnFrame on_frame_;
  OnError on_error_;
  bool failed_ = false;

  std::array<char, 4 * kMaxFrameBytes> received_;
  std::size_t received_bytes_ = 0;

  // What is waiting is bounded by the requests in flight, so there is no limit of its own.
  std::vector<char> waiting_;
  std::vector<char> being_written_;
  bool write_pending_ = false;
};

}  // namespace rpc
