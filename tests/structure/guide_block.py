"""Prints a C++ block of docs/guide.md, for a test that runs it.

usage: guide_block.py GUIDE HEADER

The block is the one that begins with the inclusion of HEADER.
"""

import re
import sys


def main(guide, header):
    with open(guide, encoding="utf-8") as file:
        text = file.read()
    blocks = re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S)
    include = re.compile(rf'#include [<"]{re.escape(header)}[>"]\n')
    found = [block for block in blocks if include.match(block[1])]
    if len(found) != 1:
        sys.exit(f"{guide}: {len(found)} blocks begin with {header} (expected: 1)")
    line = text.count("\n", 0, found[0].start(1)) + 1
    print(f'#line {line} "{guide}"\n{found[0][1]}', end="")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
