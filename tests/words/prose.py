"""The prose of a source file or a page: the sentences of its comments, docstrings or paragraphs, with their lines.

Code blocks, code in backticks, addresses and strings are left out. A list item, a table cell and a heading are
paragraphs of their own. Of CHANGELOG.md only the newest release is read.
"""

import io
import os
import re
import tokenize

SLASHES = {"h", "cpp", "rs", "go", "java", "proto", "dox"}
HASHES = {"sh", "build", "txt", "cmake", "options", "ini", "toml", "yml", "pc", "rules", "run", "consumer", "Doxyfile"}
# Data that has no comments.
NOT_READ = re.compile(r"^packaging/symbols/|\.zh-CN\.md$")

STRING_OR_COMMENT = re.compile(
    r'R"(\w*)\(.*?\)\1"|"""(?:.*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\'\n]+|[^\'\\\n])\''
    r"|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)", re.S)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#(?![!{])(.*)")
FENCE = re.compile(r"\s*(?:```|~~~|[@\\](?:end)?(?:code|verbatim)\b)")
ITEM = re.compile(r"(\s*)(?:[-*+]|\d+[.)])\s+")
COMMAND = re.compile(r"\s*[@\\](?:t?param(?:\[\w+\])?\s+\S+|[a-z]+)\s*")
USAGE = re.compile(r"\s*usage: ")
ALIGNED = re.compile(r" +\S.*\S {2,}\S")  # a row of a table without lines
RULER = re.compile(r"[\s=#*_|:-]*$")
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\[\]]*)\](?:\([^)\s]*(?:\s+\"[^\"]*\")?\)|\[[^\]]*\])")
ADDRESS = re.compile(r"https?://[^\s)>]*[^\s)>.,;:]")
TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>\n]*>", re.S)
EMPHASIS = re.compile(r"\*+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
END = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(\[]*[A-Z0-9])|\s·\s")
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|No|St)|\W[A-Z])\.$")


class Sentence:
    def __init__(self, line, text):
        self.line = line
        self.text = text


def ending_of(path):
    return re.split("[./]", path.removesuffix(".in"))[-1]


def is_read(path):
    return not NOT_READ.search(path) and (
        ending_of(path) in SLASHES | HASHES | {"py", "md"} or os.path.basename(path) == "meson_options.txt")


def sentences(path, text):
    """All of a file, in their order."""
    ending = ending_of(path)
    if ending == "md":
        if os.path.basename(path) == "CHANGELOG.md":
            text = "\n## ".join(text.split("\n## ")[:2])
        groups = [list(enumerate(text.splitlines(), 1))]
    elif ending == "py":
        groups = python_comments(text)
    elif ending in SLASHES:
        groups = grouped(slash_comments(text))
    else:
        groups = grouped(hash_comments(text))
    return [sentence for group in groups for paragraph in paragraphs(group, ending != "md")
            for sentence in split(*paragraph, ending == "md")]


def grouped(comments):
    """(line, column, is the line's only text, text) of each line: those of one comment become one list."""
    groups = []
    before = None
    for line, column, alone, text in comments:
        if before and line == before[0] + 1 and column == before[1] and alone:
            groups[-1].append((line, text))
        else:
            groups.append([(line, text)])
        before = line, column
    return groups


def slash_comments(text):
    for match in STRING_OR_COMMENT.finditer(text):
        if not (match["line"] or match["block"]):
            continue
        start = match.start()
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1)
        alone = not text[start - column : start].strip()
        if match["line"]:
            yield line, column, alone, re.sub(r"^///?!?<? ?", "", match["line"])
        else:
            for number, part in enumerate(match["block"][2:-2].splitlines()):
                yield line + number, column, alone or number > 0, re.sub(r"^\s*\*+!? ?|^[*!]<? ?", "", part)


def hash_comments(text):
    for line, whole in enumerate(text.splitlines(), 1):
        for match in HASH_COMMENT.finditer(whole):
            before = whole[: match.start()]
            if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
                yield line, len(before), not before.strip(), match[1].removeprefix("#").removeprefix(" ")
                break


def python_comments(text):
    comments, docstrings = [], []
    is_first = True  # of a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if not token.string.startswith("#!"):
                alone = not token.line[: token.start[1]].strip()
                comments.append((token.start[0], token.start[1], alone, token.string[1:].removeprefix(" ")))
        elif token.type == tokenize.STRING and is_first and token.string.endswith('"""'):
            lines = token.string.split('"""')[1].splitlines()
            indent = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
            docstrings.append([(token.start[0] + number, line if number == 0 else line[indent:])
                               for number, line in enumerate(lines)])
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            is_first = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return sorted(grouped(comments) + docstrings)


def paragraphs(lines, in_comment):
    """Yields (first line, text) of each; the text has a newline where the file has one."""
    first, parts = 0, []
    in_code = False
    # The indent from which on a line is code: in the midst of a paragraph, and at the beginning of one.
    after_least = 2 if in_comment else 4
    margin, after_blank = 4, after_least
    for line, text in [*lines, (0, "")]:
        if FENCE.match(text):
            in_code = not in_code
            text = ""
        text = re.sub(r"^\s*>\s?", "", text)
        item = ITEM.match(text)
        indent = len(text) - len(text.lstrip())
        is_indented = indent >= (margin if parts else after_blank) and (in_comment or not parts)
        is_code = in_code or (is_indented and not item) or (in_comment and ALIGNED.match(text))
        is_break = is_code or RULER.match(text) or USAGE.match(text) or re.match(r"\[[^\]]+\]: ", text)
        is_row = text.lstrip().startswith("|")
        command = COMMAND.match(text)
        heading = re.match(r"#+ ", text)
        if parts and (is_break or is_row or item or command or heading):
            yield first, "\n".join(parts)
            parts = []
        if is_break:
            continue
        if is_row:
            for cell in re.split(r"(?<!\\)\|", text):
                yield line, cell
            continue
        if not parts:
            first = line
        start = item or command or heading
        if item:
            margin, after_blank = len(item[0]) + 4, len(item[0]) + after_least
        elif not indent:
            margin, after_blank = 4, after_least
        parts.append(text[start.end() :] if start else text.strip())
        if heading:
            yield first, "\n".join(parts)
            parts = []


def keep_lines(replacement):
    return lambda match: replacement + "\n" * match[0].count("\n")


def plain(text, is_page):
    """Without markup, and with as many lines."""
    text = CODE.sub(keep_lines("CODE"), text)
    if is_page:
        text = TAG.sub(keep_lines(""), text.replace("<br>", " · "))
    text = IMAGE.sub("", text)
    text = LINK.sub(lambda match: match[1], text)
    text = ADDRESS.sub("URL", text)
    return EMPHASIS.sub("", text) if is_page else text


def split(line, text, is_page):
    text = plain(text, is_page)
    start = 0
    for end in [*END.finditer(text), None]:
        if end and ABBREVIATION.search(text[start : end.start() + 1]):
            continue
        part = text[start : end.end() if end else len(text)]
        if part.strip():
            leading = len(part) - len(part.lstrip())
            yield Sentence(line + text.count("\n", 0, start + leading), " ".join(part.split()))
        start = end.end() if end else start
