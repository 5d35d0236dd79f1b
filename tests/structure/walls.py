"""Checks the rules of the source tree: the includes that each folder of hashed_wheel_timer/ may have, and the files
that may wait for an atomic. Checks that Meson and CMake build every file, that headers are installed, and that
examples are listed.

usage: walls.py SOURCE_ROOT [--self-test]

Prints file:line and the broken rule. The self-test breaks each rule.
"""

import functools
import graphlib
import os
import re

import tree

LIBRARY = "hashed_wheel_timer"
INTERNAL = LIBRARY + "/internal/"

# The installed headers with which both sides of the library speak: values, options, statistics, and the timeout and
# the task as a user sees them. Every room may include them, and they include only each other.
TERMS = {
    LIBRARY + "/" + name + ".h"
    for name in [
        "calendar", "deadline", "delay", "errors", "histogram", "leeway", "options", "origin", "stats", "timeout",
        "timeout_id", "version", "when",
        "detail/calendar_rule", "detail/export", "detail/fast_divider", "detail/intrusive_stack",
        "detail/latency_buckets", "detail/point", "detail/refuse_nan", "detail/saturating",
        "detail/scheduled", "detail/task", "detail/wheel_link",
    ]
}

# The folders of internal/ (rooms), from the lowest to the highest, and the rooms that each may include besides itself
# and TERMS. Each other installed header is in the room of the source that implements it, or in `family` if none does.
MAY_INCLUDE = {
    "wheel": set(),
    "report": set(),
    "time": {"report"},
    "platform": {"time"},
    "memory": {"wheel", "platform", "time", "report"},
    "handover": {"memory", "platform", "time"},
    "core": {"handover", "memory", "wheel", "platform", "time", "report"},
    "engine": {"core", "handover", "memory", "wheel", "platform", "time", "report"},
    "recurring": {"core", "memory", "platform", "time", "report"},
    "family": {"engine", "core", "memory", "wheel", "platform", "time", "report"},
    "c": {"engine", "core"},
}
ONLY_INSTALLED = {"c"}  # these include no private header of another room
TOP = "family"
ANY_ROOM = INTERNAL + "tuning.h"  # every room of internal/ may include it
MAX_LINES = 400

EXAMPLES = "docs/examples/"
MESON = LIBRARY + "/meson.build"
MESON_LIST = re.compile(r"(\w+) = files\(([^()]*)\)", re.S)
FILE_LIST = LIBRARY + "/files.txt"  # for both builds
CMAKE = LIBRARY + "/CMakeLists.txt"
SOURCES = re.compile(r"(?:\w+_)?sources")
CMAKE_LIST = re.compile(rf"set\(({SOURCES.pattern})\s(.*?)\)", re.S)

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<(' + LIBRARY + r'/[^>]+)>)')
# The waits and notifications of std::atomic. They lose wake-ups on Windows (internal/platform/waiting.h). A wait()
# without arguments is a function of the library.
DIRECT_WAIT = re.compile(
    r"(?:\.|->)\s*(?:wait\s*\((?!\s*\))|notify_(?:one|all)\s*\()|\batomic_(?:flag_)?(?:wait|notify)\w*\s*\("
)
MAY_WAIT = {
    INTERNAL + "platform/waiting.h",  # defines await_change() and announce_change(), which all other files call
    INTERNAL + "platform/parking_condition.cpp",  # a condition variable, not an atomic
    INTERNAL + "engine/worker_role.h",  # a condition variable, too
    INTERNAL + "core/timeout_scope.cpp",  # and here
}
QUEUE = re.compile(r"moodycamel::|#\s*include\s*[<\"].*\bconcurrentqueue\.h[>\"]")


def room_of(path):
    """Returns the folder of internal/ that the file is in, or None for an installed header."""
    return path[len(INTERNAL) :].split("/")[0] if path.startswith(INTERNAL) else None


def homes_of(sources):
    """Returns {file: room}; None for TERMS. A source implements the installed header that it includes first, if both
    have the same name."""
    homes = {path: room_of(path) or (None if path in TERMS else TOP) for path in sources}
    for path, (_, _, _, included) in sources.items():
        header = included[0][1] if included else ""
        if path.endswith(".cpp") and header not in TERMS and room_of(header) is None and header in homes and (
                os.path.basename(header)[: -len(".h")] == os.path.basename(path)[: -len(".cpp")]):
            homes[header] = room_of(path)
    return homes


def is_second_half(path, other):
    """Whether `path` has the templates of the header `other`: <name>.h includes detail/<name>_impl.h at its end, and
    detail/<name>_impl.h includes <name>.h, so that it compiles alone.
    """
    folder, name = path.rsplit("/", 1)
    return folder.startswith(f"{LIBRARY}/detail") and name == f"{os.path.basename(other)[: -len('.h')]}_impl.h"


def cycle_in(includes):
    """Returns the files of a cycle of includes, or None."""
    try:
        graphlib.TopologicalSorter(includes).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]  # it begins with an included file
    return None


