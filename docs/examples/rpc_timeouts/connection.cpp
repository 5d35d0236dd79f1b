#include "connection.h"

#include <cstring>
#include <utility>

namespace rpc {

std::string explain(const std::error_code& error) {
  std::string text = error.message();
  if (error == asio::error::no_descriptors) text += " (lower --connections or raise the limit: ulimit -n)";
  return text;
}

Connection::Connection(asio::ip::tcp::socket socket, OnFrame on_frame, OnError on_error)
    : socket_(std::move(socket)), on_frame_(std::move(on_frame)), on_error_(std::move(on_error)) {
  socket_.set_option(asio::ip::tcp::no_delay(true));
}

void Connection::send(std::uint64_t id, std::string_view body) {
  append_frame(waiting_, id, body);
  if (write_pending_ || failed_) return;
  write_pending_ = true;
  // Not written at once: all that the current handler sends goes out in one system call.
  asio::post(socket_.get_executor(), [this] { write(); });
}

void Connection::write() {
  if (failed_) return;
  being_written_.swap(waiting_);
  asio::async_write(socket_, asio::buffer(being_written_), [this](const std::error_code& error, std::size_t) {
    if (error) return fail(error);
    being_written_.clear();
    write_pending_ = !waiting_.empty();
    if (write_pending_) write();
  });
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(received_.data() + received_bytes_, received_.size() - received_bytes_),
                          [this](const std::error_code& error, std::size_t bytes) {
                            if (error) return fail(error);
                            received_bytes_ += bytes;
                            take_frames();
                            if (!failed_) read();
                          });
}

void Connection::take_frames() {
  std::string_view rest(received_.data(), received_bytes_);
  while (const std::optional<Frame> frame = parse_frame(rest)) {
    on_frame_(*frame);
    rest.remove_prefix(frame->size);
  }
  std::memmove(received_.data(), rest.data(), rest.size());
  received_bytes_ = rest.size();
}

void Connection::fail(const std::error_code& error) {
  if (std::exchange(failed_, true)) return;
  on_error_(error);
}

}  // namespace rpc
