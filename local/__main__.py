"""Command line of the local cloud: `python3 -m local <command>`."""

from __future__ import annotations

import argparse
import sys

from . import (
    bench,
    checks,
    cloud,
    contract,
    deploy,
    doctor,
    lint,
    oracles,
    package,
    parts,
    pgbouncer,
    postgres,
    sam_check,
    sam_local,
    simulator,
    supply,
    tools,
)
from .settings import Failure, say, show

# Commands whose further options go to the program that they run.
PASSING_ON = ("sam", "sam-local", "run", "test", "simulate", "oracles", "bench")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python3 -m local", description="Tirada's local cloud.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="say what this machine lacks")
    some = commands.add_parser("tools", help="install the pinned tools into .local/")
    some.add_argument("names", nargs="*", choices=[*tools.all_names(), []])
    commands.add_parser("up", help="start, build, deploy and seed; again: deploy what changed")
    commands.add_parser("down", help="stop everything and remove its data")
    commands.add_parser("status", help="what runs, and where")
    database = commands.add_parser("postgres", help="the throw-away Postgres for tests")
    database.add_argument("action", choices=["start", "stop"])
    commands.add_parser("pgbouncer", help="print the path of PgBouncer, installing it if possible")
    # Options after these three go to the program that they run.
    commands.add_parser(
        "sam", help="the SAM CLI against the emulator: sam logs, sam list …", add_help=False
    )
    commands.add_parser("run", help="a program of this build: run tirada …", add_help=False)
    commands.add_parser("test", help="every fast test", add_help=False)
    commands.add_parser(
        "simulate", help="fault scenarios and storms: simulate <filter>", add_help=False
    )
    commands.add_parser("panics", help="scenarios of panics on release bootstraps")
    storm = commands.add_parser("storm", help="the long storm of faults")
    storm.add_argument("seeds", nargs="?", default="1", help="how many")
    commands.add_parser(
        "oracles", help="other people's code judges ours: oracles <filter>", add_help=False
    )
    commands.add_parser("bench", help="the benchmarks: bench --help", add_help=False)
    built = commands.add_parser("package", help="build the functions for AWS")
    built.add_argument("architecture", nargs="?", default=package.DEFAULT, choices=[*package.FLAGS])
    commands.add_parser("release-check", help="what is too long for CI, on release bootstraps")
    commands.add_parser("parts", help="how long each part of this run took")
    commands.add_parser("lint", help="every look at the tree that runs none of it")
    commands.add_parser("deployable", help="faults that an AWS account would refuse")
    containers = commands.add_parser(
        "sam-local", help="`sam local`, checked; sam-local invoke …: that command of it"
    )
    containers.add_argument("--image", default="machine", choices=["machine", "aws"])
    commands.add_parser("slow", help="up, then the tests that need the whole local cloud")
    commands.add_parser("contract", help="Schemathesis against the local cloud")
    commands.add_parser("deny", help="what our dependencies may be, as far as it needs no network")
    commands.add_parser("audit", help="the same, and whether anything is known against them")
    commands.add_parser("sbom", help="write a list of what is delivered")
    return top


def run(command: str, given: argparse.Namespace, rest: list[str]) -> int:
    if command == "doctor":
        doctor.check()
    elif command == "tools":
        tools.install(*given.names)
    elif command == "up":
        cloud.up()
    elif command == "down":
        cloud.down(sam_local.stop())
    elif command == "status":
        return cloud.status()
    elif command == "postgres" and given.action == "start":
        tools.install("cloud")
        postgres.start(postgres.TEST)
        show(postgres.TEST.url())
    elif command == "postgres":
        postgres.stop(postgres.TEST)
    elif command == "pgbouncer":
        found = pgbouncer.ensure()
        if not found:
            raise Failure(f"PgBouncer is not here. To install it: {pgbouncer.BY_HAND}")
        show(found)
    elif command == "sam":
        return deploy.sam(rest)
    elif command == "run":
        if not rest:
            raise Failure("Run what? tirada, seed or opening.")
        return cloud.run(rest[0], rest[1:])
    elif command == "test":
        return checks.test(rest)
    elif command == "simulate":
        return simulator.simulate(rest)
    elif command == "panics":
        return simulator.panics()
    elif command == "storm":
        return simulator.storm(given.seeds)
    elif command == "oracles":
        return oracles.check(rest)
    elif command == "bench":
        return bench.bench(rest)
    elif command == "package":
        package.package(given.architecture)
    elif command == "lint":
        return lint.lint()
    elif command == "deployable":
        return deploy.deployable()
    elif command == "sam-local":
        from_aws = given.image == "aws"
        if rest:
            return sam_local.by_hand(rest, from_aws)
        sam_check.check(from_aws)
    elif command == "slow":
        return checks.slow()
    elif command == "release-check":
        return checks.release()
    elif command == "parts":
        parts.table()
    elif command == "contract":
        return contract.check()
    elif command in ("deny", "audit"):
        return supply.check(advisories=command == "audit")
    elif command == "sbom":
        supply.sbom()
    return 0


def main() -> int:
    given, rest = parser().parse_known_args()
    if rest and given.command not in PASSING_ON:
        parser().error(f"unknown: {' '.join(rest)}")
    try:
        return run(given.command, given, rest)
    except Failure as failure:
        say(f"\n{failure}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
