"""Counts sentences that are hard to read in comments, docstrings and pages.

usage: words.py ROOT                  fails if a file has more of them than limits.txt allows
       words.py ROOT FILE_OR_FOLDER...  prints those of these files
       words.py ROOT --count          prints their number for each file
       words.py ROOT --renew          stores the present numbers, unless their sum has risen
       words.py ROOT --self-test      checks planted sentences

Prints file:line, the reason and the sentence. limits.txt has a line for each file that has such sentences.
"""

import os
import re
import sys

import prose

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "structure"))
import tree  # noqa: E402

LIMITS = "tests/words/limits.txt"
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
    """{path: [(line, reason, sentence)]} of the files that have any."""
    found = {}
    for path in paths:
        hard = [(sentence.line, reason, sentence.text) for sentence in prose.sentences(path, read(root, path))
                for reason in reasons(sentence.text)]
        if hard:
            found[path] = hard
    return found


def print_all(path, found):
    for line, reason, text in found:
        print(f"{path}:{line}: {reason}: {text}")


def stored(root):
    with open(os.path.join(root, LIMITS), encoding="utf-8") as file:
        return {path: int(number) for path, number in map(str.split, file)}


def renew(root):
    found = {path: len(hard) for path, hard in findings(root, paths_of(root)).items()}
    before, now = sum(stored(root).values()), sum(found.values())
    if now > before:
        print(f"{now} sentences are hard to read (expected: at most {before}, as {LIMITS} says)")
        return True
    with open(os.path.join(root, LIMITS), "w", encoding="utf-8") as file:
        file.writelines(f"{path} {number}\n" for path, number in found.items())
    print(f"{now} instead of {before}")
    return False


def check(root):
    limits = stored(root)
    found = findings(root, paths_of(root))
    bad = False
    for path, hard in found.items():
        if len(hard) > limits.get(path, 0):
            bad = True
            print_all(path, hard)
            print(f"{path}: {len(hard)} sentences are hard to read (expected: at most {limits.get(path, 0)})")
    now, before = sum(map(len, found.values())), sum(limits.values())
    print(f"{now} sentences are hard to read, {before} allowed")
    if not bad and now < before:
        print(f"to lower the limits: python3 {sys.argv[0]} {root} --renew")
    return bad


def main(root, arguments):
    if arguments == ["--self-test"]:
        import planted
        return planted.test(reasons)
    if arguments == ["--renew"]:
        return renew(root)
    if arguments == ["--count"]:
        found = findings(root, paths_of(root))
        for path, hard in found.items():
            print(len(hard), path)
        print(sum(map(len, found.values())), "in all")
        return False
    if not arguments:
        return check(root)
    found = findings(root, paths_of(root, arguments))
    for path, hard in found.items():
        print_all(path, hard)
    return bool(found)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
