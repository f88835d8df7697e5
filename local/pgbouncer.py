"""PgBouncer, the stricter stand-in for RDS Proxy: found, or installed where that asks nobody.

The tests start it themselves; without it they skip what needs it, and a run says so at its end.
"""

from __future__ import annotations

import os
import shutil

from . import debian
from .settings import CI, Failure

BY_HAND = debian.by_hand("pgbouncer")


def find() -> str | None:
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def ensure() -> str | None:
    """The program's path, or none. In CI its absence is an error."""
    if not find():
        debian.install("pgbouncer", "pgbouncer")  # the package starts a service of that name
    found = find()
    if not found and CI:
        raise Failure(f"PgBouncer is missing, and CI must not skip its tests: {BY_HAND}")
    return found
