"""Prints C++ blocks of docs/guide.md, for a test that runs them.

usage: guide_block.py GUIDE HEADER

Prints the blocks that begin with an #include of HEADER.
"""

import re
import sys


def main(guide, header):
    with open(guide, encoding="utf-8") as file:
        text = file.read()
    blocks = re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S)
    include = re.compile(rf'#include [<"]{re.escape(header)}[>"]\n')
    found = [block for block in blocks if include.match(block[1])]
    if not found:
        sys.exit(f"{guide}: 0 blocks begin with {header} (expected: at least 1)")
    for block in found:
        line = text.count("\n", 0, block.start(1)) + 1
        print(f'#line {line} "{guide}"\n{block[1]}', end="")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
