"""Writes the library as two files, hashed_wheel_timer.h and hashed_wheel_timer.cpp, which a program compiles with its own
sources. They have all that hashed_wheel_timer/files.txt lists, and moodycamel's queue. They lack what needs other
libraries or is one of its own: Asio, Prometheus, calendars, and the C interface.

usage: amalgamate.py SOURCE_ROOT FOLDER

Takes the queue's header from where the compiler ($CXX, or c++) finds it.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys

LIBRARY = "hashed_wheel_timer"
INCLUDE = re.compile(r'#\s*include\s*"(' + LIBRARY + r'/[^"]+)"')
QUEUE = re.compile(r"^[^\n]*\n#if __has_include\(\"concurrentqueue\.h\"\).*?^#endif\n", re.M | re.S)
# In the order of hand_over_queue.h.
QUEUE_PLACES = ["concurrentqueue.h", "moodycamel/concurrentqueue.h", "concurrentqueue/moodycamel/concurrentqueue.h",
                "concurrentqueue/concurrentqueue.h"]

# Compilers do not warn of the queue's code, as with the -isystem of the build. GCC needs each warning by name.
NO_WARNINGS = """#ifdef __GNUC__
#pragma GCC diagnostic push
#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#endif
{}
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
"""

# A file that is not there ends the compilation; after an #error, compilers go on and report more errors.
NEEDS_EXCEPTIONS = """
#ifndef __cpp_exceptions
#include <hashed_wheel_timer.cpp needs exceptions: compile it with -fexceptions; only its header does without>
#endif
"""

ABOUT = """// hashed_wheel_timer {version}: timers for request timeouts. {what}
// Made by `./run amalgamate` from the sources of the project. Change those, not this file.
// SPDX-License-Identifier: {license}
"""


def fail(text):
    sys.exit(f"amalgamate.py: {text}")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def queue_header():
    """Returns the text of concurrentqueue.h."""
    try:
        compiler = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    except ValueError as error:
        fail(f"CXX={os.environ['CXX']}: {error}")
    for place in QUEUE_PLACES:
        found = subprocess.run([*compiler, "-std=c++20", "-x", "c++", "-M", "-"], input=f"#include <{place}>\n",
                               capture_output=True, text=True)
        words = re.split(r"(?<!\\)\s+", found.stdout.replace("\\\n", " "))  # a blank in a path is escaped
        paths = [path.replace("\\ ", " ") for path in words if f"/{path}".endswith(f"/{place}")]
        if found.returncode == 0 and paths:
            return read(paths[0])
    return fail("no concurrentqueue.h (expected: libconcurrentqueue-dev, or an include path of $CXX)")


class Writer:
    """Puts files one after another, each in the place of its first include."""

    def __init__(self, root, queue):
        self.root, self.queue = root, queue
        self.written = set()
        self.within_condition = {}  # path -> where it was first included

    def text_of(self, path, condition=False):
        """Returns the text of a file and of those that it includes. Returns "" for one that was written before."""
        if path in self.written:
            return ""
        self.written.add(path)
        text = read(self.root, path)
        if QUEUE.search(text):
            text = QUEUE.sub(lambda _: self.queue, text)
        lines, depth = [f"\n// {path}\n"], int(condition)
        for line in text.splitlines():
            directive = line.replace(" ", "")
            depth += directive.startswith("#if") - directive.startswith("#endif")
            include = INCLUDE.match(line)
            if include:
                other = include[1]
                # A file that is first included under a condition would be missing wherever the condition is false.
                if depth and other not in self.written:
                    self.within_condition[other] = path
                elif not depth and other in self.within_condition:
                    fail(f"{path} includes {other}, which {self.within_condition[other]} includes under a condition")
                lines.append(self.text_of(other, depth > 0))
            elif directive != "#pragmaonce" and "SPDX-License-Identifier" not in line:
                lines.append(line + "\n")
        return "".join(lines)


def write(path, text):
    """Writes a file, or leaves it as it was if that fails."""
    part = f"{path}.{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            os.remove(part)
    print(path)


def main(root, folder):
    sources = os.path.realpath(os.path.join(root, LIBRARY))
    if os.path.commonpath([sources, os.path.realpath(folder)]) == sources:
        fail(f"{folder}: is among the sources, which the two files could overwrite (expected: another folder)")
    files = read(root, LIBRARY, "files.txt").split()
    project = read(root, "meson.build")
    about = {key: re.search(rf"{key}: '(.*?)'", project)[1] for key in ("version", "license")}
    writer = Writer(root, NO_WARNINGS.format(re.sub(r"(?m)^#pragma once\n", "", queue_header())))
    header = "".join(writer.text_of(f"{LIBRARY}/{file}") for file in files if file.endswith(".h"))
    source = "".join(writer.text_of(f"{LIBRARY}/{file}") for file in files if file.endswith(".cpp"))
    if "moodycamel::ConcurrentQueue" not in source or writer.queue not in source:
        fail("the queue is missing")
    os.makedirs(folder, exist_ok=True)
    guard = f"{LIBRARY.upper()}_H"  # not `#pragma once`, because a program may see two copies
    for ending, what, text in [
        (".h", f"Compile {LIBRARY}.cpp too, with -std=c++20.",
         f"\n#ifndef {guard}\n#define {guard}\n{header}\n#endif  // {guard}\n"),
        (".cpp", "It contains moodycamel's ConcurrentQueue, with its license.",
         f'{NEEDS_EXCEPTIONS}\n#include "{LIBRARY}.h"\n{source}'),
    ]:
        write(os.path.join(folder, LIBRARY + ending), ABOUT.format(what=what, **about) + text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.stdout.reconfigure(errors="backslashreplace")  # the folder's name may be no text
    try:
        main(*sys.argv[1:])
    except OSError as error:
        fail(f"{error.filename or sys.argv[2]}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)
