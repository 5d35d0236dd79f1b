"""Compares the Chinese pages with the English ones. They must have the same sections. Each section must have the same
code blocks, the same figures, the same names in backticks, and as many table rows.

usage: translations.py SOURCE_ROOT [--self-test]

Prints each difference and its place on the English page.
"""

import collections
import itertools
import re

import tree
from tree import FENCE, HEADING, blanked

# Each page and its last translated section. None: all sections are translated.
PAGES = {"README.md": None, "docs/guide.md": "Why are my timeouts late?"}

COMMENT = re.compile(r"<!--.*?-->", re.S)
TARGET = re.compile(r"\]\([^)\s]*\)")
NAME = re.compile(r"`[^`\n]+`")
# A figure before 月 is a month, which is a word in English.
FIGURE = re.compile(r"(?<![A-Za-z0-9_.])[0-9]+(?:[,.][0-9]+)*(?! 月|[0-9])")
ROW = re.compile(r"^\|", re.M)

# blocks, names, figures and rows are {text: lines of the page that have it}.
Section = collections.namedtuple("Section", "level title line blocks names figures rows")


def translation_of(page):
    return page[: -len(".md")] + ".zh-CN.md"


def found(pattern, text, first_line):
    lines = collections.defaultdict(list)
    for match in pattern.finditer(text):
        lines[match[0]].append(first_line - 1 + tree.line_of(text, match.start()))
    return lines


def sections_of(text):
    sections = []
    prose = blanked(FENCE, text)
    headings = [(tree.line_of(prose, match.start()), match) for match in HEADING.finditer(prose)]
    ends = [line - 1 for line, _ in headings[1:]] + [text.count("\n")]
    for (line, heading), end in zip(headings, ends):
        body = "\n".join(text.split("\n")[line:end])
        words = TARGET.sub("]", blanked(COMMENT, blanked(FENCE, body)))
        figures = found(FIGURE, blanked(NAME, words), line + 1)
        sections.append(Section(len(heading[1]), heading[2], line, found(FENCE, body, line + 1),
                                found(NAME, words, line + 1), figures, found(ROW, words, line + 1)))
    return sections


def shown(text):
    first, *more = text.strip("`").strip().split("\n")
    return f"the block of code that begins with {more[0]!r}" if more else first


def differences(page, original, translation):
    """Yields the differences between a section and its translation."""
    for kind in ("blocks", "names", "figures", "rows"):
        ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
        for side, section in (ours, original), (theirs, translation):
            for key, lines in getattr(section, kind).items():
                side[key.replace(",", "") if kind == "figures" else key] += lines
        for key in sorted(ours.keys() | theirs.keys()):
            counts = [len(side.get(key, [])) for side in (ours, theirs)]
            if kind == "names":
                counts = [min(count, 1) for count in counts]  # a translation may repeat a name, or use a pronoun
            if counts[0] == counts[1]:
                continue
            what = "a row of a table" if kind == "rows" else shown(key)
            where = ", ".join(map(str, ours.get(key, []))) or "nowhere"
            yield (translation.line, f'"{translation.title}": {what}: {counts[1]} times here, {counts[0]} in "'
                   f'{original.title}" of {page} (there in lines: {where})')


def wrong_in(page, text, translated, last):
    originals, translations = sections_of(text), sections_of(translated)
    if last is not None:
        titles = [section.title for section in originals]
        if last not in titles:
            yield 1, f'{page} has no section "{last}", which is the last to be translated'
            return
        originals = originals[: titles.index(last) + 1]
    for original, translation in itertools.zip_longest(originals, translations):
        if translation is None or (original and original.level != translation.level):
            yield 1, f'no translation of "{original.title}", line {original.line} of {page}, at its place'
            return
        if original is None:
            yield translation.line, f'"{translation.title}" is not in {page}'
            return
        yield from differences(page, original, translation)


def differences_of_all(here):
    for page, last in PAGES.items():
        translation = translation_of(page)
        for line, what in wrong_in(page, here.read(page), here.read(translation), last):
            yield f"{translation}:{line}: {what}"


# Changes to English pages, and a part of the expected message about the translation. None: no message is expected.
SEEDS = [
    ("README.md", ("\n\n## The family", "\n\nAt most 4711.\n\n## The family"), "4711: 0 times here, 1 in"),
    ("README.md", ("4,096", "4,097"), "4097: 0 times here, 1 in"),
    ("README.md", ("\n| [`KeyedTimer`]", "\n| new |  |\n| [`KeyedTimer`]"), "a row of a table: "),
    ("README.md", ("\n\n## License", "\n\nSee `hwt::New`.\n\n## License"), "hwt::New: 0 times here, 1 in"),
    ("README.md", ("\n## License", "\n## News\n\nOf `hwt::New`.\n\n## License"), 'no translation of "License"'),
    ("README.md", ("<a tag or commit>)\n", "<a tag>)\n"), "the block of code that begins with 'include(FetchContent)': 0"),
    ("docs/guide.md", (", 250ms);\n", ", 251ms);\n"), "the block of code that begins with"),
    ("docs/guide.md", ("\n## Errors", "\n### More\n\nOf `hwt::New`.\n\n## Errors"), None),
]


if __name__ == "__main__":
    tree.main(differences_of_all, f"{len(PAGES)} pages and their translations say the same", lambda here: SEEDS)
