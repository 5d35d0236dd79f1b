#!/usr/bin/env python3
"""Keeps the table in orders.md. It has each memory order of the library that is not relaxed, and each call of
AsymmetricFence. For each it names the model that notices the weakened order, or gives a reason.

usage: orders.py ROOT                     compares the table with the sources.
       orders.py ROOT --self-test         names the functions of some code, and reads a table.
       orders.py ROOT --table             puts the rows into the order of the sources; adds new ones, with "?".
       orders.py ROOT --renew PROGRAM...  weakens the orders without a model, in each program; writes the table.
       orders.py ROOT --check PROGRAM...  has each model weaken the orders that it notices by the table.
"""

import os
import re
import subprocess
import sys

LIBRARY = "hashed_wheel_timer"
PAGE = "tests/models/orders.md"
HEAD = ["| where | what | order | noticed by, or why it stands |", "| -- | -- | -- | -- |"]
UNKNOWN = "?"
FOUND = re.compile(r"`(\w+)`")  # a cell that names the model which notices the weakening
GENMC = re.compile(r"GenMC `(\w+)`")
MODELS = "tests/models"

OPERATION = re.compile(
    r"([\w>.\-\[\]]+?)(?:\.|->)(load|store|exchange|fetch_\w+|compare_exchange_\w+|wait|state)\s*\(|"
    r"AsymmetricFence::(light|heavy|full)\s*\(|atomic_(thread|signal)_fence\s*\("
)
ORDER = re.compile(r"memory_order_(\w+)")
NOT_CODE = re.compile(
    r'^[ \t]*#(?:\\\n|[^\n])*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S | re.M
)
NO_FUNCTION = {"if", "for", "while", "switch", "catch", "do", "else", "return", "noexcept", "requires"}
NOWHERE = "-"
HALVES = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"]}
# A load or a store cannot be acq_rel.
HALF_OF_SEQ_CST = {"load": "acquire", "store": "release"}


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def end_of_call(code, at):
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return len(code)


def without_inner_calls(arguments):
    while "(" in arguments:
        shorter = re.sub(r"\([^()]*\)", "", arguments)
        if shorter == arguments:
            break
        arguments = shorter
    return arguments


def functions(code):
    """(begin, end, name) of each function, the outer ones first. It begins with its name: a constructor initialises
    members before its body."""
    found, stack, since = [], [], 0
    for i, character in enumerate(code):
        if character == "{":
            head = code[since:i]
            match = re.search(r"(?<!\w)((?:\w+::)*~?\w+|operator\S+)\s*\((?!\s*\*)", head)
            # A requires clause, a lambda or an initialiser has no name of its own.
            name = match[1] if match and match[1] not in NO_FUNCTION and "](" not in head.split(match[1])[0] else None
            stack.append((since + match.start() if name else i, name))
            since = i + 1
        elif character == "}" and stack:
            begin, name = stack.pop()
            if name:
                found.append((begin, i, name))
            since = i + 1
        elif character == ";":
            since = i + 1
    return sorted(found)


def function_at(at, bodies):
    names = [name for begin, end, name in bodies if begin <= at < end and not name.startswith(("HWT_", "alignas"))]
    return names[-1] if names else NOWHERE


