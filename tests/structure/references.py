"""Finds dead references: links of Markdown pages without a target, and names of missing files in pages and comments.
A list of sections at the beginning of a page must have all sections, in their order. In a translation, it must also
have the sections that are not translated.

usage: references.py SOURCE_ROOT [--self-test]

A file may be named by the end of its path. Prints file:line and the dead reference.
"""

import os
import re
import urllib.parse

import tree

# Headers of the Linux kernel and of SystemTap, and a file of WrapDB.
NOT_OURS = {"linux/membarrier.h", "sys/sdt.h", "releases.json"}

# The comments in which names are checked, for each file name extension. Triple-quoted strings are docstrings.
SLASHES = re.compile(r"//.*|^[ \t]*/?\*.*", re.M)
HASHES = re.compile(r'^[ \t]*#.*|"""[\s\S]*?"""', re.M)
COMMENTS = {"h": SLASHES, "cpp": SLASHES, "rs": SLASHES, "go": SLASHES, "java": SLASHES,
            "py": HASHES, "sh": HASHES, "build": HASHES, "run": HASHES}
NAME = re.compile(r"[\w./*<>{}@$:-]+")
FILE = re.compile(r"(?:[\w-]+/)*(?:[\w-]+\.(?:h|cpp|py|sh|md|svg|json|rs|go|java|toml)|meson\.build)")
FOLDER = re.compile(r"[\w-]+(?:/[\w-]+)*/?")
PLACEHOLDER = re.compile(r"(?:^|/)(?:[A-Z]+/|my_)")
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r'(?:\]\(|src=")([^)\s"]+)')
CHAPTER = re.compile(r'([\w./-]+\.md),\s+"([^"]+)"')
CONTENTS = re.compile(r"\)\s·\s+\[")  # between two links of a list of sections


def anchors_of(text):
    """Returns {anchor: heading}, in the order of the page. Anchors are made as GitHub makes them."""
    anchors = {}
    for heading in tree.HEADING.finditer(tree.blanked(tree.FENCE, text)):
        slug = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
        count = sum(1 for anchor in anchors if re.fullmatch(re.escape(slug) + r"(-\d+)?", anchor))
        anchors[f"{slug}-{count}" if count else slug] = heading
    return anchors


def sections_of(text):
    """Returns {anchor: heading} for headings of level 2."""
    return {anchor: heading for anchor, heading in anchors_of(text).items() if len(heading[1]) == 2}


class References:
    """The references of a tree to its files."""

    def __init__(self, here):
        self.here = here
        self.read = here.read
        files = here.all_files
        folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
        self.ends = {"/" + path for path in files} | {"/" + path for path in folders}
        self.tops = {path.split("/")[0] for path in folders} | {"internal"}

    def has(self, name):
        return any(path.endswith("/" + name.rstrip("/")) for path in self.ends)

    def is_dead(self, name):
        if PLACEHOLDER.search(name):
            return False
        if FILE.fullmatch(name):
            return name not in NOT_OURS and not self.has(name)
        return bool(FOLDER.fullmatch(name)) and "/" in name and name.split("/")[0] in self.tops and not self.has(name)

    def dead_names(self, text):
        return filter(self.is_dead, (name.strip(".:") for name in NAME.findall(text)))

    def dead_link(self, page, link):
        if re.match(r"[a-z]+:", link):
            return False
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not self.here.has(target):
            return True
        return bool(anchor) and anchor not in anchors_of(self.read(target))

    def dead_chapters(self, text):
        for path, chapter in CHAPTER.findall(text):
            if path in self.here.all_files and chapter not in (title for _, title in tree.HEADING.findall(self.read(path))):
                yield f'{path}, "{chapter}"'

    def missing_contents(self, page, text):
        """Yields the sections that the list at the beginning of the page lacks. Most pages have no list."""
        paragraphs = [block for block in text.split("\n## ")[0].split("\n\n") if CONTENTS.search(block)]
        listed = [urllib.parse.unquote(link) for block in paragraphs for link in LINK.findall(block)]
        if not listed:
            return
        expected = {"#" + anchor: heading for anchor, heading in sections_of(text).items()}
        original = page.replace(".zh-CN.md", ".md")
        if original != page:  # only the first sections are translated
            others = list(sections_of(self.read(original)).items())[len(expected):]
            expected |= {f"{os.path.basename(original)}#{anchor}": heading for anchor, heading in others}
        places = [listed.index(link) if link in listed else -1 for link in expected]
        for heading, place, before in zip(expected.values(), places, [-1, *places]):
            if place <= before:
                yield (heading.start() if heading.string == text else 0), f'entry for "{heading[2]}" at its place in the list of sections'

    def dead_in(self, path):
        """Returns (position, reference) of the dead references of a file."""
        ending = re.split("[./]", path)[-1]
        if ending != "md" and ending not in COMMENTS:
            return []
        text = self.read(path)
        dead = []
        if ending == "md":
            text = tree.blanked(tree.FENCE, text)
            dead += [(match.start(), match[1]) for match in LINK.finditer(text) if self.dead_link(path, match[1])]
            dead += self.missing_contents(path, text)
        for match in COMMENTS.get(ending, IN_BACKTICKS).finditer(text):
            dead += [(match.start(), name) for name in [*self.dead_names(match[0]), *self.dead_chapters(match[0])]]
        return [(tree.line_of(text, position), what) for position, what in dead]


def dead_references(here):
    references = References(here)
    for path in here.planted or here.all_files:  # a self-test needs only the file that it has changed
        yield from (f"{path}:{line}: there is no {what}" for line, what in references.dead_in(path))


# A file, the text that is appended to it, and the dead reference in that text.
SEEDS = [
    ("README.md", "[a page](docs/no_page.md)", "docs/no_page.md"),
    ("README.md", "[a chapter](docs/guide.md#no-chapter)", "docs/guide.md#no-chapter"),
    ("docs/guide.md", "[a chapter](#no-chapter)", "#no-chapter"),
    ("docs/guide.md", "![a picture](performance/no_picture.svg)", "performance/no_picture.svg"),
    ("docs/guide.md", "## A new section", 'entry for "A new section" at its place in the list of sections'),
    ("docs/guide.md", "See `tests/no_test.cpp`.", "tests/no_test.cpp"),
    ("docs/guide.md", "See `docs/examples/no_example`.", "docs/examples/no_example"),
    ("hashed_wheel_timer/timer.h", "/// See no_header.h.", "no_header.h"),
    ("hashed_wheel_timer/timer.h", "// See docs/no_page.md.", "docs/no_page.md"),
    ("hashed_wheel_timer/timer.h", '// See docs/guide.md, "No chapter".', 'docs/guide.md, "No chapter"'),
    ("tests/meson.build", "# See no_script.py.", "no_script.py"),
]


if __name__ == "__main__":
    tree.main(dead_references, "no reference is dead", lambda here: [
        (path, f"\n{text}\n", f":{{line}}: there is no {expected}") for path, text, expected in SEEDS])
