"""Compiles programs that each have one mistake, and checks that the compiler reports it with few messages. The mistake
may be a library that is too old: then this script writes a version header that the compiler finds before the system's.

usage: misuse.py SOURCE_ROOT COMPILER...
"""

import os
import re
import sys
import tempfile

import tree

TIMER = "hwt::HashedWheelTimer timer;"
KEY = "struct Key { int id; };"
HASH = "template <> struct std::hash<Key> { std::size_t operator()(const Key&) const { return 0; } };"
EQUAL = "bool operator==(Key, Key) { return true; }"
KEYED = f"int main() {{ {TIMER} hwt::KeyedTimer<Key, int> keyed(timer, [](const Key&, int&) {{}}); }}"
MAIN = "int main() {}"

BOOST = ("boost_asio", "boost/version.hpp", '#define BOOST_VERSION {}\n#define BOOST_LIB_VERSION "{}"\n')
ASIO = ("asio", "asio/version.hpp", "#define ASIO_VERSION {}\n")
# The library, its version, a part of the only error. None: the version is the oldest that is not refused.
VERSIONS = [
    (BOOST, (107400, "1_74"), "Boost: 1_74 (expected: 1_81 or later; Debian 12: libboost1.81-dev)"),
    (BOOST, (108000, "1_80"), "Boost: 1_80 (expected: 1_81 or later; Debian 12: libboost1.81-dev)"),
    (ASIO, (101801,), "ASIO_VERSION: 101801 (expected: 102201 or later, which is 1.22.1)"),
    (ASIO, (102200,), "ASIO_VERSION: 102200 (expected: 102201 or later, which is 1.22.1)"),
    (BOOST, (108100, "1_81"), None),
    (ASIO, (102201,), None),
]

HIDES = "move bind_executor() or bind_cancellation_slot() inside of cancel_after()"
HIDDEN = f"""#if __has_include(<asio/associator.hpp>)
#include <asio.hpp>
#include "hashed_wheel_timer/asio.h"
void f(asio::steady_timer& wait, hwt::Timer& timer, asio::error_code& error) {{
  wait.async_wait(asio::bind_executor(wait.get_executor(), asio::redirect_error(
      hwt::net::cancel_after(timer, std::chrono::seconds(1), [] {{}}), error)));
}}
#else
static_assert(false, "{HIDES}");
#endif"""
# Name, options, headers of the library, the rest of the program, an expected text, the limit of errors and warnings.
PROGRAMS = [
    *[(f"{header} below C++20", ["-std=c++17"], [header], MAIN, "hashed_wheel_timer needs C++20", 1)
      for header in ["hashed_wheel_timer", "keyed_timer", "loop_timer", "coroutine", "delay", "histogram", "schedule"]],
    ("a key without a hash", [], ["hashed_wheel_timer", "keyed_timer"], f"{KEY} {EQUAL} {KEYED}", "has no hash", 3),
    ("a key without ==", [], ["hashed_wheel_timer", "keyed_timer"], f"{KEY} {HASH} {KEYED}", "has no operator==", 1),
    ("a StopAfter without a name", [], ["hashed_wheel_timer", "stop_after"],
     f"int main() {{ {TIMER} hwt::StopAfter(timer, std::chrono::seconds(1)); }}", "a StopAfter without a name", 1),
    *[(f"a Schedule that is lost by {call}", [], ["hashed_wheel_timer", "schedule"],
       f"int main() {{ auto plan = hwt::Schedule::once(std::chrono::seconds(1)); {call}; }}", "nodiscard", 1)
      for call in ["plan.limit(5)", "std::move(plan).limit(5)", "plan.jitter([](auto wait) { return wait; })",
                   "std::move(plan).jitter([](auto wait) { return wait; })"]],
    ("a bound executor that a limit cannot see", [], [], HIDDEN, HIDES, 1),
    ("no mistake", [], ["hashed_wheel_timer", "keyed_timer"], f"{KEY} {HASH} {EQUAL} {KEYED}", "", 0),
]


def said_about(here, options, headers, text):
    """Returns the messages of the compiler, and its errors and warnings."""
    source = "".join(f'#include "hashed_wheel_timer/{header}.h"\n' for header in headers) + text + "\n"
    # The last -std option has priority.
    options = ["-std=c++20", *options, "-Wall", f"-I{here.root}", "-fsyntax-only"]
    _, messages = tree.compiled(sys.argv[2:], options, source)
    return messages, re.findall(r"^.*?: (?:fatal )?(?:error|warning): .*", messages, re.M)


def wrongly_told(here):
    for name, options, headers, text, expected, most in PROGRAMS:
        messages, said = said_about(here, options, headers, text)
        if expected not in messages or len(said) > most or (most and not said):
            yield (f"{name}: {len(said)} errors and warnings (expected: {min(most, 1)} .. {most}, "
                   f"with \"{expected}\")\n" + "\n".join(said))
    for (header, version_header, text), version, expected in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, version_header)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.format(*version))
            _, said = said_about(here, [f"-I{folder}"], [header], "")
        refusals = [line for line in said if " or later" in line]
        wrong = bool(refusals) if expected is None else len(said) != 1 or expected not in said[0]
        if wrong:
            yield f"{header}: {version}: {len(said)} errors: {said[:3]} (expected: {expected})"


if __name__ == "__main__":
    tree.main(wrongly_told, f"{len(PROGRAMS) + len(VERSIONS)} programs compiled")
