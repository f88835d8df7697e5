"""The benchmarks, on a Postgres of their own that is started for them and stopped after them."""

from __future__ import annotations

import os
import subprocess

from . import build, doctor, postgres, tools
from .settings import ROOT


def bench(options: list[str]) -> int:
    """Builds for release, runs the benchmarks with these options; their exit status."""
    doctor.check()
    tools.install("cloud")
    build.build_release()
    program = build.build_bench()
    started = postgres.start(postgres.BENCH)
    try:
        environment = os.environ | {"TIRADA_TEST_POSTGRES_URL": postgres.BENCH.url()}
        command = [str(program), *options]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode
    finally:
        if started:
            postgres.stop(postgres.BENCH)
