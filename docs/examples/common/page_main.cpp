// Adds --help, checks of the arguments and of the output to the short examples. The linker calls this function instead
// of their main(), so that their source shows only the library.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "common/page.h"

extern "C" int __real_main();                       // NOLINT: the linker's name for the main() of the example
extern "C" int __wrap_main(int argc, char** argv);  // NOLINT: the linker's name for its replacement

namespace {

int complain(const std::string& what, int status) {
  std::string line = std::string(common::page_name) + ": " + what;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  std::fprintf(stderr, "%s\n", line.c_str());
  return status;
}

int run(int argc, char** argv) {
  CLI::App app(common::page_text, common::page_name);
  app.footer("Exit status: 0; 2 for an invalid argument; 1 for an error while running.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return complain(std::string(error.what()) + "; see --help", 2);
    std::cout << app.help();
    return 0;
  }
  return __real_main();
}

}  // namespace

int __wrap_main(int argc, char** argv) try {
  const int status = run(argc, argv);
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout) {
    return complain(std::string("cannot print: ") + std::strerror(errno != 0 ? errno : EIO), 1);
  }
  return status;
} catch (const std::exception& error) {
  return complain(error.what(), 1);
}
