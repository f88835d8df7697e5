"""The image that `sam local` runs functions in: this machine's libraries, or AWS's own image.

This machine's build runs in an image of the shared libraries that it is linked with: the C library
is the right one, and nothing is downloaded. AWS's image has an older C library and runs what
`make package` builds. The SAM CLI adds its emulator of Lambda's runtime to either image.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from . import debian
from .engine import Engine
from .settings import ARCHITECTURE, BOOTSTRAPS, FUNCTIONS, ROOT, Failure, say

AWS = f"public.ecr.aws/lambda/provided:al2023-{ARCHITECTURE}"
AWS_GLIBC = 34  # minor version in Amazon Linux 2023
MACHINES = {62: "x86_64", 183: "arm64"}  # e_machine of an ELF file
# The SAM CLI runs these in the image when it adds its emulator.
PROGRAMS = ("sh", "mv", "chmod")
# Clients of AWS do not start without certificates, which AWS's image has too.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# No process listens on this port of the container, so that no function reaches AWS.
SETTINGS = "ENV AWS_ENDPOINT_URL=http://127.0.0.1:9\n"


def ensure(engine: Engine, from_aws: bool) -> str:
    """Name of the image, which is built if the engine lacks it. The name follows the contents."""
    if from_aws:
        require_built_for_aws()
        say(f"- pulling {AWS}")
        engine.pull(AWS)
        base = engine.image_id(AWS)
        if not base:
            raise Failure(f"{AWS} cannot be pulled. Without IMAGE=aws no registry is needed.")
        context = archive({"Dockerfile": f"# {base}\nFROM {AWS}\n{SETTINGS}".encode()})
    else:
        dockerfile = f"FROM scratch\nCOPY root /\n{SETTINGS}".encode()
        context = archive({"Dockerfile": dockerfile, "root/tmp/": b"", **of_this_machine()})
    # The checkout is part of the name: a run removes the containers of its own image only.
    name = f"tirada-sam-local-{hashlib.sha256(str(ROOT).encode() + context).hexdigest()[:12]}"
    if not engine.image_id(name):
        say(f"- image {name}")
        engine.build(name, context)
    return name


def of_this_machine() -> dict[str, bytes]:
    """The programs, and the shared libraries of these and of the functions."""
    programs = {f"/bin/{name}": shutil.which(name) for name in PROGRAMS}
    wanted = [*programs.values(), *(BOOTSTRAPS / name / "bootstrap" for name in FUNCTIONS)]
    said = subprocess.run(["ldd", *map(str, wanted)], capture_output=True, text=True, check=True)
    libraries = {path: path for path in re.findall(r"(/\S+) \(0x", said.stdout)}
    if not CERTIFICATES.exists():
        raise Failure(f"{CERTIFICATES} is missing: {debian.by_hand('ca-certificates')}")
    certificates = {str(CERTIFICATES): str(CERTIFICATES)}
    found = sorted((programs | libraries | certificates).items())
    return {f"root{path}": Path(source).read_bytes() for path, source in found}


def archive(files: dict[str, bytes]) -> bytes:
    """A tar archive that depends on the contents only. A name with a slash at its end: a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o755, len(content)
            if name.endswith("/"):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def require_built_for_aws() -> None:
    """Reads architecture and C library from the files, because a later build may replace them."""
    for name in FUNCTIONS:
        bootstrap = BOOTSTRAPS / name / "bootstrap"
        content = bootstrap.read_bytes() if bootstrap.exists() else b""
        machine = MACHINES.get(int.from_bytes(content[18:20], "little"))
        glibc = max(map(int, re.findall(rb"GLIBC_2\.(\d+)", content)), default=0)
        if machine != ARCHITECTURE or glibc > AWS_GLIBC:
            raise Failure(
                f"{bootstrap.relative_to(ROOT)} is no build for {ARCHITECTURE} in AWS's image."
                f" To get one: make package ARCH={ARCHITECTURE}"
            )
