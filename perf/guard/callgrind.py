"""Counting with valgrind, by function."""

# What is asked for: instructions, and bus events, which are the locked instructions.
EVENTS = ["Ir", "Ge"]


def command(out, functions):
    """The beginning of a command line that counts inside `functions` (a pattern) alone and writes to the file `out`."""
    return [
        "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={functions}",
        "--collect-atstart=no", "--collect-bus=yes", "--compress-strings=no", "--compress-pos=no",
    ]


def inclusive(out, prefix):
    """{name without the prefix: [count of each event]} of the functions whose names begin with `prefix`; what they call
    is included. They must not call each other.

    The format: "fn=NAME" begins a function; then come lines "POSITION COUNT...", and for a call "calls=..." followed by
    one such line, which has the counts of all that the call did. Counts that are zero may be left out at the end.
    """
    totals = {}
    current = None
    with open(out, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("events:") and line.split()[1:] != EVENTS:
                raise ValueError(f"{out}: unexpected {line.strip()}")
            if line.startswith("fn="):
                name = line[len("fn="):].strip()
                current = totals.setdefault(name[len(prefix):], [0] * len(EVENTS)) if name.startswith(prefix) else None
            elif current is not None and line[0].isdigit():
                for i, count in enumerate(line.split()[1:]):
                    current[i] += int(count)
    return totals
