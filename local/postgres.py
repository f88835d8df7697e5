"""PostgreSQL from the wheel: one server for the local cloud, throw-away ones for everything else.

All listen on 127.0.0.1 only, with no Unix socket. The servers of the local cloud and of `sam local`
ask for passwords, as RDS does, so that a role without one is found here; the others trust every
connection.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import processes, tools
from .settings import (
    BENCH_POSTGRES_PORT,
    HOME,
    LOOPBACK,
    POSTGRES_PORT,
    TEST_POSTGRES_PORT,
    Failure,
    Port,
    say,
)

SUPERUSER = "postgres"
DATABASE = "tirada"
# May create roles and owns the database, but is no superuser: what RDS gives, too.
OWNER = "tirada_owner"
APP = "tirada_app"
NEXT_PORTS = 50
# A file system in memory, and the room that the tests' server needs there, in bytes.
MEMORY = Path("/dev/shm")
MEMORY_MIN = 6 << 30


@dataclass(frozen=True)
class Server:
    """One data directory, its port and what differs from PostgreSQL's own settings."""

    name: str
    port: Port
    settings: Mapping[str, str] = field(default_factory=dict)
    moves: bool = False  # takes the next free port if its own is taken
    trusts: bool = False  # asks for no password
    in_memory: bool = False  # keeps its files in memory where there is room

    @property
    def home(self) -> Path:
        return HOME / self.name

    def password(self, role: str) -> str:
        return json.loads((self.home / "passwords.json").read_text())[role]

    def url(self, role: str = SUPERUSER, database: str = "postgres") -> str:
        record = processes.find(self.name)
        if not record:
            raise Failure(f"{self.name} is not running.")
        user = role if self.trusts else f"{role}:{self.password(role)}"
        return f"postgres://{user}@{LOOPBACK}:{record['port']}/{database}"


