"""Checks that `sam local` runs our functions: one of each kind, then an order over HTTP.

There are no queues: the API records an order without sending its message, and this module invokes
the worker with the message instead.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import urllib.error
import urllib.request

from . import parts, processes
from .sam_local import API, Run, environment
from .settings import LOGS, LOOPBACK, ROOT, Failure, say, show

EVENTS = ROOT / "events"
REQUEST_TIMEOUT = 30  # seconds


def check(from_aws: bool) -> None:
    """One function of each kind, then an order over HTTP: each answer is shown and checked."""
    with parts.part("sam local"), environment(from_aws) as run:
        invoke_each_kind(run)
        order_over_http(run)
    say("sam local works.")


def invoke_each_kind(run: Run) -> None:
    """HTTP, SQS and a schedule, each with its file in events/."""
    event = read_event("http-read-product.json")
    example = event["pathParameters"]["product"]
    event = json.loads(json.dumps(event).replace(example, run.product))
    answer = run.invoke("Catalog", event)
    body = json.loads(answer.get("body") or "{}")
    require(answer.get("statusCode") == 200 and body.get("id") == run.product, "Catalog", answer)
    show(f"  GET /v1/products/{run.product}: 200 {part(body, 'name', 'first', 'count')}")

    event = read_event("sqs-reserve-numbers.json")
    answer = run.invoke("ReserveNumbers", event)
    # The orders of the file do not exist: the worker reports each message as failed.
    failed = [{"itemIdentifier": record["messageId"]} for record in event["Records"]]
    require(answer == {"batchItemFailures": failed}, "ReserveNumbers", answer)
    show(f"  messages of unknown orders: {json.dumps(answer)}")

    answer = run.invoke("ExpireReservations", read_event("scheduler-expire-reservations.json"))
    require(answer.get("orders") == 0 and answer.get("failed") == 0, "ExpireReservations", answer)
    show(f"  the schedule: {json.dumps(answer)}")


def order_over_http(run: Run) -> None:
    """An order placed over HTTP, reserved by the worker, and read back."""
    port = processes.free_port()
    api = f"http://{LOOPBACK}:{port}"
    say(f"- sam local start-api on {LOOPBACK}:{port}")
    processes.start(
        API,
        run.sam("start-api", "--host", LOOPBACK, "--port", str(port)),
        port=port,
        environment=run.environment,
        directory=ROOT,
        ready=lambda: processes.listening(port),
    )
    try:
        path = f"/v1/products/{run.product}/orders"
        status, headers, order = ask(run, api + path, {"numbers": [7, 77], "quantity": 1})
        location = headers.get("location", "")
        require(status == 202 and location.startswith("/v1/orders/"), f"POST {path}", order)
        show(f"  POST {path}: 202 {location}")

        answer = run.invoke("ReserveNumbers", message_of(run, order["id"]))
        require(answer == {"batchItemFailures": []}, "ReserveNumbers", answer)
        show(f"  its message: {json.dumps(answer)}")

        status, _, order = ask(run, api + location)
        reserved = order.get("state") == "reserved" and {7, 77} <= set(order.get("numbers", []))
        require(status == 200 and reserved, f"GET {location}", order)
        show(f"  GET {location}: 200 {part(order, 'state', 'numbers')}")
    except Failure as failure:
        raise Failure(f"{failure}\n{processes.tail(LOGS / f'{API}.log', 40)}") from None
    finally:
        processes.stop(API)


def ask(run: Run, url: str, body: dict | None = None) -> tuple[int, dict[str, str], dict]:
    """Status, headers in lower case and JSON of an answer. A body makes it an order."""
    headers = {"Authorization": f"Bearer {run.token}"}
    if body is not None:
        headers |= {"Content-Type": "application/json", "Idempotency-Key": "sam-local"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with without_proxy.open(request, timeout=REQUEST_TIMEOUT) as answer:
            status, found, text = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        status, found, text = error.code, error.headers, error.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{url}: {error}") from None
    try:
        return status, {name.lower(): value for name, value in found.items()}, json.loads(text)
    except ValueError:
        raise Failure(f"{url} answered {status} without JSON: {text[:500]!r}") from None


def message_of(run: Run, order: str) -> dict:
    """The event of one message, as the file has it, for this order."""
    event = read_event("sqs-reserve-numbers.json")
    record = event["Records"][0]
    claims = run.token.split(".")[1]
    tenant = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["tenant"]
    body = {"v": 1, "order_id": order, "product_id": run.product, "tenant_id": tenant}
    record["body"] = json.dumps(body, separators=(",", ":"))
    record["md5OfBody"] = hashlib.md5(record["body"].encode()).hexdigest()
    record["attributes"]["MessageGroupId"] = tenant
    return {"Records": [record]}


def read_event(name: str) -> dict:
    return json.loads((EVENTS / name).read_text())


def require(right: bool, what: str, answer: object) -> None:
    if not right:
        raise Failure(f"{what} answered otherwise than it should: {json.dumps(answer)}")


def part(answer: dict, *names: str) -> str:
    """Some members of an answer, in one line."""
    return json.dumps({name: answer[name] for name in names})
