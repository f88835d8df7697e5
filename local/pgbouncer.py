"""PgBouncer, the stricter stand-in for RDS Proxy: found, or installed where that asks nobody.

The tests start it themselves; without it they skip what needs it, and a run says so at its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .settings import CI, Failure, say

BY_HAND = "sudo apt-get install -y pgbouncer"


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
    """By apt, as root or with a sudo that asks for no password."""
    prefix = administrator()
    if prefix is None or not shutil.which("apt-get"):
        return
    say("- installing PgBouncer with apt-get")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    wanted = ["install", "-y", "--no-install-recommends", "pgbouncer"]
    if subprocess.run([*apt, *wanted], **quiet).returncode != 0:
        subprocess.run([*apt, "update"], **quiet)
        subprocess.run([*apt, *wanted], **quiet)
    if Path("/run/systemd/system").exists():
        # The package starts a service; only the program is wanted.
        subprocess.run([*prefix, "systemctl", "disable", "--now", "pgbouncer"], **quiet)


def administrator() -> list[str] | None:
    """The prefix that makes a command root's; none if that would ask for a password."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    ):
        return ["sudo", "-n"]
    return None
