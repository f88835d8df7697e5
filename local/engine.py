"""The container engine of `sam local`: Docker's, found or started, and asked over its socket.

An engine that answers already is used and left as it is. Otherwise this module starts an engine as
root, with its data in `.local/docker`, whose containers reach this machine and nothing behind it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import shutil
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from . import debian, processes
from .settings import HOME, Failure, say

NAME = "docker"
STATE = HOME / "docker"
# The network device of our engine, and its network: one for each checkout, because docker0 may be
# another engine's.
DIGEST = hashlib.sha256(str(HOME).encode()).digest()
BRIDGE = f"tirada-{DIGEST.hex()[:8]}"
ADDRESS, NETMASK = f"10.{DIGEST[4]}.{DIGEST[5]}.1", "255.255.255.0"
# Its sockets: not in the checkout, because a socket's path has 108 bytes at most.
RUNNING = Path("/run") / BRIDGE
SOCKET = RUNNING / "sock"
STANDARD_SOCKET = "/var/run/docker.sock"
PACKAGE = "docker.io"
BY_HAND = debian.by_hand(PACKAGE)
ANSWER_TIMEOUT_S = 120
# ioctl(2) of network devices.
GET_ADDRESS = 0x8915  # SIOCGIFADDR
SET_FLAGS = 0x8914  # SIOCSIFFLAGS
SET_ADDRESS = 0x8916  # SIOCSIFADDR
SET_NETMASK = 0x891C  # SIOCSIFNETMASK
ADD_BRIDGE = 0x89A0  # SIOCBRADDBR
DELETE_BRIDGE = 0x89A1  # SIOCBRDELBR


class Unreachable(Failure):
    """No engine answers."""


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_TIMEOUT_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


@dataclass(frozen=True)
class Engine:
    """An engine that answers on a Unix socket of this machine."""

    socket: str

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of the engine's answer."""
        headers = {"Content-Type": "application/x-tar"} if body else {}
        try:
            with contextlib.closing(Connection(self.socket)) as connection:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
        except PermissionError:
            raise Failure(
                f"The container engine's socket {self.socket} is not open to you."
                " Join its group: sudo usermod -aG docker $USER, and log in again."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            text = f"The container engine at {self.socket} does not answer: {error}"
            raise Unreachable(text) from None

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/_ping")[0] == 200
        except Unreachable:
            return False

    def image_id(self, name: str) -> str | None:
        """None if the engine does not have it."""
        status, said = self.ask("GET", f"/images/{name}/json")
        return json.loads(said)["Id"] if status == 200 else None

    def pull(self, name: str) -> None:
        """Fetches the newest image, or keeps the present one if the registry does not answer."""
        self.ask("POST", f"/images/create?fromImage={quote(name, safe='')}")

    def build(self, name: str, context: bytes) -> None:
        """An image from a tar archive with a Dockerfile. The engine reports an error with 200."""
        status, said = self.ask("POST", f"/build?t={name}&forcerm=1", context)
        if status != 200 or b'"error"' in said:
            raise Failure(f"The container engine built no image: {said.decode()[-500:]}")

    def remove_containers(self, image: str) -> None:
        """Those that run this image, or an image made from it."""
        filters = quote(json.dumps({"ancestor": [image]}))
        found = json.loads(self.ask("GET", f"/containers/json?all=1&filters={filters}")[1])
        for one in found:
            self.ask("DELETE", f"/containers/{one['Id']}?force=1&v=1")

    def bridge(self) -> tuple[str, str] | None:
        """Name and address of the network device that containers reach this machine by.

        None if it is not here: the engine is rootless, or runs on another machine.
        """
        options = json.loads(self.ask("GET", "/networks/bridge")[1]).get("Options", {})
        device = options.get("com.docker.network.bridge.name", "")
        try:
            return device, address_of(device)
        except OSError:
            return None


def address_of(device: str) -> str:
    """The IPv4 address of a network device of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe, GET_ADDRESS, struct.pack("40s", device.encode()))
    return socket.inet_ntoa(answer[20:24])


def make_bridge(device: str) -> None:
    """A bridge with our address, up."""
    up = 1  # IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, ADD_BRIDGE, struct.pack("16s", device.encode()))
        for request, text in ((SET_ADDRESS, ADDRESS), (SET_NETMASK, NETMASK)):
            place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
            fcntl.ioctl(control, request, struct.pack("16s16s8x", device.encode(), place))
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh22x", device.encode(), up))


def delete_bridge(device: str) -> None:
    """Take a bridge down and away; nothing if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        fcntl.ioctl(probe, SET_FLAGS, struct.pack("16sh22x", device.encode(), 0))
        fcntl.ioctl(probe, DELETE_BRIDGE, struct.pack("16s", device.encode()))


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """An engine that answers; stopped at the end if it is one of ours."""
    found = theirs()
    if found:
        say(f"- the container engine at {found.socket}")
        yield found
        return
    try:
        yield start()
    finally:
        stop()


def theirs() -> Engine | None:
    """An engine that answers on this machine and runs as root."""
    host = os.environ.get("DOCKER_HOST") or f"unix://{STANDARD_SOCKET}"
    found = Engine(host.removeprefix("unix://"))
    return found if host.startswith("unix://") and found.answers() and found.bridge() else None


def require() -> None:
    """Says at once if there is no engine and none can be started."""
    if theirs():
        return
    if os.geteuid() == 0 and not daemon():
        debian.install(PACKAGE, "docker.socket", "docker.service")
    if os.geteuid() == 0 and daemon():
        return
    have = "sudo systemctl start docker" if daemon() else BY_HAND
    raise Failure(
        "sam local needs a container engine that runs on this machine as root; none answers at"
        f" {STANDARD_SOCKET} or at a unix:// address in DOCKER_HOST. To get one: {have}, then"
        " `sudo usermod -aG docker $USER` and a new login."
    )


def start() -> Engine:
    """Our own engine. It changes no firewall and forwards no packets: its network ends here."""
    require()
    STATE.mkdir(parents=True, exist_ok=True)
    RUNNING.mkdir(mode=0o700, parents=True, exist_ok=True)
    SOCKET.unlink(missing_ok=True)
    (STATE / "pid").unlink(missing_ok=True)
    delete_bridge(BRIDGE)
    make_bridge(BRIDGE)
    engine = Engine(str(SOCKET))
    places = {"data-root": STATE / "data", "exec-root": RUNNING / "exec", "pidfile": STATE / "pid"}
    command = [str(daemon()), f"--host={engine.url}"]
    command += [f"--{option}={path}" for option, path in places.items()]
    command += [
        f"--bridge={BRIDGE}",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-masq=false",
        "--ip-forward=false",
    ]
    say("- a container engine of our own, in .local/docker")
    processes.start(
        NAME,
        command,
        port=0,
        environment={"PATH": search_path(), "HOME": str(STATE)},
        directory=STATE,
        ready=engine.answers,
    )
    return engine


def stop() -> bool:
    """Stop our engine, if there is one. Its images stay, so that the next run is quick."""
    stopped = processes.stop(NAME)
    shutil.rmtree(RUNNING, ignore_errors=True)
    delete_bridge(BRIDGE)
    return stopped


def search_path() -> str:
    """Debian keeps the engine and what it calls in /usr/sbin."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def daemon() -> str | None:
    return shutil.which("dockerd", path=search_path())
