"""Schemathesis over openapi.json against the local cloud: no 5xx, and no status that the document
does not name.

It comes as a buyer of the demonstration store and as an owner of a store of its own, because an
owner can close a store. Both log in as people do.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

from . import build, cloud, emulator, parts, postgres, processes, tools
from .settings import CI, HERE, HOME, PHONES, ROOT, SEEDED, Failure, api_url, say

DOCUMENT = ROOT / "openapi.json"
HOOKS = HERE / "contract_hooks.py"
# With tokens in it.
CONFIGURATION = HOME / "contract.toml"
STORE = "contract"
PHASES = ("examples", "coverage", "fuzzing")
SEED = 5
# Of each operation, beside the edges of what its schema allows.
EXAMPLES = 10
# Less than their tokens are good for.
TIME_MAX_S = 540
PATIENCE_S = 30
ORDERS = 5


def check() -> int:
    """Against the local cloud, which is up. Schemathesis' exit status."""
    if not processes.find(emulator.NAME):
        raise Failure("Schemathesis needs the local cloud: make up")
    if sys.version_info < (3, 11):
        if CI:
            raise Failure("Schemathesis needs Python 3.11 or newer.")
        say("Not run: Schemathesis, which needs Python 3.11 or newer.")
        return 0
    with parts.part("tools"):
        tools.install("schemathesis")
    postgres.write_private(CONFIGURATION, configuration())
    command = [str(tools.binary("schemathesis", "schemathesis"))]
    command += ["--config-file", str(CONFIGURATION), "--no-color", "run", str(DOCUMENT)]
    # One worker: on Python 3.11 two of them disturb each other in the interpreter's own parser.
    command += ["--url", api_url(), "--workers", "1", "--request-timeout", "30"]
    command += ["--phases", ",".join(PHASES), "--max-examples", str(EXAMPLES)]
    command += ["--checks", "not_a_server_error,status_code_conformance"]
    command += ["--seed", str(SEED), "--generation-database", "none", "--output-sanitize", "true"]
    options = {"cwd": HOME, "env": cloud.environment(), "timeout": TIME_MAX_S}
    try:
        with parts.part("contract"):
            return subprocess.run(command, **options).returncode
    except subprocess.TimeoutExpired:
        raise Failure(f"Schemathesis was not done within {TIME_MAX_S} s.") from None
    finally:
        CONFIGURATION.unlink()


def configuration() -> str:
    """Who comes, and names of what is there, so that not everything is 404; half stay made up."""
    seeded = json.loads(SEEDED.read_text())
    open_store()
    buyer, owner, viewer = log_in(seeded["store"]), sign_in("owner"), sign_in("viewer")
    orders = [place(seeded["product"], buyer["access_token"]) for _ in range(ORDERS)]
    words = {
        "stores": [seeded["store"]],
        "gateways": ["stripe", "mercado-pago", "sandbox"],
        "products": [seeded["product"]],
        "orders": orders,
        "own-products": [create_product(owner["access_token"])],
    }
    bearers = {
        "buyer": buyer["access_token"],
        "refresh": buyer["refresh_token"],
        "staff": owner["access_token"],
        "staff-refresh": viewer["refresh_token"],
    }
    lines = [f"hooks = {json.dumps(str(HOOKS))}", "[warnings]", 'fail-on = ["missing_auth"]']
    # Methods without a route are API Gateway's to refuse.
    lines += ["[phases.coverage]", "unexpected-methods = []"]
    # Ids out of answers would end its own sessions and remove itself from the store.
    for phase in PHASES:
        lines += [f"[phases.{phase}.extra-data-sources]", "responses = false"]
    for scheme, token in bearers.items():
        lines += [f"[auth.openapi.{scheme}]", f"bearer = {json.dumps(token)}"]
    for name, values in words.items():
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(values)}"]
    public = {"store": "stores", "gateway": "gateways", "product": "products", "order": "orders"}
    lines += known("^/v1/(stores|products|orders|webhooks)", public)
    lines += known("^/v1/admin/", {"product": "own-products"})
    # Such a token is good once: nearly all of what these answer is 401.
    lines += ["[[operations]]", 'include-path-regex = "^/v1/(staff/)?sessions"', "warnings = false"]
    return "\n".join(lines) + "\n"


