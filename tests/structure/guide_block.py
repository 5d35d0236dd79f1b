"""Prints C++ blocks of a page, or blocks in another language, for a test that runs them.

usage: guide_block.py PAGE HEADER [LANGUAGE]

Prints the blocks that begin with an #include of HEADER. A #define may come first.
"""

import re
import sys


def main(page, header, language="cpp"):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    blocks = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    include = re.compile(rf'(#define .*\n)?#include [<"]{re.escape(header)}[>"]\n')
    found = [block for block in blocks if include.match(block[1])]
    if not found:
        sys.exit(f"{page}: 0 blocks begin with {header} (expected: at least 1)")
    for block in found:
        line = text.count("\n", 0, block.start(1)) + 1
        print(f'#line {line} "{page}"\n{block[1]}', end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