def self_test():
    """Checks that functions are named correctly: each `<>` is in the function beside it. Checks that a page is read and
    written correctly. Prints each difference."""
    examples = [
        ("class alignas(64) A {\n A() noexcept : a_(b(<>)), c_(0) {}\n};", "A"),
        ("namespace a {\n#if defined(B)\nvoid C::d() {\n if (e(<>)) f();\n}\n#endif\n}", "C::d"),
        ("#if defined(A)\nnamespace b {\n#endif\nvoid <>C::d() { e(); }\n}", "C::d"),
        ("#if defined(A)\nnamespace b {\n#endif\nint c{<>};\n}", NOWHERE),
        ("C::~C() { const auto d = [&](int e) { f(<>); }; }", "C::~C"),
    ]
    wrong = []
    for text, expected in examples:
        code = NOT_CODE.sub(blank, text)
        found = function_at(code.index("<>"), functions(code.replace("<>", "")))
        wrong += [f"{expected}: {found}"] if found != expected else []
    uses = [Use("a/b.h", "c", "load of d_", ["acquire"], (1, 1), (0, 0)),
            Use("a/b.h", "c", "exchange of d_", ["acq_rel"], (2, 2), (0, 0)),
            Use("a/b.h", "c", "load of d_", ["acquire"], (3, 3), (0, 0))]
    rows = ["| `b.h`: `c` | `d_.load` | acquire | `one` |",
            "|  | `d_.exchange` | acq_rel | release: `two`<br>acquire: Needed: for this. |",
            "|  | `d_.load` | acquire | Could be relaxed. |"]
    page = "\n".join(["# A page", "", *HEAD, *rows, "", "The end."])
    said, stale = said_by(page, uses)
    expected = ["`one`", "`two`", "Needed: for this.", "Could be relaxed."]
    wrong += [f"read: {said}"] if list(said.values()) != expected or stale else []
    wrong += ["a page is not written as it was read"] if Table(page).text(uses, said) != page else []
    said, stale = said_by(page, uses[:2])
    wrong += [f"stale: {stale}"] if stale != ["`b.h`: `c` | `d_.load` | acquire"] else []
    said, stale = said_by(page.replace("`one`", UNKNOWN), uses)
    wrong += [f"unknown: {said}"] if list(said.values()).count(UNKNOWN) != 1 or stale else []
    print("\n".join(wrong) or f"{len(examples)} functions named, a page read and written")
    return bool(wrong)


class Use:
    """An operation with an order that is not relaxed, or a fence."""

    def __init__(self, file, function, operation, orders, lines, span):
        self.file, self.function, self.operation, self.orders = file, function, operation, orders
        self.lines, self.span = lines, span

    def row(self):
        """The first three cells of its row."""
        what = ".".join(reversed(self.operation.split(" of ")))
        order = ", ".join(self.orders) if self.orders else "fence"
        return f"`{os.path.basename(self.file)}`: `{self.function}`", f"`{what}`", order

    def weakenings(self):
        if not self.orders:
            return ["gone"]
        order, operation = self.orders[0], self.operation.split(" ")[0]
        weaker = [HALF_OF_SEQ_CST.get(operation, "acq_rel")] if order == "seq_cst" else HALVES.get(order, [])
        left = [f"{order} {half}" for half in weaker]
        # For one order alone, the order on failure is the same without its release half.
        failure = self.orders[1] if len(self.orders) > 1 else {"acq_rel": "acquire"}.get(self.orders[0], self.orders[0])
        if self.operation.startswith("compare") and failure == "acquire":
            left.append("failure acquire relaxed")
        return left

    def key(self, weakening):
        """Without the folder, so that a file may move."""
        return f"{os.path.basename(self.file)} | {self.function} | {self.operation} | {weakening}"


def uses_in(root):
    uses = []
    for directory, _, names in sorted(os.walk(os.path.join(root, LIBRARY))):
        for name in sorted(names):
            if not name.endswith((".h", ".cpp")):
                continue
            path = os.path.join(directory, name)
            with open(path, encoding="utf-8") as file:
                code = NOT_CODE.sub(blank, file.read())
            bodies = functions(code)
            for match in OPERATION.finditer(code):
                end = end_of_call(code, match.end() - 1)
                orders = ORDER.findall(without_inner_calls(code[match.end() : end])) if not match[3] else []
                if match[2] and match[2] == "state" and not orders:
                    continue
                if not match[3] and all(order == "relaxed" for order in orders):
                    continue
                operation = match[2] or match[3] or f"atomic_{match[4]}_fence"
                shown = os.path.relpath(path, os.path.join(root, LIBRARY)).replace(os.sep, "/")
                first = code.count("\n", 0, match.start()) + 1
                last = code.count("\n", 0, end) + 1
                if match[1]:
                    operation = f"{match[2]} of {re.split(r'[.>]', match[1])[-1].split('[')[0]}"
                function = function_at(match.start(), bodies)
                uses.append(Use(shown, function, operation, orders, (first, last), (match.start(), end)))
    return uses


