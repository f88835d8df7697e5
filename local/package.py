"""Builds the functions for AWS: arm64, whatever this machine is, into `target/lambda/<bin>`."""

from __future__ import annotations

import os

from . import doctor, parameters, processes, tools
from .settings import FUNCTIONS, ROOT, say


def package() -> None:
    doctor.check()
    tools.install("package")
    # cargo-lambda calls itself `cargo lambda` and looks for zig; both lie in this environment.
    path = f"{tools.directory('package') / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    packages = [part for name in FUNCTIONS for part in ("-p", name)]
    command = ["cargo", "lambda", "build", "--release", "--arm64", "--locked", *packages]
    processes.run(command, "build for AWS", cwd=ROOT, env=os.environ | {"PATH": path})
    parameters.write_aws()
    say("Ready: sam deploy --config-env dev (or staging, prod).")
