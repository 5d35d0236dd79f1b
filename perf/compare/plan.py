"""The plan of a run: the configurations, the runners of each, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Callable

WORKLOADS = ("churn", "handoff", "expire", "memory", "idle", "far", "late", "rate", "touch")

OURS = "hashed_wheel_timer"
NETTY = "netty"
BRPC = "brpc"
# The ticks of the hierarchical timer, in microseconds. No other wheel has ticks below a millisecond.
SHORT_TICKS = {"ours-10us": 10, "ours-1us": 1}


@dataclass(frozen=True)
class Config:
    """One configuration of a workload. None: the workload does not have this option."""

    workload: str
    threads: int | None = None
    tick_ms: int = 1
    pending: int | None = None
    count: int | None = None
    seconds: int | None = None
    due_ms: int | None = None
    warmup_at_most: int = 1  # rounds; the figures of a JVM are steady after one

    def arguments(self, warmup: int, seed: int) -> list[str]:
        options = {name: getattr(self, name) for name in ("threads", "tick_ms", "count", "pending", "seconds", "due_ms")}
        options.update(warmup=min(warmup, self.warmup_at_most), seed=seed)
        given = [["--" + name.replace("_", "-"), str(value)] for name, value in options.items() if value is not None]
        return [self.workload, *sum(given, [])]

    def guessed_seconds(self, warmup: int) -> float:
        """For the display of the time left. Measured durations correct the guess."""
        pending = (self.pending or 0) * (self.threads or 1 if self.workload in ("churn", "handoff") else 1)
        one = 0.05 + 4e-3 * self.tick_ms + pending * 200e-9 + (self.seconds or 0)
        if self.workload in ("churn", "handoff", "expire", "touch"):
            one += (self.count or 0) * 400e-9
        one += {"expire": 1.0, "late": (self.count or 0) / 20_000, "rate": (self.count or 0) / 100_000, "idle": 0.5, "far": 0.5}.get(self.workload, 0.0)
        return 0.2 + one * (1 + min(warmup, self.warmup_at_most))


@dataclass(frozen=True)
class Entry:
    config: Config
    everyone: bool = True  # False: only this library, Netty and brpc

    def participants(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if self.everyone or name in (OURS, NETTY, BRPC)]


@dataclass(frozen=True)
class Section:
    """Configurations that one table shows. `varies` names the option of a sweep."""

    key: str
    title: str
    workload: str
    entries: tuple[Entry, ...]
    varies: str | None = None

    @property
    def configs(self) -> list[Config]:
        return [entry.config for entry in self.entries]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a full or a quick run."""

    churn_count: int = 2_500_000
    handoff_count: int = 2_500_000
    touch_count: int = 2_000_000
    touch_pending: int = 100_000
    expire_count: int = 6_000_000
    late_count: int = 20_000
    rate_count: int = 1_000_000
    memory_pending: tuple[int, int] = (2_000_000, 10_000_000)
    far_pending: int = 1_000_000
    rest_seconds: int = 2
    threads: tuple[int, ...] = (1, 2, 4, 8, 16)
    rings: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


FULL = Sizes()
QUICK = Sizes(
    200_000, 200_000, 200_000, 20_000, 200_000, 2_000, 100_000, (200_000, 1_000_000), 100_000, 1, (1, 2, 4), (10**3, 10**4, 10**5)
)

RING = 1_000  # pending timeouts of each thread in churn, unless they vary
TICKS = (1, 100)
PAIRS = (1, 2, 4)
IN_FLIGHT = (RING, 100_000)