def known_keys(uses):
    """In the order of the sources. Equal operations of one function are numbered."""
    keys, times = {}, {}
    for use in uses:
        for weakening in use.weakenings():
            key = use.key(weakening)
            times[key] = times.get(key, 0) + 1
            keys[key if times[key] == 1 else f"{key} #{times[key]}"] = (use, weakening)
    return keys


def lost_by(weakening):
    """The missing half of a weakened order, as a cell of several parts names it. Of a fence, nothing is left to name."""
    if weakening.startswith("failure"):
        return "on failure"
    return {"gone": "", "acq_rel acquire": "release", "acq_rel release": "acquire"}.get(weakening, weakening.split()[0])


class Table:
    """The rows of orders.md, by their first three cells. Several uses may have the same three, in their order."""

    def __init__(self, text):
        lines = text.split("\n")
        begin = lines.index(HEAD[1]) + 1
        end = next((i for i in range(begin, len(lines)) if not lines[i].startswith("|")), len(lines))
        self.before, self.after = lines[: begin - len(HEAD)], lines[end:]
        self.rows, where = {}, ""
        for line in lines[begin:end]:
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            where = cells[0] or where
            self.rows.setdefault((where, *cells[1:3]), []).append(parts_of(cells[3]))

    def says(self, row, number, weakening):
        """The text about a weakening. `number` counts the uses that have the same row."""
        uses = self.rows.get(row, [])
        parts = uses[number] if number < len(uses) else {}
        return parts.get("", parts.get(lost_by(weakening), UNKNOWN))

    def text(self, uses, said):
        """The page with these uses; `said` is what to say, by key."""
        lines, before = [], None
        for keys in keys_by_use(uses):
            use = keys[0][1]
            parts = {lost_by(weakening): said[key] for key, _, weakening in keys}
            whole = len(set(parts.values())) == 1
            cell = next(iter(parts.values())) if whole else "<br>".join(f"{lost}: {why}" for lost, why in parts.items())
            where, what, order = use.row()
            lines.append(f"| {'' if where == before else where} | {what} | {order} | {cell} |")
            before = where
        return "\n".join([*self.before, *HEAD, *lines, *self.after])


def parts_of(cell):
    """The text of the cell for each missing half; under "" if it has one text for all."""
    parts = [part.split(": ", 1) for part in cell.split("<br>")]
    named = all(len(part) == 2 and part[0] in ("release", "acquire", "seq_cst", "on failure") for part in parts)
    return dict(parts) if named else {"": cell}


def keys_by_use(uses):
    """[(key, use, weakening)] of each use."""
    grouped = {}
    for key, (use, weakening) in known_keys(uses).items():
        grouped.setdefault(id(use), []).append((key, use, weakening))
    return list(grouped.values())


def read_page(root):
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        return file.read()


def said_by(page, uses):
    """The texts of the page by key, and the rows without a use."""
    written = Table(page)
    said, counts = {}, {}
    for keys in keys_by_use(uses):
        row = keys[0][1].row()
        number = counts.get(row, 0)
        counts[row] = number + 1
        said.update((key, written.says(row, number, weakening)) for key, _, weakening in keys)
    stale = [" | ".join(row) for row, parts in written.rows.items() if counts.get(row, 0) < len(parts)]
    return said, stale


def write_page(root, uses, said):
    text = Table(read_page(root)).text(uses, said)
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
        file.write(text)


def found_by(root):
    """The model that notices a weakening, by key."""
    said, _ = said_by(read_page(root), uses_in(root))
    found = {key: FOUND.fullmatch(text) for key, text in said.items()}
    return {key: match[1] for key, match in found.items() if match}


def found_by_genmc(root):
    """The program for GenMC that alone notices a weakening, by key."""
    said, _ = said_by(read_page(root), uses_in(root))
    return {key: GENMC.fullmatch(text)[1] for key, text in said.items() if GENMC.fullmatch(text)}


