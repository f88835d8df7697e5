"""Cargo as everything here calls it: with the lock file as it is, and with one set of features."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from . import processes
from .settings import ROOT


def build(*options: str) -> None:
    processes.run(["cargo", "build", "--locked", *options], "cargo build", cwd=ROOT)


def test(
    options: list[str],
    environment: Mapping[str, str],
    *,
    at_once: int | None = None,
    one_process: bool = False,
) -> int:
    """Runs tests, by nextest where it is installed; the runner's exit status.

    Always with the whole workspace's features: with `-p` cargo compiles dependencies again.
    `at_once` is how many tests nextest runs at a time, each in a process of its own. Tests that
    share a lock in memory need `one_process`.
    """
    runner = ["test"]
    if has_nextest() and not one_process:
        runner = ["nextest", "run", "--test-threads", str(at_once or os.cpu_count() or 1)]
    command = ["cargo", *runner, "--workspace", "--locked", *options]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def has_nextest() -> bool:
    return shutil.which("cargo-nextest") is not None