def sections(sizes: Sizes, workloads: Sequence[str] = WORKLOADS, sweep_everyone: bool = False) -> list[Section]:
    def churn(threads: int, tick_ms: int = 1, ring: int = RING) -> Config:
        return Config("churn", threads, tick_ms, ring, sizes.churn_count)

    def handoff(pairs: int, in_flight: int) -> Config:
        return Config("handoff", pairs, 1, in_flight, sizes.handoff_count)

    def touch(tick_ms: int) -> Config:
        return Config("touch", 1, tick_ms, sizes.touch_pending, sizes.touch_count)

    def all_of(*configs: Config, everyone: bool = True) -> tuple[Entry, ...]:
        return tuple(Entry(config, everyone) for config in configs)

    main = [churn(threads, tick) for tick in TICKS for threads in (1, 2)]
    threads = [churn(threads, tick) for tick in TICKS for threads in sizes.threads]
    rings = [churn(1, ring=ring) for ring in sizes.rings]
    handoffs = [handoff(pairs, in_flight) for in_flight in IN_FLIGHT for pairs in PAIRS]
    few, many = (Config("memory", pending=pending, warmup_at_most=0) for pending in sizes.memory_pending)
    idle = [Config("idle", tick_ms=tick, seconds=sizes.rest_seconds) for tick in TICKS]
    far = Config("far", pending=sizes.far_pending, seconds=sizes.rest_seconds)
    rates = [Config("rate", pending=RING, count=sizes.rate_count, due_ms=due, warmup_at_most=0) for due in (0, 10)]
    against = "Churn against the number of "
    everything = [
        Section("churn", "Churn", "churn", all_of(*main)),
        Section("handoff", "Handoff", "handoff", all_of(*handoffs)),
        Section("threads", against + "threads", "churn", all_of(*threads, everyone=sweep_everyone), "threads"),
        Section("pending", against + "pending timeouts", "churn", all_of(*rings, everyone=sweep_everyone), "pending"),
        Section("expire", "Expire", "expire", all_of(Config("expire", 1, count=sizes.expire_count))),
        Section("memory", "Memory", "memory", (Entry(few), Entry(many, everyone=False))),
        Section("idle", "Idle", "idle", all_of(*idle)),
        Section("far", "Far", "far", all_of(far)),
        Section("late", "Late", "late", all_of(Config("late", count=sizes.late_count))),
        Section("rate", "Rate", "rate", all_of(*rates)),
        Section("touch", "Touch", "touch", (Entry(touch(1)), Entry(touch(100), everyone=False))),
    ]
    return [section for section in everything if section.workload in workloads]


def entries_of(plan: Sequence[Section]) -> list[Entry]:
    """Returns each configuration once, although several sections may show it."""
    everyone: dict[Config, bool] = {}
    for section in plan:
        for entry in section.entries:
            everyone[entry.config] = everyone.get(entry.config, False) or entry.everyone
    return [Entry(config, flag) for config, flag in everyone.items()]


@dataclass(frozen=True)
class Step:
    round: int
    config: Config
    runner: str


def steps(
    plan: Sequence[Section], names: Sequence[str], rounds: int, only: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Step]:
    """`only` has the workloads of the runners that do not have all."""
    for number in range(1, rounds + 1):
        for index, entry in enumerate(entries_of(plan)):
            for name in in_turn(entry.participants(names), number - 1 + index):
                if entry.config.workload in (only or {}).get(name, WORKLOADS):
                    yield Step(number, entry.config, name)


def in_turn(names: Sequence[str], turn: int) -> list[str]:
    """Returns the order of one round: a row of a Williams square, in which each runner follows each other one equally
    often. After a rotation alone, each would always follow the same runner.
    """
    size = len(names)
    zigzag = [(i + 1) // 2 if i % 2 else -(i // 2) for i in range(size)]  # 0 1 -1 2 -2 ...
    shift = turn
    if size % 2:  # an odd number needs the mirrored rows as well
        shift = turn // 2
        if turn % 2:
            zigzag.reverse()
    return [names[(shift + offset) % size] for offset in zigzag]


# --- Labels -----------------------------------------------------------------------------------------------------------


def ticks(config: Config) -> str:
    return f"tick {config.tick_ms} ms"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _churn_label(config: Config) -> str:
    label = f"{plural(config.threads or 1, 'thread')}, {ticks(config)}"
    return label if config.pending == RING else f"{label}, {config.pending:,} pending"


def _handoff_label(config: Config) -> str:
    return f"{plural(config.threads or 1, 'pair')}, {config.pending:,} in flight"


LABELS: dict[str, Callable[[Config], str]] = {
    "churn": _churn_label,
    "handoff": _handoff_label,
    "expire": lambda config: f"{config.count:,} timeouts",
    "memory": lambda config: f"{config.pending:,} pending",
    "rate": lambda config: f"one due each {config.due_ms} ms" if config.due_ms else "no other due",
    "far": lambda config: f"{config.pending:,} pending, {ticks(config)}",
}


def short_label(config: Config) -> str:
    """Without the workload and the options that are the same in its whole table."""
    return LABELS.get(config.workload, ticks)(config)


def label(config: Config) -> str:
    return f"{config.workload}, {short_label(config)}"
