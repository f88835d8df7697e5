"""Debian's packages: installed where that asks nobody, else left to the person."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .settings import say


def by_hand(package: str) -> str:
    return f"sudo apt-get install -y {package}"


def install(package: str, *services: str) -> None:
    """By apt, as root or with a sudo that asks for no password.

    Its services are stopped: only the programs are wanted.
    """
    prefix = administrator()
    if prefix is None or not shutil.which("apt-get"):
        return
    say(f"- installing {package} with apt-get")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    wanted = ["install", "-y", "--no-install-recommends", package]
    if subprocess.run([*apt, *wanted], **quiet).returncode != 0:
        subprocess.run([*apt, "update"], **quiet)
        subprocess.run([*apt, *wanted], **quiet)
    if services and Path("/run/systemd/system").exists():
        subprocess.run([*prefix, "systemctl", "disable", "--now", *services], **quiet)


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
