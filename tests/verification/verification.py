"""Runs the parts of parts.ini, keeps their results, and writes docs/verification.md.

usage: verification.py SOURCE_ROOT [PART...]

Without names, runs the parts that have not passed on the present tree, so that an interrupted run goes on where it
stopped. Named parts run in any case. Results are kept in the folder build, the output in build/verification/PART.log.
The present tree is all files that git knows or would add, without docs/verification.md. Exits with 1 if a part fails,
and with 130 if it was interrupted.
"""

import configparser
import datetime
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

PARTS = "tests/verification/parts.ini"
PAGE = "docs/verification.md"
UNNOTICEABLE = "tests/mutation/unnoticeable.txt"
RESULTS = "build/verification.json"
LOGS = "build/verification"
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_END = 30  # that an interrupted part has, before it is killed


def git(root, *arguments, index=None):
    environment = {**os.environ, **({"GIT_INDEX_FILE": index} if index else {})}
    command = ["git", "-C", root, "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment).stdout.strip()


def tree_of(root, with_changes=True, without=(PAGE,)):
    """Returns git's name of the tree without some files, with or without uncommitted changes."""
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index")
        git(root, "read-tree", "HEAD", index=index)
        if with_changes:
            git(root, "add", "--all", index=index)
        git(root, "rm", "--cached", "--quiet", "--ignore-unmatch", *without, index=index)
        return git(root, "write-tree", index=index)


def seed_of(root):
    """Returns a number that differs from tree to tree. Only two files do not change it: the page, and the list of faults
    that no test can notice. So if some of the chosen faults are listed, the others stay, and new ones take the places
    of the listed.
    """
    return int(tree_of(root, without=(PAGE, UNNOTICEABLE))[:6], 16)


def read_parts(root):
    parts = configparser.ConfigParser(interpolation=None)
    with open(os.path.join(root, PARTS), encoding="utf-8") as file:
        parts.read_file(file)
    return parts


def read_results(root):
    try:
        with open(os.path.join(root, RESULTS), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def replace(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def cannot_run(part):
    """Returns the reason, or nothing if the part can run."""
    program = part.get("needs")
    if program and not shutil.which(os.environ.get(program.upper()) or program):
        return f"{program} is not installed"
    return ""


def command_of(part, seed):
    return part["command"].format(seed=seed)


def result_line(part, log):
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [" ".join(line.split()) for line in file if line.strip()]
    telling = [line for line in lines if "result" in part and re.search(part["result"], line)] or lines[-1:]
    return "; ".join(telling) or "no output"


# --- The page ------------------------------------------------------------------------------------------------------


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def code(text):
    return "`" + text.replace("`", "'").replace("|", "/") + "`"


def state_of(part, result, tree):
    if result and result["tree"] == tree:
        return "passed" if result["passed"] else "failed"
    return "cannot run" if cannot_run(part) else "not run"


def row(name, part, result, tree, seed):
    state = state_of(part, result, tree)
    if state in ("passed", "failed"):
        told = f"{state}: {code(result['result'])}"
    elif state == "cannot run":
        told = f"not run: {cannot_run(part)}"
    else:
        told = "not run"
        if result:
            told += f" on this tree; an earlier one {'passed' if result['passed'] else 'failed'}"
    cells = [name, " ".join(part["covers"].split()), code(result["command"] if result else command_of(part, seed))]
    cells += [result["date"], duration(result["seconds"]), result["commit"]] if result else ["", "", ""]
    return "| " + " | ".join([*cells, told]) + " |"


def page(root, parts, results, tree):
    states = [state_of(parts[name], results.get(name), tree) for name in parts.sections()]
    counts = ", ".join(f"{states.count(state)} {text}" for state, text in (
        ("passed", "passed"), ("failed", "failed"), ("not run", "were not run"), ("cannot run", "cannot run here"))
        if state in states)
    paragraphs = [
        "`./run check all` runs every check that there is, and writes this page after each. An interrupted run goes on "
        "where it stopped. `./run check all PART...` repeats the named checks.",
        f"Of {len(states)} checks of the tree {code(tree[:10])}, {counts}. The tree is the commit without this page. The "
        f"machine: {platform.system()} on {platform.machine()}, {os.cpu_count()} processors.",
    ]
    lines = ["# Verification"]
    for paragraph in paragraphs:
        lines += ["", *textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)]
    lines += ["", "| check | covers | command | date (UTC) | took | commit | result |",
              "| -- | -- | -- | -- | -- | -- | -- |"]
    seed = seed_of(root)
    lines += [row(name, parts[name], results.get(name), tree, seed) for name in parts.sections()]
    return "\n".join(lines) + "\n"


# --- The run -------------------------------------------------------------------------------------------------------


def say(text):
    print(text, file=sys.stderr, flush=True)


def end_group(process):
    """Ends the process and its group, which may end processes of other groups meanwhile, as Meson does."""
    last = time.monotonic() + SECONDS_TO_END
    try:
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < last:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        pass


def run_part(root, name, part, tree, commit):
    """Returns the result of the part, of the tree on which it was started."""
    log = os.path.join(root, LOGS, name + ".log")
    command = command_of(part, seed_of(root))
    say(f"== {name}: {command}, about {part['takes']}; its output: {os.path.relpath(log, root)}")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    begun = time.monotonic()
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "wb") as output:
        # In a group of its own, so that an interruption ends all of its processes.
        process = subprocess.Popen(shlex.split(command), cwd=root, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=allow_interrupts)
        try:
            allow_interrupts()
            passed = process.wait() == 0
        except KeyboardInterrupt:
            refuse_interrupts()
            end_group(process)
            raise
        refuse_interrupts()
    seconds = time.monotonic() - begun
    line = result_line(part, log)
    if tree_of(root) != tree:
        passed, line = False, f"the tree changed during the check; {line}"
    return {"tree": tree, "passed": passed, "command": command, "commit": commit, "date": date,
            "seconds": seconds, "result": line}


def run_parts(root, parts, names):
    tree = tree_of(root)
    commit = git(root, "rev-parse", "--short=10", "HEAD")
    if tree != tree_of(root, with_changes=False):
        commit += " with changes"
    results = read_results(root)

    def write_page():
        replace(os.path.join(root, PAGE), page(root, parts, results, tree))

    write_page()
    status = 0
    for name in names or parts.sections():
        part = parts[name]
        if cannot_run(part):
            say(f"== {name}: not run: {cannot_run(part)}")
            continue
        if not names and state_of(part, results.get(name), tree) == "passed":
            say(f"== {name}: passed before")
            continue
        try:
            result = run_part(root, name, part, tree, commit)
        except KeyboardInterrupt:
            say(f"interrupted: {name} keeps its earlier result; ./run check all goes on with it")
            return 130
        results = {**read_results(root), name: result}
        replace(os.path.join(root, RESULTS), json.dumps(results, indent=1) + "\n")
        write_page()
        say(f"{name}: {'passed' if result['passed'] else 'FAILED'}: {result['result']}")
        if not result["passed"]:
            status = 1
    for name in parts.sections():
        print(f"{name}: {state_of(parts[name], results.get(name), tree)}")
    return status


def interrupt(number, frame):
    raise KeyboardInterrupt


# Interrupts wait, except while a part runs: otherwise one that comes while a process starts would leave it running.
def refuse_interrupts():
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)


def allow_interrupts():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def main(root, *names):
    parts = read_parts(root)
    wrong = [name for name in names if name not in parts.sections()]
    if wrong:
        say(f"run: no such part of all: {' '.join(wrong)} (there are: {' '.join(parts.sections())})")
        return 2
    refuse_interrupts()
    for number in INTERRUPTS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            signal.signal(number, interrupt)
    return run_parts(root, parts, names)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
