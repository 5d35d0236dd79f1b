"""The source tree as the checks of this folder see it, their complaints, and their self-tests.

A check is a function that takes a Tree and yields complaints, each in one string. A self-test plants faults into the
texts of the tree, one at a time, and expects a complaint about each. No file changes.
"""

import functools
import os
import re
import subprocess
import sys

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
HEADING = re.compile(r"^(#+) +(.*?) *$", re.M)


class Tree:
    def __init__(self, root):
        self.root = root
        self.planted = {}  # path -> text
        self.all_files = files_of(root)

    @functools.cache
    def stored(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def read(self, path):
        return self.planted[path] if path in self.planted else self.stored(path)

    def has(self, path):
        return path in self.planted or os.path.exists(os.path.join(self.root, path))

    def files(self, folder, *endings):
        """Returns the files below the folder that have one of these endings."""
        return sorted(path for path in {*self.all_files, *self.planted}
                      if path.startswith(folder + "/") and path.endswith(endings))


def files_of(root):
    """Returns the paths of the files below the folder, without build folders."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")
                      and not os.path.exists(os.path.join(folder, name, "meson-private"))]
        if os.path.relpath(folder, root) == "subprojects":
            folders[:] = ["packagefiles"]
        found += [os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/") for name in names]
    return sorted(found)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def blanked(pattern, text):
    """Returns the text with as many lines, but without the matches."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def code_blocks(text, language):
    """Returns (line, text) of each code block of a page."""
    return [(line_of(text, block.start(1)), block[1])
            for block in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def compiled(compiler, options, source):
    """Compiles a source with the headers of the tree, and returns the messages of the compiler."""
    done = subprocess.run([*compiler, *options, "-x", "c++", "-"], input=source, stderr=subprocess.PIPE, encoding="utf-8",
                          check=False, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stderr


def told(complaints, good):
    """Prints the complaints, or that there are none. Returns the exit status."""
    complaints = list(complaints)
    print("\n".join(complaints) or good)
    return bool(complaints)


def missed(tree, check, seeds):
    """Yields the seeds that the check does not notice. A seed is (path, change, expected). The change is a text that is
    appended, or a pair: a text and its replacement. `expected` is a part of the complaint, which must name the path too;
    None: there must be no complaint. {line} in it is the last line of the file.
    """
    for path, change, expected in seeds:
        text = tree.stored(path) if tree.has(path) else ""
        planted = text + change if isinstance(change, str) else text.replace(*change, 1)
        tree.planted = {path: planted}
        complaints = list(check(tree))
        tree.planted = {}
        wanted = expected and expected.replace("{line}", str(planted.count("\n")))
        noticed = not complaints if wanted is None else any(wanted in one and path in one for one in complaints)
        if planted == text or not noticed:
            yield f"{path} with {change!r:.200}: expected: {wanted!r}, but: {complaints[:5]}"


def main(check, good, seeds=None):
    """Runs the check of the tree that the command line names, or its self-test."""
    tree = Tree(sys.argv[1])
    if "--self-test" not in sys.argv[2:]:
        sys.exit(told(check(tree), good))
    planted = list(seeds(tree))
    sys.exit(told(missed(tree, check, planted), f"{len(planted)} planted faults noticed"))
