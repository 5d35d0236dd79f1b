"""Compiles programs that each have one mistake, and checks that the compiler reports it with few messages.

usage: misuse.py SOURCE_ROOT COMPILER...
"""

import re
import sys

import tree

TIMER = "hwt::HashedWheelTimer timer;"
KEY = "struct Key { int id; };"
HASH = "template <> struct std::hash<Key> { std::size_t operator()(const Key&) const { return 0; } };"
EQUAL = "bool operator==(Key, Key) { return true; }"
KEYED = f"int main() {{ {TIMER} hwt::KeyedTimer<Key, int> keyed(timer, [](const Key&, int&) {{}}); }}"
MAIN = "int main() {}"

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
    ("no mistake", [], ["hashed_wheel_timer", "keyed_timer"], f"{KEY} {HASH} {EQUAL} {KEYED}", "", 0),
]


def wrongly_told(here):
    for name, options, headers, text, expected, most in PROGRAMS:
        source = "".join(f'#include "hashed_wheel_timer/{header}.h"\n' for header in headers) + text + "\n"
        # The last -std option has priority.
        options = ["-std=c++20", *options, "-Wall", f"-I{here.root}", "-fsyntax-only"]
        _, messages = tree.compiled(sys.argv[2:], options, source)
        said = re.findall(r"^.*?: (?:fatal )?(?:error|warning): .*", messages, re.M)
        if expected not in messages or len(said) > most or (most and not said):
            yield (f"{name}: {len(said)} errors and warnings (expected: {min(most, 1)} .. {most}, "
                   f"with \"{expected}\")\n" + "\n".join(said))


if __name__ == "__main__":
    tree.main(wrongly_told, f"{len(PROGRAMS)} programs compiled")
