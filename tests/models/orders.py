#!/usr/bin/env python3
"""Every memory order of the library that is not relaxed, and every call of AsymmetricFence: what notices it weakened.

orders.py ROOT                     holds orders.txt, arguments.txt and the table of docs/design.md to the sources
orders.py ROOT --self-test         names the functions of some code
orders.py ROOT --table             writes that table
orders.py ROOT --renew PROGRAM...  weakens what nothing is known to notice, in each model in turn; writes orders.txt
orders.py ROOT --check PROGRAM...  has each model weaken what orders.txt says that it notices
"""

import fnmatch
import os
import re
import subprocess
import sys

LIBRARY = "hashed_wheel_timer"
FOUND = "tests/models/orders.txt"
ARGUMENTS = "tests/models/arguments.txt"
DESIGN = "docs/design.md"
BEGIN, END = "<!-- orders: begin -->", "<!-- orders: end -->"

OPERATION = re.compile(
    r"([\w>.\-\[\]]+?)(?:\.|->)(load|store|exchange|fetch_\w+|compare_exchange_\w+|wait|state)\s*\(|"
    r"AsymmetricFence::(light|heavy)\s*\(|atomic_(thread|signal)_fence\s*\("
)
ORDER = re.compile(r"memory_order_(\w+)")
NOT_CODE = re.compile(
    r'^[ \t]*#(?:\\\n|[^\n])*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S | re.M
)
NO_FUNCTION = {"if", "for", "while", "switch", "catch", "do", "else", "return", "noexcept", "requires"}
NOWHERE = "-"
HALVES = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"], "seq_cst": ["acq_rel"]}


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
    """Prints the functions that are named wrongly: each `<>` is in the function beside it."""
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
    print("\n".join(wrong) or f"{len(examples)} functions named")
    return bool(wrong)


class Use:
    """An operation with an order that is not relaxed, or a fence."""

    def __init__(self, file, function, operation, orders, lines, span):
        self.file, self.function, self.operation, self.orders = file, function, operation, orders
        self.lines, self.span = lines, span

    def weakenings(self):
        if not self.orders:
            return ["gone"]
        left = [f"{self.orders[0]} {weaker}" for weaker in HALVES.get(self.orders[0], [])]
        # Of one order alone, a failure has what is left of it without a release.
        failure = self.orders[1] if len(self.orders) > 1 else {"acq_rel": "acquire"}.get(self.orders[0], self.orders[0])
        if self.operation.startswith("compare") and failure == "acquire":
            left.append("failure acquire relaxed")
        return left

    def key(self, weakening):
        return f"{self.file} | {self.function} | {self.operation} | {weakening}"


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
    """In the order of the sources; what a function does twice is numbered."""
    keys, times = {}, {}
    for use in uses:
        for weakening in use.weakenings():
            key = use.key(weakening)
            times[key] = times.get(key, 0) + 1
            keys[key if times[key] == 1 else f"{key} #{times[key]}"] = (use, weakening)
    return keys


