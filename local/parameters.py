"""The template's parameters that only this machine or this build knows.

samconfig.toml includes them from `target/`: `parameters.local.yaml` for the local cloud,
`parameters.yaml` for every environment on AWS. They are JSON, which is YAML.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

from . import gateway, postgres
from .settings import LOGIN_KEYS, MAILS, PHONES, ROOT, SEALING_KEYS, SIGNING_KEYS, TOKEN_KEYS

LOCAL = ROOT / "target" / "parameters.local.yaml"
AWS = ROOT / "target" / "parameters.yaml"
MIGRATIONS = ROOT / "migrations"


def write_local() -> None:
    """Holds the local database's passwords, which are good for nothing else."""
    database = postgres.CLOUD
    values = local_values(
        url=database.url(postgres.APP, postgres.DATABASE),
        owner_url=database.url(postgres.OWNER, postgres.DATABASE),
        password=database.password(postgres.APP),
    )
    LOCAL.parent.mkdir(exist_ok=True)
    postgres.write_private(LOCAL, text(values))


def local_values(*, url: str, owner_url: str, password: str) -> dict[str, str]:
    """All that `parameters.local.yaml` brings; only the running database knows the arguments."""
    return aws_values() | {
        "Architecture": "x86_64" if platform.machine() == "x86_64" else "arm64",
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


def write_aws() -> None:
    AWS.parent.mkdir(exist_ok=True)
    AWS.write_text(text(aws_values()))


def aws_values() -> dict[str, str]:
    """All that `parameters.yaml` brings."""
    return {"MigrationsHash": migrations_hash(MIGRATIONS)}


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
