"""What is run: configurations of workloads, who takes part in each, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

WORKLOADS = ("churn", "expire", "memory", "idle", "far", "late", "touch")

OURS = "hashed_wheel_timer"
NETTY = "netty"


@dataclass(frozen=True)
class Config:
    """One configuration of a workload. What a workload has no option for is None."""

    workload: str
    threads: int | None = None
    tick_ms: int = 1
    pending: int | None = None
    count: int | None = None
    seconds: int | None = None
    warmup_at_most: int = 1  # of millions of operations: after it, the figures of a JVM were found to be steady

    def arguments(self, warmup: int, seed: int) -> list[str]:
        arguments = [self.workload]
        for name in ("threads", "tick_ms", "count", "pending", "seconds"):
            value = getattr(self, name)
            if value is not None:
                arguments += ["--" + name.replace("_", "-"), str(value)]
        warmup = min(warmup, self.warmup_at_most)
        return arguments + ["--rounds", "1", "--warmup", str(warmup), "--seed", str(seed), "--json"]

    def guessed_seconds(self, warmup: int) -> float:
        """Only the first estimate of the time left; measured times soon take its place."""
        pending = (self.pending or 0) * (self.threads or 1 if self.workload == "churn" else 1)
        one = 0.05 + 4e-3 * self.tick_ms + pending * 200e-9 + (self.seconds or 0)
        if self.workload in ("churn", "expire", "touch"):
            one += (self.count or 0) * 400e-9
        one += {"expire": 1.0, "late": (self.count or 0) / 20_000, "idle": 0.5, "far": 0.5}.get(self.workload, 0.0)
        return 0.2 + one * (1 + min(warmup, self.warmup_at_most))

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Entry:
    config: Config
    everyone: bool = True  # otherwise this library and Netty only


@dataclass(frozen=True)
class Section:
    """Configurations that are shown together. `varies` names the option that a sweep goes through."""

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
    """The figures in which a full run and a quick one differ."""

    churn_count: int = 2_500_000
    touch_count: int = 2_000_000
    touch_pending: int = 100_000
    expire_count: int = 6_000_000
    late_count: int = 20_000
    memory_pending: tuple[int, int] = (2_000_000, 10_000_000)
    far_pending: int = 1_000_000
    idle_seconds: int = 2
    far_seconds: int = 2
    threads: tuple[int, ...] = (1, 2, 4, 8, 16)
    rings: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


FULL = Sizes()
QUICK = Sizes(
    churn_count=200_000,
    touch_count=200_000,
    touch_pending=20_000,
    expire_count=200_000,
    late_count=2_000,
    memory_pending=(200_000, 1_000_000),
    far_pending=100_000,
    idle_seconds=1,
    far_seconds=1,
    threads=(1, 2, 4),
    rings=(1_000, 10_000, 100_000),
)

RING = 1_000  # pending timeouts of each thread in churn, where they are not what varies
TICKS = (1, 100)


def sections(sizes: Sizes, workloads: Sequence[str] = WORKLOADS, sweep_everyone: bool = False) -> list[Section]:
    everything = [
        _churn(sizes),
        _threads(sizes, sweep_everyone),
        _rings(sizes, sweep_everyone),
        _expire(sizes),
        _memory(sizes),
        _idle(sizes),
        _far(sizes),
        _late(sizes),
        _touch(sizes),
    ]
    return [section for section in everything if section.workload in workloads]


def _churn_config(sizes: Sizes, threads: int, tick_ms: int, ring: int) -> Config:
    return Config("churn", threads, tick_ms, ring, sizes.churn_count)


def _churn(sizes: Sizes) -> Section:
    configs = [_churn_config(sizes, threads, tick, RING) for tick in TICKS for threads in (1, 2)]
    return Section("churn", "Churn", "churn", tuple(Entry(config) for config in configs))


def _threads(sizes: Sizes, everyone: bool) -> Section:
    configs = [_churn_config(sizes, threads, tick, RING) for tick in TICKS for threads in sizes.threads]
    entries = tuple(Entry(config, everyone) for config in configs)
    return Section("threads", "Churn against the number of threads", "churn", entries, "threads")


def _rings(sizes: Sizes, everyone: bool) -> Section:
    entries = tuple(Entry(_churn_config(sizes, 1, 1, ring), everyone) for ring in sizes.rings)
    return Section("pending", "Churn against the number of pending timeouts", "churn", entries, "pending")


def _expire(sizes: Sizes) -> Section:
    config = Config("expire", 1, 1, count=sizes.expire_count)
    return Section("expire", "Expire", "expire", (Entry(config),))


def _memory(sizes: Sizes) -> Section:
    few, many = (Config("memory", tick_ms=1, pending=pending, warmup_at_most=0) for pending in sizes.memory_pending)
    return Section("memory", "Memory", "memory", (Entry(few), Entry(many, everyone=False)))


def _idle(sizes: Sizes) -> Section:
    configs = [Config("idle", tick_ms=tick, seconds=sizes.idle_seconds) for tick in TICKS]
    return Section("idle", "Idle", "idle", tuple(Entry(config) for config in configs))


def _far(sizes: Sizes) -> Section:
    config = Config("far", pending=sizes.far_pending, seconds=sizes.far_seconds)
    return Section("far", "Far", "far", (Entry(config),))


def _late(sizes: Sizes) -> Section:
    return Section("late", "Late", "late", (Entry(Config("late", count=sizes.late_count)),))


def _touch(sizes: Sizes) -> Section:
    one, hundred = (Config("touch", 1, tick, sizes.touch_pending, sizes.touch_count) for tick in TICKS)
    return Section("touch", "Touch", "touch", (Entry(one), Entry(hundred, everyone=False)))


def entries_of(plan: Sequence[Section]) -> list[Entry]:
    """Each configuration once, though several sections may show it."""
    everyone: dict[Config, bool] = {}
    for section in plan:
        for entry in section.entries:
            everyone[entry.config] = everyone.get(entry.config, False) or entry.everyone
    return [Entry(config, flag) for config, flag in everyone.items()]


def participants(entry: Entry, names: Sequence[str]) -> list[str]:
    return [name for name in names if entry.everyone or name in (OURS, NETTY)]


@dataclass(frozen=True)
class Step:
    round: int
    config: Config
    runner: str


def steps(plan: Sequence[Section], names: Sequence[str], rounds: int) -> Iterator[Step]:
    for number in range(1, rounds + 1):
        for index, entry in enumerate(entries_of(plan)):
            for name in in_turn(participants(entry, names), number - 1 + index):
                yield Step(number, entry.config, name)


def in_turn(names: Sequence[str], turn: int) -> list[str]:
    """The order of one round: a row of a Williams square, in which each comes after every other equally often.

    Rotating alone would leave everyone behind the same neighbour.
    """
    size = len(names)
    zigzag = [(i + 1) // 2 if i % 2 else -(i // 2) for i in range(size)]  # 0 1 -1 2 -2 ...
    shift = turn
    if size % 2:  # an odd number needs the mirrored rows as well
        shift = turn // 2
        if turn % 2:
            zigzag.reverse()
    return [names[(shift + offset) % size] for offset in zigzag]


# --- In words ---------------------------------------------------------------------------------------------------------


def ticks(config: Config) -> str:
    return f"tick {config.tick_ms} ms"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def short_label(config: Config) -> str:
    """Without the workload, and without what never changes in its table."""
    if config.workload == "churn":
        label = f"{plural(config.threads or 1, 'thread')}, {ticks(config)}"
        return label if config.pending == RING else f"{label}, {config.pending:,} pending"
    if config.workload == "expire":
        return f"{config.count:,} timeouts"
    if config.workload == "memory":
        return f"{config.pending:,} pending"
    if config.workload == "far":
        return f"{config.pending:,} pending, {ticks(config)}"
    return ticks(config)


def label(config: Config) -> str:
    return f"{config.workload}, {short_label(config)}"
