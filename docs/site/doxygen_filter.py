"""What Doxygen reads of a header: its comments with the structure that a reader sees in them, line for line.

usage: doxygen_filter.py HEADER

What is set in by three blanks is an example: code. "Guarantees:", "Threads:" and the like at the beginning of a line
are titles of paragraphs. Deleted functions are left out. The two dots of a range are no end of a sentence. Classes in
detail/ are included by asio.h. The base of ManualTimer and LoopTimer is not documented, so they derive from Timer here.
The file itself counts as documented, since Doxygen otherwise leaves its functions out.
"""

import re
import sys

INDENTED = re.compile(r" *///   ")
COMMENT = re.compile(r" *///( |$)")
TITLE = re.compile(r"^( */// )(Guarantees|Threads|Not for|Source|Lifetime|fork\(\)|Precondition): ")
DELETED = re.compile(r" *[^/ ].* = delete;")
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
        else:
            line = TITLE.sub(r"\1@titled{\2} ", line).replace(" .. ", " ..&nbsp;")
        yield line.replace("detail::DrivenTimer", "Timer")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(filtered(header.read().splitlines(), "/detail/" in sys.argv[1])))
