"""Runs the parts of parts.ini, and keeps their results on docs/verification.md.

usage: verification.py SOURCE_ROOT [PART...]
       verification.py SOURCE_ROOT --list     tells the state of each part, and runs none

Without names, runs the parts that are stale or have not passed, so that an interrupted run goes on where it stopped.
Named parts run in any case. A part is stale if its command or a file has changed that it depends on. The page has a
digest of both for each part. Files are those that git knows or would add, without the page. The output of a part is in
build/verification/PART.log. Exits with 1 if a part fails, and with 130 if it was interrupted.
"""

import configparser
import datetime
import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "words"))
import prose  # noqa: E402

PARTS = "tests/verification/parts.ini"
PAGE = "docs/verification.md"
LOGS = "build/verification"
COLUMNS = ["check", "covers", "command", "date (UTC)", "took", "machine", "commit", "digest", "result"]
DIGEST = re.compile(r"[0-9a-f]{12}")
STALE = "stale; "
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_END = 30  # that an interrupted part has, before it is killed


def git(root, *arguments):
    command = ["git", "-C", root, "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.strip()


def seed_of(root):
    """Returns a number that stays until the next version."""
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as file:
        version = re.search(r"\bversion: '([\d.]+)'", file.read())[1]
    return int("".join(f"{int(number):02}" for number in version.split(".")))


def read_parts(root):
    """Returns the parts, with complete commands and paths."""
    parts = configparser.ConfigParser(interpolation=None, default_section="paths")
    with open(os.path.join(root, PARTS), encoding="utf-8") as file:
        parts.read_file(file)
    for name in parts.sections():
        for key in {"command", "code", "text"} & {*parts[name]}:
            parts[name][key] = parts[name][key].format(seed=seed_of(root), **parts.defaults())
    return parts


# --- Staleness -----------------------------------------------------------------------------------------------------


@functools.cache
def code_of(kind, text):
    """Returns the text of a file without comments, or the code blocks of a page. Comments for clang-tidy stay."""
    if kind == ".md":
        return "".join(re.findall(r"^```.*?^```$", text, re.M | re.S))
    if kind not in (".h", ".cpp"):
        return text
    text = prose.STRING_OR_COMMENT.sub(
        lambda match: " " if (match["line"] or match["block"]) and "NOLINT" not in match[0] else match[0], text)
    return "\n".join(line for line in map(str.rstrip, text.splitlines()) if line)


def listed(root, command, paths):
    """Returns the names that the command of git prints for the paths, without the page."""
    return git(root, *command, "-z", "--", *paths, f":!{PAGE}").split("\0") if paths else []


def files_of(root, paths):
    names = listed(root, ["ls-files", "--cached", "--others", "--exclude-standard"], paths)
    return sorted(name for name in {*names} if os.path.isfile(os.path.join(root, name)))


def digest_of(root, part):
    """Returns a digest of the command, and of the files that the part depends on: their names, modes and contents."""
    digest = hashlib.sha256(part["command"].encode())
    for key in ("code", "text"):
        for name in files_of(root, part.get(key, "").split()):
            path = os.path.join(root, name)
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                text = file.read()
            if key == "code":
                text = code_of(os.path.splitext(name)[1], text)
            content = text.encode("utf-8", "surrogateescape")
            digest.update(f"\0{key} {name} {os.access(path, os.X_OK)} {len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def has_changes(root, part):
    """Whether a file that the part depends on is not as in the commit."""
    paths = [path for key in ("code", "text") for path in part.get(key, "").split()]
    return any(listed(root, ["status", "--porcelain", "--untracked-files=all"], paths))


# --- Results -------------------------------------------------------------------------------------------------------


def read_results(root):
    """Returns the cells of each row of the page that has a result."""
    try:
        with open(os.path.join(root, PAGE), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    rows = [dict(zip(COLUMNS, map(str.strip, line.split("|")[1:-1]))) for line in lines]
    return {row["check"]: {**row, "result": row["result"].removeprefix(STALE)}
            for row in rows if len(row) == len(COLUMNS) and DIGEST.fullmatch(row["digest"])}


def replace(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def cannot_run(root, part):
    """Returns the reason, or nothing if the part can run."""
    program = part.get("needs")
    if program and not shutil.which(os.environ.get(program.upper()) or program):
        return f"{program} is not installed"
    if part.get("of") == "commit" and has_changes(root, part):
        return "it takes the files from the commit, and some have changed"
    return ""


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


def state_of(root, part, result):
    if result and result["digest"] == digest_of(root, part):
        return result["result"].partition(":")[0]
    return "stale" if result else "cannot run" if cannot_run(root, part) else "not run"


def row(root, name, part, result):
    cells = {"check": name, "covers": " ".join(part["covers"].split()), "command": code(part["command"])}
    if result:
        stale = STALE if state_of(root, part, result) == "stale" else ""
        cells = {**result, "covers": cells["covers"], "result": stale + result["result"]}
    else:
        cells["result"] = ": ".join(filter(None, ["not run", cannot_run(root, part)]))
    return "| " + " | ".join(cells.get(column, "") for column in COLUMNS) + " |"


def page(root, parts, results):
    states = [state_of(root, parts[name], results.get(name)) for name in parts.sections()]
    counts = ", ".join(f"{states.count(state)} {state}"
                       for state in ("passed", "failed", "stale", "not run", "cannot run") if state in states)
    paragraphs = [
        "`./run check all` runs every check that is stale or has not passed, and writes this page after each. An "
        "interrupted run goes on where it stopped. `./run check all PART...` repeats the named checks.",
        "A check is stale when its command or a file has changed that it depends on. `tests/verification/parts.ini` has "
        "these files. For most checks, comments of C++ and sentences of pages do not count. The digest of a row is that "
        "of these files. `./run check stale` compares it with the present files.",
        f"The state of {len(states)} checks when this page was written: {counts}.",
    ]
    lines = ["# Verification"]
    for paragraph in paragraphs:
        lines += ["", *textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)]
    lines += ["", "| " + " | ".join(COLUMNS) + " |", "|" + " -- |" * len(COLUMNS)]
    lines += [row(root, name, parts[name], results.get(name)) for name in parts.sections()]
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


def run_part(root, name, part):
    """Returns the result of the part, with the digest of the files with which it was started."""
    log = os.path.join(root, LOGS, name + ".log")
    say(f"== {name}: {part['command']}, about {part['takes']}; its output: {os.path.relpath(log, root)}")
    digest = digest_of(root, part)
    commit = git(root, "rev-parse", "--short=10", "HEAD") + (" with changes" if has_changes(root, part) else "")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    begun = time.monotonic()
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "wb") as output:
        # In a group of its own, so that an interruption ends all of its processes.
        process = subprocess.Popen(shlex.split(part["command"]), cwd=root, stdin=subprocess.DEVNULL, stdout=output,
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
    if digest_of(root, part) != digest:
        passed, line = False, f"files changed during the check; {line}"
    return {"check": name, "command": code(part["command"]), "date (UTC)": date, "took": duration(seconds),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors", "commit": commit,
            "digest": digest, "result": f"{'passed' if passed else 'failed'}: {code(line)}"}


def run_parts(root, parts, names):
    def write_page(results):
        replace(os.path.join(root, PAGE), page(root, parts, results))

    write_page(read_results(root))
    status = 0
    for name in names or parts.sections():
        part = parts[name]
        reason = cannot_run(root, part)
        if not names and state_of(root, part, read_results(root).get(name)) == "passed":
            say(f"== {name}: passed before")
            continue
        if reason:
            say(f"== {name}: not run: {reason}")
            continue
        try:
            result = run_part(root, name, part)
        except KeyboardInterrupt:
            say(f"interrupted: {name} keeps its earlier result; ./run check all goes on with it")
            return 130
        write_page({**read_results(root), name: result})
        say(f"{name}: {result['result']}")
        if not result["result"].startswith("passed"):
            status = 1
    tell_states(root, parts)
    return status


def tell_states(root, parts):
    results = read_results(root)
    for name in parts.sections():
        print(f"{name}: {state_of(root, parts[name], results.get(name))}")


def interrupt(number, frame):
    raise KeyboardInterrupt


# Interrupts wait, except while a part runs: otherwise one that comes while a process starts would leave it running.
def refuse_interrupts():
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)


def allow_interrupts():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def main(root, *names):
    parts = read_parts(root)
    if names == ("--list",):
        return tell_states(root, parts)
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
