"""The processes that this package started: recorded in `.local/state.json`, known again, stopped.

A process is ours only if its pid, its start time and the machine's boot are the recorded ones:
a pid that the system gave to somebody else is never signalled.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .settings import HOME, LOGS, LOOPBACK, STATE, Failure, Port, say

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20


@contextlib.contextmanager
def changing_state() -> Iterator[dict]:
    """The state under a lock, written back whole when the block ends well."""
    HOME.mkdir(exist_ok=True)
    with open(HOME / "state.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read_state()
        yield state
        fresh = STATE.with_suffix(".new")
        fresh.write_text(json.dumps(state, indent=2) + "\n")
        fresh.replace(STATE)


def read_state() -> dict:
    """What is recorded; an unreadable file counts as nothing recorded."""
    try:
        return json.loads(STATE.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def stat_of(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat after the command's name; none if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def started_at(pid: int) -> str | None:
    """Start time in clock ticks since boot."""
    fields = stat_of(pid)
    return fields[19] if fields else None


def find(name: str) -> dict | None:
    """The record of a process of ours that is running now."""
    record = read_state().get("processes", {}).get(name)
    if not record or record["boot"] != boot_id():
        return None
    return record if started_at(record["pid"]) == record["started"] else None


def start(
    name: str,
    command: list[str],
    *,
    port: int,
    environment: dict[str, str],
    directory: Path,
    ready: Callable[[], bool],
) -> None:
    """Start a process in its own session, record it at once, and wait until `ready()`."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with open(log, "w") as out:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with changing_state() as state:
        state.setdefault("processes", {})[name] = {
            "pid": process.pid,
            "started": started_at(process.pid),
            "boot": boot_id(),
            "port": port,
        }
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            forget(name)
            raise Failure(f"{name} ended as it started (exit {process.returncode}):\n{tail(log)}")
        if ready():
            return
        time.sleep(0.1)
    stop(name)
    raise Failure(f"{name} did not answer within {START_TIMEOUT_S} s:\n{tail(log)}")


def stop(name: str, gently: signal.Signals = signal.SIGTERM) -> bool:
    """Stop a process of ours and what it started. False if it was not running."""
    record = find(name)
    if not record:
        forget(name)
        return False
    family = descendants(record["pid"])
    os.kill(record["pid"], gently)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while find(name) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid, began in family:
        if started_at(pid) == began:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    forget(name)
    return True


def descendants(pid: int) -> list[tuple[int, str]]:
    """(pid, start time) of a process and of all below it, itself first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        fields = stat_of(int(entry.name)) if entry.name.isdigit() else None
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop(0)
        began = started_at(one)
        if began:
            found.append((one, began))
        waiting += children.get(one, [])
    return found


def forget(name: str) -> None:
    with changing_state() as state:
        state.get("processes", {}).pop(name, None)


def listening(port: int) -> bool:
    """Whether anything accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def require_free(port: Port) -> int:
    """The port's number, or a clear word that somebody else has it."""
    number = port.number
    if listening(number):
        raise Failure(
            f"Port {number} is taken by a process that is not ours. "
            f"Choose another: {port.variable}={number + 1000} make up"
        )
    return number


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log, for an error's text."""
    try:
        last = log.read_text(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(f"  | {line}" for line in last) + f"\n  (all of it: {log})"


def run(command: list[str], what: str, **options: object) -> subprocess.CompletedProcess:
    """A command in the foreground; its failure is ours, with what it said."""
    say(f"- {what}")
    done = subprocess.run(command, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        said = "\n".join(text for text in (done.stdout, done.stderr) if text)
        raise Failure(f"{what} failed (exit {done.returncode}): {' '.join(command)}\n{said}")
    return done
