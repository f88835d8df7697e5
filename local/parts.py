"""How long each part of a run took, for the table that CI prints at its end.

A part is a line of JSON in the file that `TIRADA_PARTS` names; without that variable nothing is
written.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from .settings import show

VARIABLE = "TIRADA_PARTS"
# Fields of the first line of /proc/stat in which no processor works: idle, iowait; then steal and
# the two of guests, which the first two fields already contain.
RESTING = (3, 4, 7, 8, 9)


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    """Times its block, also one that fails."""
    wall, busy = time.monotonic(), busy_seconds()
    try:
        yield
    finally:
        record(name, time.monotonic() - wall, busy_seconds() - busy)


def record(name: str, wall_s: float, busy_s: float) -> None:
    path = os.environ.get(VARIABLE)
    if path:
        line = json.dumps({"part": name, "wall_s": wall_s, "busy_s": busy_s})
        with Path(path).open("a") as file:
            file.write(line + "\n")


def busy_seconds() -> float:
    """Processor time of the whole machine: servers in the background do much of the work."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(ticks for field, ticks in enumerate(fields) if field not in RESTING)
    return busy / os.sysconf("SC_CLK_TCK")


def table() -> None:
    """What the file says: a line for each part, in the order of their first time, and the sum."""
    path = os.environ.get(VARIABLE)
    lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
    rows: dict[str, tuple[float, float]] = {}
    for one in map(json.loads, lines):
        wall, busy = rows.get(one["part"], (0.0, 0.0))
        rows[one["part"]] = (wall + one["wall_s"], busy + one["busy_s"])
    rows["sum"] = (sum(wall for wall, _ in rows.values()), sum(busy for _, busy in rows.values()))
    width = max(map(len, rows))
    show(f"{'part':{width}}  {'wall':>6}  {'processor':>9}")
    for name, (wall, busy) in rows.items():
        show(f"{name:{width}}  {clock(wall):>6}  {clock(busy):>9}")


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
