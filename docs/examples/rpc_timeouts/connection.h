#pragma once

#include "common/common.h"
#include "common/standalone_asio.h"

namespace rpc {

/// A request or an answer. It is sent as it lies in memory, because both ends are in one process.
struct Frame {
  std::uint64_t id;
  std::array<char, 64> body;
};

/// Describes an error, and its remedy if there is one.
inline std::string explain(const std::error_code& error) {
  return error.message() +
         (error == asio::error::no_descriptors ? " (lower --connections or raise the limit: ulimit -n)" : "");
}

/// One end of a TCP connection that carries frames. Only the thread that runs its io_context may use it. It must
/// outlive that run.
class Connection {
 public:
  using OnFrame = std::function<void(std::uint64_t id)>;
  using OnError = std::function<void(const std::error_code&)>;

  /// Calls `on_error` once, also if the other end closes. After that it calls neither function.
  Connection(asio::ip::tcp::socket socket, OnFrame on_frame, OnError on_error)
      : socket_(std::move(socket)), on_frame_(std::move(on_frame)), on_error_(std::move(on_error)) {
    socket_.set_option(asio::ip::tcp::no_delay(true));
  }

  void start() { read(); }

  void send(const Frame& frame) {
    if (failed_) return;
    waiting_.push_back(frame);
    if (write_pending_) return;
    write_pending_ = true;
    // Writes in a posted handler, so that all frames of the current handler go out in one system call.
    asio::post(socket_.get_executor(), [this] { write(); });
  }

 private:
  void write() {
    if (failed_) return;
    being_written_.swap(waiting_);
    asio::async_write(socket_, asio::buffer(being_written_), [this](const std::error_code& error, std::size_t) {
      if (error) return fail(error);
      being_written_.clear();
      write_pending_ = !waiting_.empty();
      if (write_pending_) write();
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(received_) + received_bytes_,
                            [this](const std::error_code& error, std::size_t bytes) {
                              if (failed_) return;
                              if (error) return fail(error);
                              received_bytes_ += bytes;
                              const std::size_t whole = received_bytes_ / sizeof(Frame);
                              for (std::size_t i = 0; i < whole; ++i) on_frame_(received_[i].id);
                              received_bytes_ %= sizeof(Frame);
                              if (received_bytes_ != 0) received_[0] = received_[whole];  // the start of the next frame
                              read();
                            });
  }

  void fail(const std::error_code& error) {
    if (!std::exchange(failed_, true)) on_error_(error);
  }

  asio::ip::tcp::socket socket_;
  const OnFrame on_frame_;
  const OnError on_error_;
  bool failed_ = false;

  std::array<Frame, 1000> received_{};
  std::size_t received_bytes_ = 0;

  // Frames stay here while the other end does not read, also those of requests that have timed out.
  std::vector<Frame> waiting_;
  std::vector<Frame> being_written_;
  bool write_pending_ = false;
};

}  // namespace rpc
