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
    values = {
        "Architecture": "x86_64" if platform.machine() == "x86_64" else "arm64",
        "MigrationsHash": migrations_hash(MIGRATIONS),
        "DatabaseUrl": database.url(postgres.APP, postgres.DATABASE),
        "OwnerDatabaseUrl": database.url(postgres.OWNER, postgres.DATABASE),
        "AppPassword": database.password(postgres.APP),
        "TokenKeys": compact(TOKEN_KEYS),
        "SigningKeys": compact(SIGNING_KEYS),
        "LoginKeys": compact(LOGIN_KEYS),
        "PhonesFile": str(PHONES),
        "MailsFile": str(MAILS),
        "SealingKeys": compact(SEALING_KEYS),
        "SandboxUrl": gateway.sandbox_url(),
    }
    LOCAL.parent.mkdir(exist_ok=True)
    postgres.write_private(LOCAL, json.dumps(values, indent=2) + "\n")


def compact(path: Path) -> str:
    """A JSON file in one line without spaces."""
    return json.dumps(json.loads(path.read_text()), separators=(",", ":"))


def write_aws() -> None:
    AWS.parent.mkdir(exist_ok=True)
    AWS.write_text(json.dumps({"MigrationsHash": migrations_hash(MIGRATIONS)}, indent=2) + "\n")


def migrations_hash(folder: Path) -> str:
    """A new value is what makes a deployment run the migrations."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.sql")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