@functools.cache  # the self-test changes one file at a time
def marks_of(text):
    """Returns the number of lines, and the numbers of the lines that name the queue or wait for an atomic. Then the
    number of each other include, with the included path.
    """
    lines = text.splitlines()
    queue, waits, includes = [], [], []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if QUEUE.search(line):
            queue.append(number)
        elif match:
            includes.append((number, match[1] or match[2]))
        if DIRECT_WAIT.search(line.split("//")[0]):
            waits.append(number)
    return len(lines), queue, waits, includes


def marks_of_all(here):
    return {path: marks_of(here.read(path)) for path in here.files(LIBRARY, ".h", ".cpp")}


def broken_rules(here):
    return (f"{path}:{line}: {what}" for path, line, what in all_broken(here))


def all_broken(here):
    """Returns (file, line, rule) of each broken rule."""
    sources = marks_of_all(here)
    broken = []
    homes = homes_of(sources)
    includes = {path: {} for path in sources}  # path -> {included path: line}
    users_of_the_queue = {}

    for path, (lines, queue, waits, included) in sources.items():
        room = room_of(path)
        if room is not None and room not in MAY_INCLUDE and path != ANY_ROOM:
            broken.append((path, 1, f"internal/ has no room {room}: tests/structure/walls.py says which there are"))
            continue
        if room is None and not path.endswith(".h"):
            broken.append((path, 1, "outside of internal/ there are only installed headers"))
        if lines > MAX_LINES:
            broken.append((path, MAX_LINES + 1, f"a file has at most {MAX_LINES} lines, this one {lines}"))
        if queue:
            users_of_the_queue[path] = queue[0]
        if path not in MAY_WAIT:
            broken += [(path, number, "waits for an atomic or notifies directly: call await_change() or "
                        "announce_change() of internal/platform/waiting.h") for number in waits]
        for number, other in included:
            if other not in sources:
                broken.append((path, number, f"includes {other}: no file of {LIBRARY}/, written from the root"))
                continue
            if not is_second_half(path, other):
                includes[path][other] = number
            if other.endswith(".cpp"):
                broken.append((path, number, f"includes {other}: only headers are included"))
            elif room is None and room_of(other) is not None:
                broken.append((path, number, f"includes {other}: an installed header includes only installed ones"))
            elif path == ANY_ROOM:
                broken.append((path, number, f"includes {other}: it includes nothing of the library"))
            elif homes[path] in ONLY_INSTALLED and room_of(other) not in {None, homes[path]}:
                broken.append((path, number, f"includes {other}: {homes[path]}/ includes only installed headers"))
            elif other != ANY_ROOM and other not in TERMS:
                home = homes[path]
                allowed = MAY_INCLUDE.get(home, set())
                if homes[other] not in allowed | {home}:
                    named = f"{home}/ may include " + (", ".join(sorted(allowed)) or "no room") if home else (
                        "the installed headers in TERMS include only each other")
                    broken.append((path, number, f"includes {other} of {homes[other]}/: besides itself and TERMS, {named}"))

    cycle = cycle_in(includes)
    if cycle:
        broken.append((cycle[0], includes[cycle[0]][cycle[1]], "a cycle of includes: " + " > ".join(cycle)))

    for path, number in users_of_the_queue.items():
        if room_of(path) is None:
            broken.append((path, number, "an installed header names moodycamel's queue"))
        elif len(users_of_the_queue) > 1:
            others = ", ".join(other for other in users_of_the_queue if other != path)
            broken.append((path, number, f"only one file may name moodycamel's queue, and {others} does"))

    lists = {name: re.findall(r"'(.*?)'", text) for name, text in MESON_LIST.findall(here.read(MESON))}
    return broken + unlisted(here, sources) + only_by_one_build(lists, here.read(CMAKE))


def only_by_one_build(lists, cmake):
    """Returns the files that only Meson or only CMake compiles into a library."""
    builds = {MESON: lists, CMAKE: {name: text.split() for name, text in CMAKE_LIST.findall(cmake)}}
    return [(there, 1, f"{name} lacks {file}, which {here} has")
            for here, there in [(MESON, CMAKE), (CMAKE, MESON)]
            for name in filter(SOURCES.fullmatch, builds[here])
            for file in sorted({*builds[here][name]} - {*builds[there].get(name, [])})]