def name_for_checker(use, weakening, line):
    operation = use.operation.split(" ")[0]
    return f"{LIBRARY}/{use.file}:{line} {operation}" + ("" if weakening == "gone" else f" {weakening}")


def met_by(program, keys):
    """The orders that the model meets: the name in its checker, by key."""
    answer = subprocess.run([program, "--places"], capture_output=True, text=True, check=False)
    places = [line for line in answer.stdout.splitlines() if line.startswith(LIBRARY)]
    if answer.returncode != 0 or not places:
        sys.exit(f"{program}: {answer.stdout}{answer.stderr}")
    met = {}
    for key, (use, weakening) in keys.items():
        first, last = use.lines
        for line in range(first, last + 1):
            if name_for_checker(use, weakening, line) in places:
                met[key] = name_for_checker(use, weakening, line)
    return met


def weaken(program, names):
    """The names that it notices."""
    if not names:
        return set()
    answer = subprocess.run([program, "--orders", *names], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(f"{program}: {answer.stdout}{answer.stderr}")
    results = dict(line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
    return {name for name in names if results.get(name, "NOT FOUND") != "NOT FOUND"}


def model_of(program):
    return os.path.basename(program).removesuffix(".exe").removesuffix("_model")


def renew(root, uses, programs):
    keys = known_keys(uses)
    said, stale = said_by(read_page(root), uses)
    print("".join(f"dropped: {row}\n" for row in stale), end="")
    for program in programs:
        met = {key: name for key, name in met_by(program, keys).items() if not FOUND.fullmatch(said[key])}
        noticed = weaken(program, list(met.values()))
        said.update((key, f"`{model_of(program)}`") for key, name in met.items() if name in noticed)
        print(f"{model_of(program)}: {len(noticed)} of {len(met)}", flush=True)
        write_page(root, uses, said)
    if not programs:
        write_page(root, uses, said)


def check(root, keys, programs):
    found, good = found_by(root), True
    for program in programs:
        met = met_by(program, keys)
        own = {key: met.get(key, "?") for key, model in found.items() if model == model_of(program)}
        noticed = weaken(program, list(own.values()))
        for key, name in own.items():
            if name not in noticed:
                print(f"{model_of(program)}: does not notice {key}")
                good = False
        print(f"{model_of(program)}: notices {len(noticed)} of {len(own)}", flush=True)
    return good


def compare(root, uses):
    said, stale = said_by(read_page(root), uses)
    wrong = [f"{PAGE}: no such order in the sources: {row}" for row in stale]
    for key, (use, _) in known_keys(uses).items():
        if said[key] == UNKNOWN:
            wrong.append(f"{PAGE}: neither a model that notices it nor a reason: {key}")
        if said[key].startswith("`") and not FOUND.fullmatch(said[key]):
            wrong.append(f"{PAGE}: more than the name of a model: {key}: {said[key]}")
        if use.function == NOWHERE:
            wrong.append(f"orders.py finds no function around it: {key}")
    names = {}
    for use in uses:
        names.setdefault(os.path.basename(use.file), set()).add(use.file)
    wrong += [f"two files of one name: {' '.join(sorted(files))}" for files in names.values() if len(files) > 1]
    wrong += [f"{PAGE}: no model {path}" for path in models_named(said.values())
              if not os.path.exists(os.path.join(root, path))]
    return wrong


def models_named(texts):
    named = set()
    for text in texts:
        if model := FOUND.fullmatch(text):
            named.add(f"{MODELS}/{model[1]}_model.cpp")
        if program := GENMC.fullmatch(text):
            named.add(f"{MODELS}/genmc/{program[1]}.cpp")
    return sorted(named)


def main(root, action=None, *programs):
    if action == "--self-test":
        return self_test()
    uses = uses_in(root)
    if action in ("--renew", "--table"):
        renew(root, uses, programs)
    elif action == "--check":
        return not check(root, known_keys(uses), programs)
    else:
        wrong = compare(root, uses)
        print("\n".join(wrong) or f"{len(known_keys(uses))} ways to weaken an order, each with a model or a reason")
        return bool(wrong)
    return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
