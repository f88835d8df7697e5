"""The template's parameters that only this machine or this build knows.

samconfig.toml includes them from `target/`: `parameters.local.yaml` for the local cloud,
`parameters.sam-local.yaml` for `sam local`, `parameters.yaml` for every environment on AWS. They
are JSON, which is YAML.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from . import gateway, postgres
from .settings import (
    ARCHITECTURE,
    LOGIN_KEYS,
    LOOPBACK,
    MAILS,
    PHONES,
    ROOT,
    SEALING_KEYS,
    SIGNING_KEYS,
    TOKEN_KEYS,
)

LOCAL = ROOT / "target" / "parameters.local.yaml"
SAM_LOCAL = ROOT / "target" / "parameters.sam-local.yaml"
AWS = ROOT / "target" / "parameters.yaml"
MIGRATIONS = ROOT / "migrations"


def write_local() -> None:
    """For the local cloud's deployment. Holds passwords, which are good for nothing else."""
    write(LOCAL, values_of(postgres.CLOUD, LOOPBACK))


def write_sam_local(database: postgres.Server, address: str, issuer: str) -> None:
    """For functions in containers, which reach the database at another address than we do."""
    write(SAM_LOCAL, sam_local_values(values_of(database, address), issuer))


def sam_local_values(local: dict[str, str], issuer: str) -> dict[str, str]:
    """All that `parameters.sam-local.yaml` brings."""
    return local | {"TokenIssuer": issuer}


def values_of(database: postgres.Server, address: str) -> dict[str, str]:
    """Those of a running database that is reached at this address."""
    urls = [database.url(role, postgres.DATABASE) for role in (postgres.APP, postgres.OWNER)]
    url, owner_url = (one.replace(f"@{LOOPBACK}:", f"@{address}:") for one in urls)
    password = database.password(postgres.APP)
    return local_values(url=url, owner_url=owner_url, password=password)


def local_values(*, url: str, owner_url: str, password: str) -> dict[str, str]:
    """All that `parameters.local.yaml` brings; only the running database knows the arguments."""
    return aws_values(ARCHITECTURE) | {
        "DatabaseUrl": url,
        "OwnerDatabaseUrl": owner_url,
        "AppPassword": password,
        "TokenKeys": compact(TOKEN_KEYS),
        "SigningKeys": compact(SIGNING_KEYS),
        "LoginKeys": compact(LOGIN_KEYS),
        "PhonesFile": str(PHONES),
        "MailsFile": str(MAILS),
        "SealingKeys": compact(SEALING_KEYS),
        "SandboxUrl": gateway.sandbox_url(),
    }


def write_aws(architecture: str) -> None:
    write(AWS, aws_values(architecture))


def aws_values(architecture: str) -> dict[str, str]:
    """All that `parameters.yaml` brings. The architecture is that of the files in target/lambda, or
    no function would start."""
    return {"Architecture": architecture, "MigrationsHash": migrations_hash(MIGRATIONS)}


def write(path: Path, values: dict[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    postgres.write_private(path, text(values))


def text(values: dict[str, str]) -> str:
    return json.dumps(values, indent=2) + "\n"


def compact(path: Path) -> str:
    """A JSON file in one line without spaces."""
    return json.dumps(json.loads(path.read_text()), separators=(",", ":"))


def migrations_hash(folder: Path) -> str:
    """A new value makes a deployment run the migrations, which set the rights as well.

    Covers the path and the bytes of every file.
    """
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    digest = hashlib.sha256()
    for name, path in sorted(paths.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
