"""Prints C++ blocks of a page, or blocks in another language, for a test that runs them.

usage: guide_block.py PAGE HEADER [LANGUAGE]

Prints the blocks that begin with an #include of HEADER. A #define may come first.
"""

import re
import sys

import tree


def main(page, header, language="cpp"):
    with open(page, encoding="utf-8") as file:
        blocks = tree.code_blocks(file.read(), language)
    include = re.compile(rf'(#define .*\n)?#include [<"]{re.escape(header)}[>"]\n')
    found = [(line, text) for line, text in blocks if include.match(text)]
    if not found:
        sys.exit(f"{page}: 0 blocks begin with {header} (expected: at least 1)")
    for line, text in found:
        print(f'#line {line} "{page}"\n{text}', end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
