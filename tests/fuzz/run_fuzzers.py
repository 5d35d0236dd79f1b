"""Runs libFuzzer programs, one per processor at a time, and counts their executions.

usage: run_fuzzers.py PROGRAMS FOUND SECONDS [EXECUTIONS]

PROGRAMS is the folder of the programs. New inputs, and those that break something, go to the folder FOUND. The programs
run the corpus, and then new inputs for this number of seconds in all. Or they run this number of inputs in all: each
program an equal part, for SECONDS at most, and then the two quickest the missing ones. Fails if a program fails.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

INTERRUPTED = 72  # is the status of an interrupted program
# Makes malloc keep freed memory, because each input makes a new timer.
TUNABLES = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"


class Target:
    def __init__(self, corpus, programs, found):
        """Unpacks the corpus, which has an input in each line."""
        self.name = corpus.stem
        self.executions = self.rate = self.finds = 0
        self.failed = False
        kept, new = found / "kept" / self.name, found / "corpus" / self.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        new.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(corpus.read_text(encoding="utf-8").splitlines()):
            (kept / str(number)).write_bytes(bytes.fromhex(line))
        # New inputs go to the first folder.
        self.command = [programs / f"{self.name}_fuzz", new, kept, f"-artifact_prefix={found}/{self.name}-",
                        "-max_len=120", "-timeout=20", "-print_final_stats=1"]

    def run(self, *limits):
        """Runs the program. It prints its statistics even after a find. Prints the rest of its output only then."""
        done = subprocess.run([*self.command, *limits], env={**os.environ, "GLIBC_TUNABLES": TUNABLES}, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", errors="replace")
        stats = dict(re.findall(r"^stat::(\w+): *(\d+)$", done.stdout, re.M))
        self.executions += int(stats.get("number_of_executed_units", 0))
        self.rate = int(stats.get("average_exec_per_sec", 0))
        self.finds += bool(re.search("^SUMMARY: ", done.stdout, re.M))
        self.failed = self.failed or done.returncode != 0
        if done.returncode not in (0, INTERRUPTED):
            print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("#")), file=sys.stderr)


def main(programs, found, seconds, executions=None):
    corpora = sorted(pathlib.Path(__file__).with_name("corpus").glob("*.hex"))
    targets = [Target(corpus, pathlib.Path(programs), pathlib.Path(found)) for corpus in corpora]
    processors = len(os.sched_getaffinity(0))

    def run(some, *limits):
        print("fuzzing", *(target.name for target in some), file=sys.stderr)
        pool = concurrent.futures.ThreadPoolExecutor(processors)
        try:
            list(pool.map(lambda target: target.run(*limits), some))
        finally:
            pool.shutdown(cancel_futures=True)  # after an interruption, no other program starts

    # A run does not repeat the previous one in spite of the fixed seed, because that one added inputs to the corpus.
    if executions is None:
        run(targets, "-seed=1", f"-max_total_time={int(seconds) * processors // len(targets)}")
    else:
        part = -(-int(executions) // len(targets))
        run(targets, "-seed=1", "-entropic=0", f"-runs={part}", f"-max_total_time={seconds}")
        missing = int(executions) - sum(target.executions for target in targets)
        if missing > 0:
            quickest = sorted(targets, key=lambda target: target.rate)[-2:]
            run(quickest, "-seed=2", "-entropic=0", f"-runs={missing // 2 + 1}")
    for target in targets:
        print(f"{target.name}: {target.executions}")
    print(f"{sum(target.executions for target in targets)} executions of {len(targets)} targets, "
          f"{sum(target.finds for target in targets)} finds")
    return any(target.failed for target in targets)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:  # The programs are interrupted too. ./run says so.
        sys.exit(130)
