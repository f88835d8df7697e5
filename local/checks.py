"""The test suite with the services that it needs, started for it and stopped after it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from . import (
    bench,
    build,
    cargo,
    cloud,
    contract,
    doctor,
    parts,
    pgbouncer,
    postgres,
    simulator,
    tools,
)
from .settings import say


def test(options: list[str]) -> int:
    """Every fast test, and unless options choose some, two short storms; against a throw-away
    Postgres. The cargo runner's exit status."""
    doctor.check()
    with parts.part("tools"):
        tools.install("cloud")
        bouncer = pgbouncer.ensure()
    build.build(fast_tests=True, named="simulator")
    started = postgres.start(postgres.TEST)
    try:
        failed = run_tests(test_environment(bouncer), options)
        if bouncer and not failed:
            failed = run_through_pooler(test_environment(bouncer), options)
        if not failed and not options:
            failed = simulator.run_storm("short", "short", simulator.SHORT_SEEDS, at_once=True)
    finally:
        if started:
            postgres.stop(postgres.TEST)
    if not bouncer:
        say(f"Not run: the tests that need PgBouncer. To run them: {pgbouncer.BY_HAND}")
    return failed


def test_environment(bouncer: str | None) -> dict[str, str]:
    mine = dict(os.environ) | {"TIRADA_TEST_POSTGRES_URL": postgres.TEST.url()}
    mine.pop("TIRADA_TEST_PGBOUNCER", None)
    return mine | ({"TIRADA_TEST_PGBOUNCER": bouncer} if bouncer else {})


def tests_at_once() -> int:
    """Most of them wait for the database or for a clock."""
    return 3 * (os.cpu_count() or 1)


def run_tests(environment: Mapping[str, str], options: list[str]) -> int:
    with parts.part("fast tests"):
        return cargo.test(options, environment, at_once=tests_at_once())


# Modules of tests/it that reach the database past any pooler, or not at all.
PAST_THE_POOLER = ("fake_gateway", "migrations", "openapi", "security", "template", "tidy")


def run_through_pooler(environment: Mapping[str, str], options: list[str]) -> int:
    """The database's tests once more, every connection through PgBouncer in transaction mode: the
    stricter stand-in for RDS Proxy."""
    say("Once more, through PgBouncer.")
    environment = {**environment, "TIRADA_TEST_THROUGH_PGBOUNCER": "1"}
    if not options:
        options = ["--", *(part for name in PAST_THE_POOLER for part in ("--skip", f"{name}::"))]
    with parts.part("through PgBouncer"):
        return cargo.test(["--test", "it", *options], environment, at_once=tests_at_once())


def slow() -> int:
    """The tests that want the whole local cloud. It is left up for a look; `down` ends it."""
    cloud.up()
    return test_cloud(build.program("tirada"))


def test_cloud(tirada: Path) -> int:
    """The tests of the cloud that is up, with this build of the operator's command line."""
    environment = os.environ | cloud.environment() | {"TIRADA_PROGRAM": str(tirada)}
    with parts.part("local cloud"):
        failed = cargo.test(["--test", "cloud"], environment, one_process=True)
    return failed or contract.check()


def release() -> int:
    """What takes hours, on the functions as they are delivered."""
    failed = simulator.release()
    if not failed:
        cloud.up(release=True)
        failed = test_cloud(build.released("tirada"))
    return failed or bench.bench([])
