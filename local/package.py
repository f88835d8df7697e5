"""Builds the functions for AWS into `target/lambda/<bin>`, whatever this machine is.

The cross compiler links with an old C library, so that the files run in AWS's image.
"""

from __future__ import annotations

import os

from . import doctor, parameters, processes, tools
from .settings import BOOTSTRAPS, FUNCTIONS, ROOT, say

FLAGS = {"arm64": "--arm64", "x86_64": "--x86-64"}
DEFAULT = "arm64"


def package(architecture: str) -> None:
    doctor.check()
    tools.install("package")
    # cargo-lambda calls itself `cargo lambda` and looks for zig; both lie in this environment.
    path = f"{tools.directory('package') / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    # What the folder holds from now on is no package until all of it is built.
    parameters.AWS.unlink(missing_ok=True)
    packages = [part for name in FUNCTIONS for part in ("-p", name)]
    command = ["cargo", "lambda", "build", "--release", FLAGS[architecture], "--locked", *packages]
    command += ["--lambda-dir", str(BOOTSTRAPS)]
    processes.run(
        command, f"build for AWS ({architecture})", cwd=ROOT, env=os.environ | {"PATH": path}
    )
    parameters.write_aws(architecture)
    say("Ready: sam deploy --config-env dev (or staging, prod).")
