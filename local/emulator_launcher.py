"""Runs inside the emulator's process: three settings that it does not offer, then its own main.

1. Its Lambda Runtime API answers in small writes; with Nagle's algorithm each invocation waited
   some 40 ms for an acknowledgement.
2. It serves an HTTP API only by host name (`<id>.execute-api.localhost`), which most resolvers
   do not know. A second port hands everything to Tirada's API, as the real one's own domain would.
3. It drops ReservedConcurrentExecutions on deployment. Here each function has what template.yaml
   says, so that the database sees as many connections as on AWS and not more.

Usage: emulator_launcher.py <API port> <file that names the API's id>
"""

import re
import socketserver
import sys
from pathlib import Path

socketserver.StreamRequestHandler.disable_nagle_algorithm = True

import hypercorn.asyncio  # noqa: E402  the setting above must come first
from ministack import app as ministack  # noqa: E402
from ministack.services import lambda_svc  # noqa: E402

TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"


def front(app, api_port: int, api_id_file: Path):
    """The emulator's ASGI application, with the host name filled in on the API's port."""

    async def serve(scope, receive, send):
        if scope["type"] != "http" or scope["server"][1] != api_port:
            return await app(scope, receive, send)
        if not api_id_file.exists():
            headers = [(b"content-type", b"text/plain"), (b"retry-after", b"5")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            return await send({"type": "http.response.body", "body": b"not deployed yet\n"})
        host = f"{api_id_file.read_text().strip()}.execute-api.localhost"
        headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
        scope = {**scope, "headers": [(b"host", host.encode()), *headers]}
        return await app(scope, receive, send)

    return serve


def reserved_concurrency() -> dict[str, int]:
    """Function name without the stack's prefix, and its ReservedConcurrentExecutions."""
    pairs = re.findall(
        r"FunctionName: !Sub \$\{AWS::StackName\}-([\w-]+)\n(?:(?!FunctionName).*\n)*?"
        r" +ReservedConcurrentExecutions: (\d+)",
        TEMPLATE.read_text(),
    )
    # The longest name first: `reconcile-orders` ends like `orders`.
    return {name: int(number) for name, number in sorted(pairs, key=lambda pair: -len(pair[0]))}


def enforce(reserved: dict[str, int]) -> None:
    def of_function(func, config):
        name = config.get("FunctionName", "")
        return next((n for suffix, n in reserved.items() if name.endswith(f"-{suffix}")), None)

    lambda_svc._reserved_concurrency = of_function


def main() -> None:
    enforce(reserved_concurrency())
    api_port, api_id_file = int(sys.argv[1]), Path(sys.argv[2])
    plain_serve = hypercorn.asyncio.serve

    async def serve(app, config, **options):
        config.bind = [*config.bind, f"127.0.0.1:{api_port}"]
        await plain_serve(front(app, api_port, api_id_file), config, **options)

    hypercorn.asyncio.serve = serve
    sys.argv = sys.argv[:1]
    ministack.main()


if __name__ == "__main__":
    main()
