"""The fault simulator: bootstraps, and what scenarios need besides the tests' Postgres."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from . import build, cargo, debian, doctor, parts, pgbouncer, postgres, tools
from .settings import CI, Failure

# How many storms of orders, and of payments: `make test`, `make test-all`, before a release.
SHORT_SEEDS = 2
MIDDLE_SEEDS = 5
FULL_SEEDS = 20
# The functions of the scenarios of panics.
PANICKING = ("orders", "reserve-numbers")


def simulate(options: list[str]) -> int:
    """Every scenario and some storms on the everyday build, or those that the options name; the
    cargo runner's exit status."""
    return with_postgres(lambda: scenarios(options))


def scenarios(options: list[str]) -> int:
    build.build(named="simulator")
    with parts.part("scenarios"):
        failed = run(options or ["--", "--skip", "storm::"])
    if failed or options:
        return failed
    return run_storm("middle", "middle", MIDDLE_SEEDS, at_once=True)


def storm(seeds: str) -> int:
    """The long storms on release bootstraps, once for each of so many seeds."""
    if not seeds.isdigit() or int(seeds) < 1:
        raise Failure(f"SEEDS={seeds} is no number of storms.")

    def rage() -> int:
        build.build_release()
        return run_storm("long", "long", int(seeds))

    return with_postgres(rage)


def panics() -> int:
    """The scenarios of panics on the bootstraps as they are delivered: what a panic does is a
    setting of the release profile."""

    def run_them() -> int:
        build.build(named="simulator")
        folder = build.build_some(PANICKING)
        with parts.part("panics on release bootstraps"):
            return run(["--", "panics::"], {"TIRADA_BOOTSTRAPS": str(folder)})

    return with_postgres(run_them)


def release() -> int:
    """Every scenario and the storms of a release, on the bootstraps as they are delivered."""

    def everything() -> int:
        build.build(named="simulator")
        build.build_release()
        with parts.part("scenarios on release bootstraps"):
            failed = run(["--", "--skip", "storm::"])
        return failed or run_storm("middle", "long", FULL_SEEDS, at_once=True)

    return with_postgres(everything)


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
    if cargo.has_nextest():
        options = ["--success-output=immediate" if at_once else "--no-capture", *chosen]
    with parts.part(f"storms: {seeds} {orders}, {seeds} {payments} of payments"):
        return run(options, {"TIRADA_STORM_SEEDS": str(seeds)})


def run(options: list[str], extra: Mapping[str, str] | None = None) -> int:
    """Runs scenarios with the bootstraps that lie there, on the tests' Postgres, which is there."""
    variables = environment() | dict(extra or {})
    return cargo.test(["--test", "simulator", *options], variables)


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
