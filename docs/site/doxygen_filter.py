"""Filters a header for Doxygen: marks the structure of its comments and keeps the number of lines.

usage: doxygen_filter.py HEADER

Text with an indent of three blanks is code. "Guarantees:", "Threads:" and similar words at the start of a line are
titles of paragraphs. Deleted functions are left out. Two dots of a range do not end a sentence. asio.h includes classes
of detail/. The base of ManualTimer and LoopTimer is not documented, so the filter lets them derive from Timer. It marks
the file as documented, because Doxygen otherwise leaves its functions out. Names in parentheses, which keep macros off,
lose these. A time point of any precision is shown as one of steady_clock. The place of a call, which is a default, is
not shown. A name after "Netty's" or another project's is no link to a class of ours.
"""

import re
import sys

INDENTED = re.compile(r" *///   ")
COMMENT = re.compile(r" *///( |$)")
TITLE = re.compile(r"^( */// )(Guarantees|Threads|Not for|Source|Lifetime|Fork|Costs|Differences|Precondition): ")
DELETED = re.compile(r" *[^/ ].* = delete;")
NAME = re.compile(r" ?\((min|max)\)\(")
POINT = re.compile(r"\b(hwt::)?detail::(Point|PresentTime)\b")
PLACE = re.compile(r"\{(\n?) *\{\}, __builtin_FILE\(\), __builtin_LINE\(\)\}")
THEIRS = re.compile(r"\b((?:Netty|Dubbo|Kafka|Asio|Java|folly|libuv)'s )(?=[A-Z])")
HEADER = '/** @headerfile asio.h "hashed_wheel_timer/asio.h" */ '


def filtered(lines, in_detail):
    in_example = False
    for line, following in zip(lines, [*lines[1:], ""]):
        if line == "#pragma once":
            line = "/** @file */"
        elif DELETED.fullmatch(line):
            line = ""
        elif in_example:
            if not COMMENT.match(following):
                in_example, line = False, line + " @endcode"
            elif not INDENTED.match(line) and not INDENTED.match(following):
                in_example, line = False, line + " @endcode"
        elif line.endswith("///") and INDENTED.match(following):
            in_example, line = True, line + " @code{.cpp}"
        elif in_detail and line.startswith("class "):
            line = HEADER + line
        elif not COMMENT.match(line):
            line = NAME.sub(r" \1(", line)
        else:
            line = THEIRS.sub(r"\1%", TITLE.sub(r"\1@titled{\2} ", line)).replace(" .. ", " ..&nbsp;")
        yield POINT.sub("std::chrono::steady_clock::time_point", line.replace("detail::DrivenTimer", "Timer"))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        lines = PLACE.sub(r"{}\1", header.read()).splitlines()
        print("\n".join(filtered(lines, "/detail/" in sys.argv[1])))
