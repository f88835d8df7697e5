"""PgBouncer, the stricter stand-in for RDS Proxy: found, or installed where that asks nobody.

The tests start it themselves; without it they skip what needs it, and a run says so at its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import debian
from .settings import CI, Failure

BY_HAND = debian.by_hand("pgbouncer")


def find() -> str | None:
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def ensure() -> str | None:
    """The program's path, or none. In CI its absence is an error."""
    if not find():
        install()
    found = find()
    if not found and CI:
        raise Failure(f"PgBouncer is missing, and CI must not skip its tests: {BY_HAND}")
    return found


def install() -> None:
    debian.install("pgbouncer")
    prefix = debian.administrator()
    if prefix is not None and Path("/run/systemd/system").exists():
        # The package starts a service; only the program is wanted.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*prefix, "systemctl", "disable", "--now", "pgbouncer"], **quiet)
