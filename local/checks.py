"""The test suite with the services that it needs, started for it and stopped after it."""

from __future__ import annotations

import os
import shutil
import subprocess

from . import cloud, contract, doctor, pgbouncer, postgres, simulator, tools
from .settings import ROOT, say


def test(options: list[str]) -> int:
    """Every fast test, and unless options choose some, two short storms; against a throw-away
    Postgres. The cargo runner's exit status."""
    doctor.check()
    tools.install("cloud")
    bouncer = pgbouncer.ensure()
    started = postgres.start(postgres.TEST)
    try:
        failed = run_tests(test_environment(bouncer), options)
        if bouncer and not failed:
            failed = run_through_pooler(test_environment(bouncer), options)
        if not failed and not options:
            failed = simulator.run_storm("short", "short", simulator.SHORT_SEEDS)
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


def run_tests(environment: dict[str, str], options: list[str]) -> int:
    """By nextest where it is installed; it leaves documentation tests to cargo."""
    shared = {"cwd": ROOT, "env": environment}
    workspace = ["--workspace", "--locked", *options]
    if not shutil.which("cargo-nextest"):
        return subprocess.run(["cargo", "test", *workspace], **shared).returncode
    for command in (["nextest", "run"], ["test", "--doc"]):
        failed = subprocess.run(["cargo", *command, *workspace], **shared).returncode
        if failed:
            return failed
    return 0


def run_through_pooler(environment: dict[str, str], options: list[str]) -> int:
    """The database's tests once more, every connection through PgBouncer in transaction mode: the
    stricter stand-in for RDS Proxy."""
    say("Once more, through PgBouncer.")
    runner = ["nextest", "run"] if shutil.which("cargo-nextest") else ["test"]
    command = ["cargo", *runner, "-p", "tests", "--test", "it", "--locked", *options]
    environment = environment | {"TIRADA_TEST_THROUGH_PGBOUNCER": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def slow() -> int:
    """The tests that want the whole local cloud. It is left up for a look; `down` ends it."""
    cloud.up()
    command = ["cargo", "test", "-p", "tests", "--test", "cloud", "--locked"]
    failed = subprocess.run(command, cwd=ROOT, env=os.environ | cloud.environment()).returncode
    return failed or contract.check()
