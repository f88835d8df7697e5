"""Builds for this machine and lays the functions out as `target/lambda/<bin>/bootstrap`.

The everyday build has one profile and one set of features, those of the whole workspace, so that
the demonstration, the tests, the simulator and the local cloud compile each dependency once. The
release build selects the functions by name: features that only tests need stay out of what is
delivered. For AWS see `make package`, which writes to the same place for another machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from . import cargo, parameters, parts
from .settings import BOOTSTRAPS, FUNCTIONS, TARGET, Failure

# Programs that run on this machine and never in AWS.
PROGRAMS = ("tirada", "seed", "opening", "fake-gateway")


def program(name: str) -> Path:
    """Where the everyday build leaves a program of PROGRAMS."""
    return TARGET / "debug" / name


def released(name: str) -> Path:
    """Where the release build leaves a program."""
    return TARGET / "release" / name


def build(*, fast_tests: bool = False, named: str = "", lay_out: bool = True) -> None:
    """Functions and programs; with the fast tests, and a test target that runs only when named."""
    bins = [part for name in (*FUNCTIONS, *PROGRAMS) for part in ("--bin", name)]
    with parts.part("build"):
        cargo.build("--workspace", *bins, *(["--tests"] if fast_tests else []))
        if named:
            # Beside `--tests` cargo ignores the name.
            cargo.build("--workspace", "--test", named)
    if lay_out:
        lay_out_functions("debug")


def build_release() -> None:
    """The functions and `tirada` as they are delivered, for this machine."""
    compile_release((*FUNCTIONS, "operator"))
    lay_out_functions("release")


def build_some(names: Sequence[str]) -> Path:
    """Some functions as they are delivered, among those of the everyday build, which is there."""
    compile_release(names)
    folder = TARGET / "lambda-release"
    copy(FUNCTIONS, "debug", folder)
    copy(names, "release", folder)
    return folder


def compile_release(names: Sequence[str]) -> None:
    packages = [part for name in names for part in ("-p", name)]
    with parts.part("release build"):
        cargo.build("--release", "--bins", *packages)


def build_bench() -> Path:
    """The benchmarks' program: a build of its own, because it brings the tests' features."""
    with parts.part("release build of the benchmarks"):
        cargo.build("--release", "-p", "bench")
    return released("bench")


def lay_out_functions(profile: str) -> None:
    """From then on target/lambda holds nothing for AWS, and `sam deploy` lacks its parameters."""
    parameters.AWS.unlink(missing_ok=True)
    copy(FUNCTIONS, profile, BOOTSTRAPS)


def copy(names: Sequence[str], profile: str, folder: Path) -> None:
    """Copies keep their time, so that an unchanged function makes an unchanged package."""
    for name in names:
        built = TARGET / profile / name
        if not built.exists():
            raise Failure(f"The build left no {built}: has package {name} a binary of that name?")
        package = folder / name
        shutil.rmtree(package, ignore_errors=True)
        package.mkdir(parents=True)
        shutil.copy2(built, package / "bootstrap")