CLOUD = Server("postgres", POSTGRES_PORT, {"max_connections": "400"})
# Nothing in it must survive a crash, so it waits for no disk. Each test makes a database of several
# hundred files, which cost half of the tests' processor time in a file system on disk.
TEST = Server(
    "test-postgres",
    TEST_POSTGRES_PORT,
    {
        "max_connections": "600",
        "shared_buffers": "512MB",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_wal_size": "2GB",
        "autovacuum_naptime": "10s",
    },
    moves=True,
    trusts=True,
    in_memory=True,
)
# For one run of `sam local`. It asks for passwords, because containers reach it.
SAM_LOCAL = Server(
    "sam-local-postgres",
    TEST_POSTGRES_PORT,
    {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"},
    moves=True,
)
# As durable as production and tuned like it: what is measured on it counts.
BENCH = Server(
    "bench-postgres",
    BENCH_POSTGRES_PORT,
    {
        "max_connections": "200",
        "shared_buffers": "2GB",
        "effective_cache_size": "8GB",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "wal_compression": "off",
        "wal_buffers": "64MB",
        "min_wal_size": "4GB",
        "max_wal_size": "8GB",
        "checkpoint_timeout": "15min",
        "random_page_cost": "1.1",
        "maintenance_work_mem": "512MB",
    },
    moves=True,
    trusts=True,
)


def start(server: Server) -> bool:
    """Start it, or find that it runs. True if this call started it."""
    if processes.find(server.name):
        return False
    port = free_port(server)
    programs = find_programs()
    data = server.home / "data"
    if not (data / "PG_VERSION").exists() or not (server.home / "ready").exists():
        create(server, programs, data)
    (data / "postmaster.pid").unlink(missing_ok=True)  # find() said that none of ours runs
    settings = {
        "port": str(port),
        "listen_addresses": LOOPBACK,
        "unix_socket_directories": "",
        "timezone": "UTC",
        **server.settings,
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    check = [str(programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(port)]
    say(f"- {server.name} on {LOOPBACK}:{port}")
    processes.start(
        server.name,
        [*stepping_down(programs), str(programs / "postgres"), "-D", str(data), *options],
        port=port,
        environment=plain_environment(),
        directory=server.home,
        ready=lambda: subprocess.run(check, check=False).returncode == 0,
    )
    return True


def find_programs() -> Path:
    """The folder of PostgreSQL's own programs."""
    return tools.postgres_home() / "bin"


def create(server: Server, programs: Path, data: Path) -> None:
    """A new cluster, owned by the user that will run it."""
    remove(server)
    make_home(server)
    passwords = {role: secrets.token_hex(16) for role in (SUPERUSER, OWNER, APP)}
    write_private(server.home / "passwords.json", json.dumps(passwords))
    first = server.home / "first-password"
    write_private(first, passwords[SUPERUSER])
    if os.geteuid() == 0:
        os.chown(server.home, *unprivileged())
        os.chown(first, *unprivileged())
    command = [*stepping_down(programs), str(programs / "initdb"), "-D", str(data)]
    command += ["-U", SUPERUSER, "--encoding=UTF8", "--no-sync"]
    command += ["--auth=trust"] if server.trusts else ["--auth=scram-sha-256", f"--pwfile={first}"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    what = f"a new cluster for {server.name}"
    processes.run(command, what, cwd=server.home, env=plain_environment(), **quiet)
    first.unlink()
    (server.home / "ready").touch()


def write_private(path: Path, text: str) -> None:
    """For nobody else's eyes, from the first byte on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def stop(server: Server) -> bool:
    """Stop it (open connections are cut) and remove its data."""
    stopped = processes.stop(server.name, signal.SIGINT)
    remove(server)
    return stopped


def make_home(server: Server) -> None:
    """The server's folder: a link into the memory's file system if there is room."""
    if server.in_memory and has_room(MEMORY):
        # Named after the checkout, so that a new one at the same place takes over what is left.
        folder = MEMORY / f"tirada-{hashlib.sha256(str(server.home).encode()).hexdigest()[:12]}"
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(FileExistsError):  # somebody else's
            folder.mkdir(mode=0o700)
            server.home.parent.mkdir(exist_ok=True)
            server.home.symlink_to(folder)
            return
    server.home.mkdir(parents=True)


def has_room(folder: Path) -> bool:
    try:
        space = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and space.f_bavail * space.f_frsize >= MEMORY_MIN


def remove(server: Server) -> None:
    """Its data, wherever it lies."""
    shutil.rmtree(server.home.resolve(), ignore_errors=True)
    if server.home.is_symlink():
        server.home.unlink()


def prepare_database(server: Server = CLOUD) -> None:
    """Owner role and database of Tirada; the `migrate` function makes the rest."""
    password = f"''{server.password(OWNER)}''"  # quoted within a quoted statement
    sql = (
        f"select 'create role {OWNER} login createrole password {password}'"
        f" where not exists (select from pg_roles where rolname = '{OWNER}') \\gexec\n"
        f"select 'create database {DATABASE} owner {OWNER}'"
        f" where not exists (select from pg_database where datname = '{DATABASE}') \\gexec\n"
    )
    psql = str(find_programs() / "psql")
    command = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.url()]
    processes.run(command, f"database {DATABASE}", input=sql, text=True, env=plain_environment())


def free_port(server: Server) -> int:
    """The server's port; for one that may move, the next free one."""
    if not server.moves:
        return processes.require_free(server.port)
    first = server.port.number
    for number in range(first, min(first + NEXT_PORTS, 65536)):
        if bindable(number):
            return number
    raise Failure(f"No free port from {first} on. Choose another: {server.port.variable}=…")


def bindable(number: int) -> bool:
    """Whether a server can listen there: nobody does, and no outgoing connection has the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, number))
        except OSError:
            return False
    return True


def plain_environment() -> dict[str, str]:
    """Without the person's PG* variables, which would move ports and settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C"}


def unprivileged() -> tuple[int, int]:
    """User and group that run Postgres when we are root: it refuses root."""
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def stepping_down(programs: Path) -> list[str]:
    """The prefix that runs a command as that user; empty when we are an ordinary user.

    A checkout below a private directory (/root, say) cannot be entered by that user. Then it
    keeps one capability, to search directories and read files; no permission on disk is changed.
    The secure bit lets it count in access(2), too, by which Postgres looks for its own programs.
    """
    if os.geteuid() != 0:
        return []
    uid, gid = unprivileged()
    prefix = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    above = (programs, *programs.parents, HOME, *HOME.parents)
    if all(part.stat().st_mode & stat.S_IXOTH for part in above):
        return prefix
    capability = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return [*prefix, "--securebits=+no_setuid_fixup", *capability]
