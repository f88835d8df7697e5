"""What Schemathesis does before each request (contract.py); loaded by its own Python."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import schemathesis

# API Gateway decodes a path before the functions see it; these would then end it, or change its
# parts, and the request would be another operation's. No client of ours makes such names.
CUTTING = re.compile(r"[?#\\\x00-\x1f]")


@schemathesis.hook
def before_call(context, case, kwargs) -> None:
    for name, value in (case.path_parameters or {}).items():
        if isinstance(value, str) and CUTTING.search(unquote(value)):
            case.path_parameters[name] = quote(CUTTING.sub("-", unquote(value)), safe="")