def lines_of(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return []


def found_by(root):
    return dict(line.rsplit(": ", 1) for line in lines_of(root, FOUND))


def arguments(root):
    """(pattern, argument): the first that fits holds."""
    return [tuple(part.strip() for part in line.split(" :: ", 1)) for line in lines_of(root, ARGUMENTS)]


def argument_for(key, all_arguments):
    # Not fnmatch's brackets: none are meant.
    return next((argument for pattern, argument in all_arguments if fnmatch.fnmatchcase(key, pattern)), None)


def name_for_checker(use, weakening, line):
    operation = use.operation.split(" ")[0]
    return f"{LIBRARY}/{use.file}:{line} {operation}" + ("" if weakening == "gone" else f" {weakening}")


def met_by(program, keys):
    """What the model meets: the name that its checker has for it, by key."""
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
    results = dict(line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
    return {name for name in names if results.get(name, "NOT FOUND") != "NOT FOUND"}


def model_of(program):
    return os.path.basename(program).removesuffix(".exe").removesuffix("_model")


def renew(root, keys, programs):
    found = {key: model for key, model in found_by(root).items() if key in keys}
    for program in programs:
        met = {key: name for key, name in met_by(program, keys).items() if key not in found}
        noticed = weaken(program, list(met.values()))
        found.update((key, model_of(program)) for key, name in met.items() if name in noticed)
        print(f"{model_of(program)}: {len(noticed)} of {len(met)}", flush=True)
        with open(os.path.join(root, FOUND), "w", encoding="utf-8") as file:
            file.write("# Which model notices each weakened order: what orders.py --renew has found.\n")
            file.writelines(f"{key}: {found[key]}\n" for key in keys if key in found)


def check(root, keys, programs):
    found, good = found_by(root), True
    for program in programs:
        met = met_by(program, keys)
        own = [key for key, model in found.items() if model == model_of(program)]
        noticed = weaken(program, [met[key] for key in own if key in met])
        for key in own:
            if met.get(key) not in noticed:
                print(f"{model_of(program)}: does not notice {key}")
                good = False
        print(f"{model_of(program)}: notices {len(noticed)} of {len(own)}", flush=True)
    return good


def table(root, keys):
    found, all_arguments = found_by(root), arguments(root)
    rows = {}
    for key, (use, weakening) in keys.items():
        lost = {"gone": "", "acq_rel acquire": "release: ", "acq_rel release": "acquire: "}.get(
            weakening, "on failure: " if weakening.startswith("failure") else "")
        who = f"`{found[key]}`" if key in found else argument_for(key, all_arguments) or "?"
        order = ", ".join(use.orders) if use.orders else "fence"
        rows.setdefault((use.file, use.function, use.operation, order, use.lines), []).append((lost, who))
    lines = ["| where | what | order | noticed by, or why it need not be |", "| -- | -- | -- | -- |"]
    before = None
    for (file, function, operation, order, _), parts in rows.items():
        whos = {who for _, who in parts}
        text = whos.pop() if len(whos) == 1 else "; ".join(lost + who for lost, who in parts)
        where = "" if (file, function) == before else f"`{os.path.basename(file)}`: `{function}`"
        before = (file, function)
        what = "`" + ".".join(reversed(operation.split(" of "))) + "`"
        lines.append(f"| {where} | {what} | {order} | {text} |")
    return "\n".join(lines)


def hold(root, keys):
    wrong = []
    found, all_arguments = found_by(root), arguments(root)
    for key in keys:
        if key not in found and argument_for(key, all_arguments) is None:
            wrong.append(f"no model notices it, and {ARGUMENTS} does not say why that cannot matter: {key}")
        if keys[key][0].function == NOWHERE:
            wrong.append(f"orders.py finds no function around it: {key}")
    wrong += [f"{FOUND}: no such order in the sources: {key}" for key in found if key not in keys]
    for pattern, _ in all_arguments:
        if not any(fnmatch.fnmatchcase(key, pattern) and key not in found for key in keys):
            wrong.append(f"{ARGUMENTS}: for nothing: {pattern}")
    design = "\n".join(lines_of_text(root, DESIGN))
    if BEGIN not in design:
        wrong.append(f"{DESIGN}: lacks {BEGIN}")
    elif design.split(BEGIN)[1].split(END)[0].strip() != table(root, keys):
        wrong.append(f"{DESIGN}: the table of orders is out of date: tests/models/orders.py . --table")
    return wrong


def lines_of_text(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read().split("\n")


def write_table(root, keys):
    text = "\n".join(lines_of_text(root, DESIGN))
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    with open(os.path.join(root, DESIGN), "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{table(root, keys)}\n\n{END}{after}")


def main(root, action=None, *programs):
    if action == "--self-test":
        return self_test()
    keys = known_keys(uses_in(root))
    if action == "--renew":
        renew(root, keys, programs)
    elif action == "--check":
        return not check(root, keys, programs)
    elif action == "--table":
        write_table(root, keys)
    elif action == "--list":
        found, all_arguments = found_by(root), arguments(root)
        for key in keys:
            print(key, "::", found.get(key) or argument_for(key, all_arguments) or "?")
    else:
        wrong = hold(root, keys)
        print("\n".join(wrong) or f"{len(keys)} ways to weaken an order, each noticed or argued")
        return bool(wrong)
    return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
