"""The fault simulator: release bootstraps, and what scenarios need besides the tests' Postgres."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from . import build, debian, doctor, pgbouncer, postgres, tools
from .settings import CI, ROOT, Failure

# How many storms of orders, and of payments, in `make test` and in `make test-all`.
SHORT_SEEDS = 2
FULL_SEEDS = 20


def simulate(options: list[str]) -> int:
    """Every scenario, or those that the options name; the cargo runner's exit status."""
    return with_postgres(lambda: run(options))


def storm(seeds: str) -> int:
    """The long storms, once for each of so many seeds."""
    if not seeds.isdigit() or int(seeds) < 1:
        raise Failure(f"SEEDS={seeds} is no number of storms.")
    return with_postgres(lambda: run_storm("long", "long", int(seeds)))


def everything(payments: str) -> int:
    """Every scenario, and the storms of the full run: those of payments in this form."""
    return with_postgres(
        lambda: (
            run(["--", "--skip", "storm::"])
            or run_storm("middle", payments, FULL_SEEDS, at_once=True)
        )
    )


def with_postgres(work: Callable[[], int]) -> int:
    doctor.check()
    tools.install("cloud")
    started = postgres.start(postgres.TEST)
    try:
        return work()
    finally:
        if started:
            postgres.stop(postgres.TEST)


def run_storm(orders: str, payments: str, seeds: int, *, at_once: bool = False) -> int:
    """Storms in these forms, on the tests' Postgres, which is there.

    Shows what each was: while it rages, or afterwards if orders and payments rage at once.
    """
    chosen = ["--", "--exact", f"storm::{orders}", f"payment_storm::{payments}"]
    options = [*chosen, "--nocapture"]
    if shutil.which("cargo-nextest"):
        options = ["--success-output=immediate" if at_once else "--no-capture", *chosen]
    return run(options, {"TIRADA_STORM_SEEDS": str(seeds)})


def run(options: list[str], extra: Mapping[str, str] | None = None) -> int:
    """Builds the bootstraps and runs scenarios on the tests' Postgres, which is there."""
    build.build()
    runner = ["nextest", "run"] if shutil.which("cargo-nextest") else ["test"]
    command = ["cargo", *runner, "-p", "tests", "--test", "simulator", "--locked", *options]
    return subprocess.run(command, cwd=ROOT, env=environment() | dict(extra or {})).returncode


def environment() -> dict[str, str]:
    """What scenarios are told: the servers, the programs, the library that puts clocks off."""
    programs = postgres.find_programs()
    mine = dict(os.environ) | {
        "TIRADA_TEST_POSTGRES_URL": postgres.TEST.url(),
        "TIRADA_TEST_POSTGRES_BIN": str(programs),
        "TIRADA_TEST_POSTGRES_AS": " ".join(postgres.stepping_down(programs)),
    }
    optional = {"TIRADA_TEST_PGBOUNCER": pgbouncer.ensure(), "TIRADA_TEST_FAKETIME": faketime()}
    return mine | {name: value for name, value in optional.items() if value}


def faketime() -> str | None:
    """The library's path, or none. In CI its absence is an error."""
    if not find_faketime():
        debian.install("libfaketime")
    found = find_faketime()
    if not found and CI:
        raise Failure(f"libfaketime is missing: {debian.by_hand('libfaketime')}")
    return found


def find_faketime() -> str | None:
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))
    return str(found[0]) if found else None
