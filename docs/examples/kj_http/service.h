#pragma once

#include <kj/compat/http.h>

#include <cstdint>

namespace kj_http {

/// Answers each request with 204 No Content.
class Service final : public kj::HttpService {
 public:
  explicit Service(const kj::HttpHeaderTable& table) : table_(table) {}

  kj::Promise<void> request(kj::HttpMethod, kj::StringPtr, const kj::HttpHeaders&, kj::AsyncInputStream&,
                            Response& response) override {
    response.send(204, "No Content", kj::HttpHeaders(table_), std::uint64_t{0});
    return kj::READY_NOW;
  }

 private:
  const kj::HttpHeaderTable& table_;
};

}  // namespace kj_http
