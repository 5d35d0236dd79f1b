"""Finds sentences that are hard to read in comments, docstrings and pages.

usage: words.py ROOT [FILE_OR_FOLDER...]
       words.py ROOT --self-test      checks planted sentences

Prints file:line, the reason and the sentence. Fails if there is one.
"""

import os
import re
import sys

import prose

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "structure"))
import tree  # noqa: E402

MOST_WORDS = 30

WORD = re.compile(r"[A-Za-z0-9][\w'’./:+-]*")
WHO = re.compile(r"\b[Ww]ho(?:ever)?\b")
WHAT = re.compile(r"\b[Ww]hat (?:is|was|has|had|it|the|a)\b")
OPENING = re.compile(r"[\"'(]*(As above|The same)\b")
# "Users who ..." is plain English. So is "users of Asio who ...".
PERSON = (r"(?:user|reader|author|maintainer|developer|engineer|contributor|programmer|operator|newcomer|attacker|"
          r"administrator|packager|person|people)s?")
AFTER_A_PERSON = re.compile(rf"\b{PERSON}(?: (?:of|in|at|from|with|on) (?:[\w+-]+ ){{0,2}}[\w+-]+)?,? $", re.I)


def reasons(text):
    """Yields why a sentence is hard to read, once for each place in it."""
    number = len(WORD.findall(text))
    if number > MOST_WORDS:
        yield f"{number} words"
    opening = OPENING.match(text)
    if opening:
        yield f'"{opening[1]}"'
    if text.rstrip("\"')").endswith("?"):
        return
    for match in WHO.finditer(text):
        if not AFTER_A_PERSON.search(text[: match.start()]):
            yield f'"{match[0]}"'
    for match in WHAT.finditer(text):
        yield f'"{match[0]}"'


def paths_of(root, names=()):
    """The files that the user names, or that are in the folders that the user names; without names, all."""
    named = [os.path.relpath(os.path.abspath(name), root).replace(os.sep, "/") for name in names] or ["."]
    return [path for name in named for path in tree.files_of(root)
            if path == name or (prose.is_read(path) and (name == "." or path.startswith(name + "/")))]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def findings(root, paths):
    for path in paths:
        for sentence in prose.sentences(path, read(root, path)):
            for reason in reasons(sentence.text):
                yield f"{path}:{sentence.line}: {reason}: {sentence.text}"


def main(root, arguments):
    if arguments == ["--self-test"]:
        import planted
        return planted.test(reasons)
    return tree.told(findings(root, paths_of(root, arguments)), "no sentence is hard to read")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
