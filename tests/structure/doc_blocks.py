"""Compiles every C++ block of README.md and docs/guide.md.

usage: doc_blocks.py SOURCE_ROOT COMPILER...

A block with a main() must be identical to a program of docs/examples. A block that begins with an #include needs
another library and is skipped; the tests of that library compile it. All other blocks are fragments. Each is compiled
after guide_prelude.h, in its own namespace, and inside a function unless it defines one. Errors name the line of the
page.
"""

import glob
import os
import re
import subprocess
import sys

OPTIONS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
PAGES = ["README.md", "docs/guide.md"]
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.M | re.S)
DEFINES_A_FUNCTION = re.compile(r"^\w[\w:<>*& ]* \w+\(.*\) \{(?: *//.*)?$", re.M)
CONTROL = re.compile(r"^(if|for|while|switch|do)\b")


def blocks(root, page):
    """Returns (page, line, text) of each block."""
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    return [(page, text.count("\n", 0, block.start(1)) + 1, block[1]) for block in BLOCK.finditer(text)]


def is_at_namespace_scope(text):
    return any(not CONTROL.match(line) for line in DEFINES_A_FUNCTION.findall(text))


def wrapped(number, page, line, text):
    opening, closing = ("", "") if is_at_namespace_scope(text) else ("void block(GIVEN) {{\n", "}}\n")
    return f'namespace block_{number} {{\n{opening}#line {line} "{page}"\n{text}{closing}}}\n'


def main(root, compiler):
    examples = [open(path, encoding="utf-8").read() for path in glob.glob(f"{root}/docs/examples/*/main.cpp")]
    failures = []
    fragments = []
    for page in PAGES:
        found = blocks(root, page)
        if not found:
            failures.append(f"{page}: no block of C++")
        for block in found:
            _, line, text = block
            if text.startswith("#include") and "int main(" not in text:
                continue
            if "int main(" not in text:
                fragments.append(block)
            elif text not in examples:
                failures.append(f"{page}:{line}: this program is not identical to a main.cpp of docs/examples")
    source = '#include "tests/structure/guide_prelude.h"\n'
    source += "".join(wrapped(number, *fragment) for number, fragment in enumerate(fragments))
    command = [*compiler, *OPTIONS, f"-I{root}", "-x", "c++", "-c", "-o", os.devnull, "-"]
    if subprocess.run(command, input=source, encoding="utf-8", check=False).returncode != 0:
        failures.append("the blocks do not compile")
    print("\n".join(failures) or f"{len(fragments)} fragments compiled")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