def known(paths: str, parameters: dict[str, str]) -> list[str]:
    lines = ["[[operations]]", f'include-path-regex = "{paths}"', "[operations.parameters]"]
    for parameter, words in parameters.items():
        lines.append(f'"path.{parameter}" = {{ dictionary = "{words}", probability = 0.5 }}')
    return lines


def log_in(store: str) -> dict:
    """A buyer's session, by the code that the pretended phone gets."""
    phone = f"+34{int(time.time() * 1000) % 10**9:09}"
    asked = post(f"/v1/stores/{store}/login-codes", {"phone": phone})
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = PHONES.read_text().splitlines() if PHONES.exists() else []
        texts = [one["text"] for one in map(json.loads, lines) if one["phone"] == phone]
        if texts:
            body = {"asking_session": asked["asking_session"], "code": texts[-1][:6]}
            return post(f"/v1/stores/{store}/sessions", body)
        time.sleep(0.2)
    raise Failure(f"No code came to {PHONES.name} within {PATIENCE_S} s.")


def open_store() -> None:
    database = postgres.CLOUD.url(postgres.OWNER, postgres.DATABASE)
    statement = (
        "insert into tenants (id, slug, name)"
        f" values ('{uuid.uuid4()}', '{STORE}', 'Contract') on conflict (slug) do nothing"
    )
    psql = [str(postgres.find_programs() / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    command = [*psql, "-d", database, "-c", statement]
    processes.run(command, "a store for Schemathesis", env=postgres.plain_environment())


def sign_in(role: str) -> dict:
    """A session of somebody new in that store, by invitation."""
    email = f"{role}-{uuid.uuid4().hex}@example.org"
    invite = [str(build.program("tirada")), "--json", "staff", "invite"]
    invite += ["--store", STORE, "--email", email, "--role", role]
    options = {"env": cloud.environment(), "stdout": subprocess.PIPE, "text": True}
    printed = processes.run(invite, "an invitation", **options).stdout
    link = json.loads(printed)["link"].partition("#")[2]
    secret = post("/v1/staff/enrolments", {"link": link})["secret"]
    return post("/v1/staff/sessions", {"link": link, "one_time_password": one_time(secret)})


def one_time(secret: str) -> str:
    """The password of now, by RFC 6238."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    mac = hmac.new(key, struct.pack(">Q", int(time.time()) // 30), hashlib.sha1).digest()
    start = mac[-1] & 15
    return f"{(struct.unpack('>I', mac[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def place(product: str, token: str) -> str:
    return post(f"/v1/products/{product}/orders", {"quantity": 1}, token)["id"]


def create_product(token: str) -> str:
    now = time.time()
    instant = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + s)) for s in (3600, 90000)]
    product = {
        "name": "Contract",
        "campaign": "contract",
        "price": {"amount": "100", "currency": "BRL"},
        "first": 0,
        "count": 1000,
        "padding": 3,
        "opens_at": instant[0],
        "closes_at": instant[1],
        "zone": "America/Sao_Paulo",
        "hold_seconds": 900,
        "numbers_per_order_max": 10,
        "numbers_per_buyer_max": 10,
    }
    return post("/v1/admin/products", product, token)["id"]


def post(path: str, body: dict, token: str | None = None) -> dict:
    """What the API answers; a failure that says what, if that is no success."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(api_url() + path, json.dumps(body).encode(), headers)
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with without_proxy.open(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        raise Failure(f"POST {path} answered {error.code}: {said}") from None
