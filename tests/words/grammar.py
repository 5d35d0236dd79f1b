"""Looks for errors of grammar in comments, docstrings and pages, with LanguageTool.

usage: grammar.py ROOT JARS [FILE_OR_FOLDER...]

JARS is the folder of LanguageTool's libraries; `./run check words` puts them there. Prints file:line, the rule, the
words and the sentence. terms.txt lists the project's words that LanguageTool takes for something else, and its rules
that do not fit.
"""

import os
import re
import subprocess
import sys

import prose
import words

HERE = os.path.dirname(os.path.abspath(__file__))
# Names of the code that stand in a comment without backticks.
NAME = re.compile(r"[\w.:]*(?:::|->|\w\(\)|[A-Za-z]_|_[A-Za-z]|[a-z][A-Z]|\b[A-Z][A-Za-z]*<)[\w:.<>()-]*(?<![.:])"
                  r"|\bk[A-Z]\w+")

# Each run looks for these errors too: a checker that does not find them has no rules.
PLANTED = ["It takes a hour.", "The worker stops the the timer.", "It can cancels the task.", "They is due.",
           "The queue are empty.", "Each threads has a pool.", "The worker lost it's place."]


def read_terms():
    """(words and their stand-ins, rules that are disabled)"""
    stand_ins, disabled = {}, []
    with open(os.path.join(HERE, "terms.txt"), encoding="utf-8") as file:
        for line in file:
            parts = line.split("#")[0].split()
            if len(parts) == 2:
                stand_ins[parts[0]] = parts[1]
            elif parts:
                disabled += parts
    return stand_ins, disabled


def simplified(text, stand_ins):
    text = NAME.sub("CODE", text)
    return re.sub(r"\b[a-z]+\b", lambda match: stand_ins.get(match[0], match[0]), text)


def main(root, jars, names):
    stand_ins, disabled = read_terms()
    found = [(path, sentence) for path in words.paths_of(root, names) for sentence in prose.sentences(path, words.read(root, path))]
    lines = PLANTED + [simplified(sentence.text, stand_ins) for _, sentence in found]
    command = ["java", "-cp", os.path.join(jars, "*"), os.path.join(HERE, "Grammar.java"), *disabled]
    done = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        print("LanguageTool failed")
        return True
    missed = set(range(len(PLANTED)))
    errors = 0
    for line in done.stdout.splitlines():
        number, rule, where, message = line.split("\t")
        number = int(number)
        if "CODE CODE" in where:  # two names, not a repeated word
            continue
        if number < len(PLANTED):
            missed.discard(number)
            continue
        errors += 1
        path, sentence = found[number - len(PLANTED)]
        print(f"{path}:{sentence.line}: {rule}: \"{where}\": {message}\n    {sentence.text}")
    for number in missed:
        print(f"LanguageTool does not find the error in: {PLANTED[number]}")
    print(f"{errors} errors of grammar in {len(found)} sentences")
    return errors > 0 or bool(missed)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]))
