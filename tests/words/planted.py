"""The self-test of words.py: files with sentences that it must find, and others that it must not."""

import prose

LONG = " ".join(["one"] * 31)
LONGEST = " ".join(["one"] * 30)

# The ending of a file, its text, and the (line, reason) that are to be found in it.
CASES = [
    # Each pattern.
    ("md", "Who has the deadline passes it.", [(1, '"Who"')]),
    ("md", "It is for whoever asks, and for those who wait.", [(1, '"whoever"'), (1, '"who"')]),
    ("md", "The caller, who is busy with it, destroys it.", [(1, '"who"')]),
    ("md", "What is used is bounded by what a thread holds.", [(1, '"What is"'), (1, '"what a"')]),
    ("md", "It runs what it was given, what had come, what has come, what was due and what the rest is.",
     [(1, f'"what {word}"') for word in ("it", "had", "has", "was", "the")]),
    ("md", "# What it does\n\nIt runs.", [(1, '"What it"')]),
    ("md", "As above, but later.", [(1, '"As above"')]),
    ("md", "It throws. The same for a task.", [(1, '"The same"')]),
    ("md", f"{LONG}.", [(1, "31 words")]),
    # Correct sentences.
    ("md", "Users who come from Asio read this. A user of the library who waits is blocked.", []),
    ("md", "Who runs the task? What is a tick?", []),
    ("md", "# What is a tick?\n\nA tick is a step of the wheel.", []),
    ("md", "Somewhat as above, the same thread runs it. It does what was_due() says.", []),
    ("md", f"{LONGEST}. O{LONGEST}.", []),
    ("md", "The tick, e.g. The one that is next, is due.", []),
    # Pages: paragraphs, lists, tables, code, links.
    ("md", f"{LONGEST}\n\n{LONGEST}\n- {LONGEST}\n- {LONGEST}\n\n| {LONGEST} | {LONGEST} |", []),
    ("md", "- one\n- a long\n  item, what\n  is due", [(2, '"what is"')]),
    ("md", "One.\nTwo. The worker\nruns it. The same\nfor three.", [(3, '"The same"')]),
    ("md", "One `what is` and ``what is``.\n\n```\nwhat is\n```\n\n    what is", []),
    ("md", "See [what is](there.md) and ![what is](one.svg).", [(1, '"what is"')]),
    ("md", "> A quotation of\n> what is due", [(1, '"what is"')]),
    ("CHANGELOG.md", "# Changelog\n\n## 2\n\nWhat is new.\n\n## 1\n\nWhat is old.", [(5, '"What is"')]),
    ("guide.zh-CN.md", "What is", None),
    # Comments.
    ("h", '/// One,\n/// what is two.\nint three;  // what the four', [(1, '"what is"'), (3, '"what the"')]),
    ("cpp", 'auto s = "// what is";\nauto r = R"(// what is)"; /* what\n * is */ char c = \'"\'; // what a',
     [(2, '"what is"'), (3, '"what a"')]),
    ("h", "/// One:\n///\n///     what is\n///\n/// @param one what is two", [(5, '"what is"')]),
    ("h", "/// One:\n///\n///   what is\n///     what is\n///\n/// what is", [(6, '"what is"')]),
    ("sh", "# Options:\n#   one  what\n#   is it  what is", []),
    ("h", "int a;  // one what\nint b;  // is two", []),
    ("h", "int a;  // one what\n        // is two", [(1, '"what is"')]),
    ("py", '"""What is.\n\nusage: what a\n       what a\n\n    what a\nWhat the.\n"""\n\n'
     'TEXT = """what is"""  # what was\n\n\ndef f():\n    """What has."""\n',
     [(1, '"What is"'), (7, '"What the"'), (10, '"what was"'), (14, '"What has"')]),
    ("sh", '#!/bin/sh\n# one what\n# is two\necho "# what is" $# # what a', [(2, '"what is"'), (4, '"what a"')]),
    ("meson.build", "a = 1 # what is\nb = '# what is'", [(1, '"what is"')]),
    ("CMakeLists.txt", "# What is.", [(1, '"What is"')]),
    ("Config.cmake.in", "# What is.", [(1, '"What is"')]),
    ("json", "# What is.", None),
]


def test(reasons):
    wrong = 0
    for name, text, expected in CASES:
        path = name if "." in name else f"planted.{name}"
        found = None
        if prose.is_read(path):
            found = [(sentence.line, reason) for sentence in prose.sentences(path, text)
                     for reason in reasons(sentence.text)]
        if found != expected:
            wrong += 1
            print(f"{path}: {text!r}: {found} (expected: {expected})")
    print(f"{len(CASES) - wrong} of {len(CASES)} planted texts are judged right")
    return wrong != 0
