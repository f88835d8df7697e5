"""What a machine must have before anything else works, each with the line that installs it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys

from .settings import ROOT, Failure, say

APT = "sudo apt-get install -y"


def check() -> None:
    """Raise with every missing thing named at once."""
    system = platform.system()
    if system == "Darwin":
        raise Failure("On macOS run Tirada in a Linux virtual machine (arm64 or x86_64).")
    if system != "Linux":
        raise Failure(f"{system} is not supported: use Linux (on Windows, WSL2).")
    if platform.machine() not in ("x86_64", "aarch64", "arm64"):
        raise Failure(f"{platform.machine()} is not supported: use x86_64 or arm64.")
    missing = [line for line in (rust(), python(), compiler(), make(), setpriv()) if line]
    if missing:
        raise Failure("Missing on this machine:\n" + "\n".join(f"  - {m}" for m in missing))
    say("- this machine has what is needed")


def rust() -> str | None:
    wanted = re.search(r'^rust-version\s*=\s*"([\d.]+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    least = wanted.group(1) if wanted else "1.95"
    advice = (
        f"Rust {least} or newer: install rustup from https://rustup.rs, then `rustup update stable`"
    )
    if not shutil.which("cargo"):
        return advice
    quiet = {"capture_output": True, "text": True, "cwd": ROOT}
    said = subprocess.run(["cargo", "--version"], **quiet).stdout
    have = re.search(r"(\d+)\.(\d+)", said)
    if have and (int(have[1]), int(have[2])) >= tuple(int(n) for n in least.split(".")[:2]):
        return None
    if not said and shutil.which("rustup"):
        return (
            f"Rust {pinned()}, which rust-toolchain.toml names: `rustup toolchain install"
            f" {pinned()}`, or take the one that is here: RUSTUP_TOOLCHAIN=stable make …"
        )
    return f"{advice} (found: {said.strip() or 'a cargo that does not run'})"


def pinned() -> str:
    """The compiler that rust-toolchain.toml names."""
    found = re.search(r'^channel = "(.+)"', (ROOT / "rust-toolchain.toml").read_text(), re.M)
    return found.group(1) if found else "stable"


def python() -> str | None:
    if sys.version_info < (3, 10):
        return f"Python 3.10 or newer (this is {platform.python_version()}): {APT} python3"
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        return f"Python's venv module: {APT} python3-venv"
    return None


def compiler() -> str | None:
    if any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        return None
    return f"a C compiler: {APT} build-essential"


def make() -> str | None:
    return None if shutil.which("make") else f"make: {APT} make"


def setpriv() -> str | None:
    """Postgres refuses to run as root; as root we step down with setpriv."""
    if os.geteuid() != 0 or shutil.which("setpriv"):
        return None
    return "setpriv (Postgres does not run as root): apt-get install -y util-linux"
