"""Builds for this machine and lays the functions out as `target/lambda/<bin>/bootstrap`.

One build of everything together: one dependency tree, so it is quicker than building function by
function. For AWS see `make package`, which writes to the same place for arm64.
"""

from __future__ import annotations

import shutil

from . import processes
from .settings import BOOTSTRAPS, FUNCTIONS, ROOT, TARGET, TOOLS, Failure


def build() -> None:
    packages = [part for name in (*FUNCTIONS, *TOOLS) for part in ("-p", name)]
    command = ["cargo", "build", "--release", "--locked", "--bins", *packages]
    processes.run(command, "release build", cwd=ROOT)
    lay_out()


def lay_out() -> None:
    """Copies keep their time, so that an unchanged function makes an unchanged package."""
    for name in FUNCTIONS:
        built = TARGET / "release" / name
        if not built.exists():
            raise Failure(f"The build left no {built}: has package {name} a binary of that name?")
        package = BOOTSTRAPS / name
        shutil.rmtree(package, ignore_errors=True)
        package.mkdir(parents=True)
        shutil.copy2(built, package / "bootstrap")