def unlisted(here, sources):
    """Returns the sources, installed headers, examples and tests that a list lacks."""
    meson = here.read(MESON)
    lists = dict(MESON_LIST.findall(meson))
    both = "".join(f"'{name}'" for name in here.read(FILE_LIST).split())
    library = meson + both
    installed = both + "".join(text for name, text in lists.items() if name.endswith("headers"))
    tests = here.read("tests/meson.build")
    expected = [(path, library, path[len(LIBRARY) + 1 :], f"is in no list of sources, such as {FILE_LIST}")
                for path in sources if path.endswith(".cpp")]
    expected += [(path, installed, path[len(LIBRARY) + 1 :], f"is in no list of headers, such as {FILE_LIST}")
                 for path in sources if room_of(path) is None]
    expected += [(path, here.read(EXAMPLES + page), path.split("/")[-2], f"is not in {EXAMPLES}{page}")
                 for path in here.files(EXAMPLES.rstrip("/"), "main.cpp") for page in ["meson.build", "README.md"]]
    expected += [(path, tests, path[len("tests/") : -len(".cpp")], "is not in the table of tests/meson.build")
                 for path in here.files("tests", "_test.cpp")]
    return [(path, 1, what) for path, text, name, what in expected if f"'{name}'" not in text and f"[{name}]" not in text]


# --- The self-test -------------------------------------------------------------------------------------------------


def seeds(here):
    """Yields (file, text that is appended and breaks a rule, expected part of the message)."""
    headers = here.files(LIBRARY, ".h")
    sources = here.files(LIBRARY, ".cpp")
    homes = homes_of(marks_of_all(here))

    def first(files, room):
        return next((path for path in files if room_of(path) == room), None)

    for room, allowed in MAY_INCLUDE.items():
        installed = next((path for path in headers if homes[path] == room and room_of(path) is None), None)
        for other in sorted(set(MAY_INCLUDE) - allowed - {room}):
            included = first(headers, other) or next(path for path in headers if homes[path] == other)
            for path in filter(None, [first(headers, room), first(sources, room)]):
                yield path, f'#include "{included}"\n', f"includes {included}"
                yield path, f"#include <{included}>\n", f"includes {included}"
            above = next((path for path in headers if homes[path] == other and room_of(path) is None), None)
            if installed and above:
                yield installed, f'#include "{above}"\n', f"includes {above} of {other}/"
        if installed:
            yield min(TERMS), f'#include "{installed}"\n', "include only each other"
    yield min(TERMS), f'#include "{first(headers, "core")}"\n', "an installed header includes only installed"
    yield ANY_ROOM, f'#include "{first(headers, "wheel")}"\n', "includes nothing of the library"
    yield first(headers, "c"), f'#include "{ANY_ROOM}"\n', "includes only installed headers"
    yield first(headers, "c"), f'#include "{first(headers, "core")}"\n', "includes only installed headers"
    yield min(TERMS), f'#include "{LIBRARY}/timer.h"\n', "include only each other"
    yield LIBRARY + "/timer.h", f'#include "{first(headers, "core")}"\n', "an installed header includes only installed"

    used, user = next((a, b) for a in headers for b in headers if a != b and f'"{a}"' in here.read(b))
    yield used, f'#include "{user}"\n', "a cycle of includes"
    some = first(headers, "core")
    yield some, f'#include "{os.path.basename(some)}"\n', "written from the root"
    yield some, f'#include "{first(sources, "core")}"\n', "only headers are included"
    yield some, "//\n" * MAX_LINES, "a file has at most"
    yield first(headers, None), "using Queue = moodycamel::ConcurrentQueue<int>;\n", "names moodycamel's queue"
    yield first(headers, "wheel"), "#include <moodycamel/concurrentqueue.h>\n", "only one file may name"
    for call in ["word.wait(0)", "pointer->wait(", "word.notify_one()", "pointer->notify_all()",
                 "std::atomic_wait_explicit(pointer, 0, order)", "std::atomic_flag_notify_all(pointer)"]:
        for room in ["platform", "recurring", None]:
            yield first(headers, room), f"inline void seed() {{ {call}; }}\n", "waits for an atomic or notifies directly"
    yield INTERNAL + "attic/attic.h", "#pragma once\n", "internal/ has no room attic"
    yield INTERNAL + "core/forgotten.cpp", "\n", "is in no list of sources"
    yield LIBRARY + "/forgotten.cpp", "\n", "only installed headers"
    yield LIBRARY + "/detail/forgotten.cpp", "\n", "only installed headers"
    yield LIBRARY + "/forgotten.h", "\n", "is in no list of headers"
    yield LIBRARY + "/detail/forgotten.h", "\n", "is in no list of headers"
    interface, timer = "internal/c/c.cpp", "internal/c/c_timer.cpp"
    yield MESON, f"c_sources = files('{interface}', 'timer.cpp')\n", f"lacks {timer}, which {CMAKE} has"
    yield MESON, f"c_sources = files('{interface}', 'timer.cpp')\n", f"lacks timer.cpp, which {MESON} has"
    yield CMAKE, f"set(c_sources {interface})\n", f"lacks {timer}, which {MESON} has"
    yield EXAMPLES + "forgotten/main.cpp", "\n", "is not in docs/examples/meson.build"
    yield EXAMPLES + "forgotten/main.cpp", "\n", "is not in docs/examples/README.md"
    yield "tests/wheel/forgotten_test.cpp", "\n", "is not in the table"


if __name__ == "__main__":
    tree.main(broken_rules, "every rule is kept", seeds)
