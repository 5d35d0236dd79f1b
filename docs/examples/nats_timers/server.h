#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

namespace nats {

/// Runs a nats-server on a free port of 127.0.0.1 as long as the object lives.
class Server {
 public:
  /// Starts the server and waits until it listens. Throws std::runtime_error if that fails or takes 20 s, for example
  /// because nats-server is not installed.
  Server() {
    std::string folder = (std::filesystem::temp_directory_path() / "nats-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    folder_ = folder;
    const std::string log = folder + "/log";
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);  // Ctrl-C is for the program alone
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder.c_str(), "-l",
             log.c_str(), nullptr);
      _exit(127);
    }
    if (process_ < 0) {
      std::filesystem::remove_all(folder_);
      throw std::runtime_error("cannot make a process");
    }
    for (int i = 0; i < 2000 && url_.empty() && waitpid(process_, nullptr, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      url_ = url_in_ports_file();
    }
    if (!url_.empty()) return;
    end();
    throw std::runtime_error("cannot start nats-server: please install it");
  }
  ~Server() { end(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& url() const { return url_; }

  /// Stops the process, so that the server answers nothing until resume().
  void pause() { kill(process_, SIGSTOP); }
  void resume() { kill(process_, SIGCONT); }

 private:
  std::string url_in_ports_file() const {
    std::ifstream file(folder_ / ("nats-server_" + std::to_string(process_) + ".ports"));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t begin = text.find("nats://");
    return begin == text.npos ? "" : text.substr(begin, text.find('"', begin) - begin);
  }

  void end() {
    if (waitpid(process_, nullptr, WNOHANG) == 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
  pid_t process_ = 0;
  std::string url_;
};

}  // namespace nats
