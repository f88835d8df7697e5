"""The gateways' own libraries, asked from outside: a list of questions on standard input, a list of
answers on standard output, both JSON.

A signature is a text. A check answers null when the library accepts, else the refusal's name; any
other error ends this program.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from collections.abc import Callable

import stripe
from mercadopago.webhook import validator

REFUSALS = (
    stripe.SignatureVerificationError,
    validator.InvalidWebhookSignatureError,
    UnicodeDecodeError,  # the library wants text where the signature is over bytes
)


def stripe_sign(secret: str, at: int, body: str) -> str:
    payload = bytes.fromhex(body).decode()
    return stripe.WebhookSignature.generate_signature_header(payload, secret, at)


def stripe_check(secret: str, header: str | None, body: str) -> None:
    stripe.Webhook.construct_event(bytes.fromhex(body), header, secret)


def mercado_pago_sign(secret: str, ts: int, data_id: str | None, request_id: str | None) -> str:
    """The library only checks; this is the signature that it computes to compare with."""
    manifest = validator._build_manifest(data_id, request_id, str(ts))
    signature = hmac.new(secret.encode(), manifest.encode(), hashlib.sha256).hexdigest()
    return f"ts={ts},v1={signature}"


def mercado_pago_check(
    secret: str,
    header: str | None,
    data_id: str | None,
    request_id: str | None,
    tolerance_s: int | None,
) -> None:
    validator.WebhookSignatureValidator.validate(
        header, request_id, data_id, secret, tolerance_seconds=tolerance_s
    )


QUESTIONS: dict[str, Callable[..., str | None]] = {
    "stripe-sign": stripe_sign,
    "stripe-check": stripe_check,
    "mercado-pago-sign": mercado_pago_sign,
    "mercado-pago-check": mercado_pago_check,
}


def answer(question: dict) -> str | None:
    ask = QUESTIONS[question.pop("ask")]
    try:
        return ask(**question)
    except REFUSALS as refusal:
        return type(refusal).__name__


if __name__ == "__main__":
    json.dump([answer(question) for question in json.load(sys.stdin)], sys.stdout)
