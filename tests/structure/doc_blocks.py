"""Compiles every C++ block of README.md and docs/guide.md.

usage: doc_blocks.py SOURCE_ROOT COMPILER...

A block with a main() must be identical to a program of docs/examples. A block that begins with an #include needs
another library and is skipped; the tests of that library compile it. All other blocks are fragments. Each is compiled
after guide_prelude.h, in its own namespace, and inside a function unless it defines one. Errors name the line of the
page.
"""

import os
import re
import sys

import tree

OPTIONS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
PAGES = ["README.md", "docs/guide.md"]
DEFINES_A_FUNCTION = re.compile(r"^\w[\w:<>*& ]* \w+\(.*\) \{(?: *//.*)?$", re.M)
CONTROL = re.compile(r"^(if|for|while|switch|do)\b")


def is_at_namespace_scope(text):
    return any(not CONTROL.match(line) for line in DEFINES_A_FUNCTION.findall(text))


def wrapped(number, page, line, text):
    opening, closing = ("", "") if is_at_namespace_scope(text) else ("void block(GIVEN) {{\n", "}}\n")
    return f'namespace block_{number} {{\n{opening}#line {line} "{page}"\n{text}{closing}}}\n'


def wrong_blocks(here):
    examples = [here.read(path) for path in here.files("docs/examples", "/main.cpp")]
    source = '#include "tests/structure/guide_prelude.h"\n'
    for page in PAGES:
        found = tree.code_blocks(here.read(page), "cpp")
        if not found:
            yield f"{page}: no block of C++"
        for line, text in found:
            if "int main(" in text and text not in examples:
                yield f"{page}:{line}: this program is not identical to a main.cpp of docs/examples"
            elif "int main(" not in text and not text.startswith("#include"):
                source += wrapped(f"{len(source)}", page, line, text)
    options = [*OPTIONS, f"-I{here.root}", "-c", "-o", os.devnull]
    status, said = tree.compiled(sys.argv[2:], options, source)
    if status:
        yield f"{said}the blocks do not compile"


if __name__ == "__main__":
    tree.main(wrong_blocks, "all blocks compile")
