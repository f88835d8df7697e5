"""Checks the values of the template's parameters as CloudFormation does, its rules included."""

from __future__ import annotations

import re
from collections.abc import Iterator

BYTES_MAX = 4096  # CloudFormation's limit of one value
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
# The operator writes these into samconfig.toml before the first deployment (infra/README.md). Until
# then samconfig.toml has none: a placeholder would pass the rules that ask for them.
TO_COME = {"DatabaseCaPem": "to come", "TokenKeys": "to come"}


def unfit(declared: dict[str, dict], given: dict[str, str]) -> Iterator[str]:
    """Compares the values that the SAM CLI gives with the parameters of template.yaml."""
    for name, value in given.items():
        if name not in declared:
            # The CLI drops it silently, and the default stays.
            yield f"{name} = {value!r}: template.yaml has no such parameter"
            continue
        shown = "(not shown)" if declared[name].get("NoEcho") else repr(value)
        for allowed in refused(declared[name], value):
            yield f"{name} = {shown}, as the SAM CLI gives it; allowed: {allowed}"
    for name, parameter in declared.items():
        if name in given:
            continue
        if "Default" not in parameter:
            yield f"{name} has no value and no default"
            continue
        value = plain(parameter["Default"])
        for allowed in refused(parameter, value):
            yield f"{name} = {value!r}, its default; allowed: {allowed}"


def refused(parameter: dict, value: str) -> Iterator[str]:
    """The bounds that a value breaks."""
    kind = parameter["Type"]
    many = kind == "CommaDelimitedList" or kind.startswith("List<")
    items = [item.strip() for item in value.split(",") if value] if many else [value]
    number = kind in ("Number", "List<Number>")
    choice = [plain(one) for one in parameter.get("AllowedValues", [])]
    pattern = parameter.get("AllowedPattern")
    for item in items:
        if choice and item not in choice:
            yield ", ".join(choice)
        if pattern and not re.fullmatch(pattern, item):
            yield f"what matches {pattern}"
        if not number:
            continue
        if not NUMBER.fullmatch(item):
            yield "a number"
        elif "MinValue" in parameter and float(item) < float(parameter["MinValue"]):
            yield f"{parameter['MinValue']} or more"
        elif "MaxValue" in parameter and float(item) > float(parameter["MaxValue"]):
            yield f"{parameter['MaxValue']} or less"
    if kind == "String" and len(value) < int(parameter.get("MinLength", 0)):
        yield f"{parameter['MinLength']} characters or more"
    if kind == "String" and len(value) > int(parameter.get("MaxLength", len(value))):
        yield f"{parameter['MaxLength']} characters or less"
    if len(value.encode()) > BYTES_MAX:
        yield f"{BYTES_MAX} bytes or less"


def broken_rules(template: dict, given: dict[str, str]) -> Iterator[str]:
    declared = template["Parameters"].items()
    defaults = {name: plain(parameter.get("Default", "")) for name, parameter in declared}
    values = defaults | TO_COME | given
    for name, rule in template.get("Rules", {}).items():
        if "RuleCondition" in rule and not worth(rule["RuleCondition"], values):
            continue
        for assertion in rule["Assertions"]:
            if not worth(assertion["Assert"], values):
                yield f"the rule {name} is broken: {assertion['AssertDescription']}"


def worth(expression: object, values: dict[str, str]) -> object:
    """The value of an expression of a rule."""
    if isinstance(expression, list):
        return [worth(part, values) for part in expression]
    if not isinstance(expression, dict):
        return plain(expression)
    [(function, argument)] = expression.items()
    if function == "Ref":
        return values[argument]
    parts = worth(argument, values)
    if function == "Fn::Equals":
        return parts[0] == parts[1]
    if function == "Fn::Not":
        return not parts[0]
    if function == "Fn::And":
        return all(parts)
    if function == "Fn::Or":
        return any(parts)
    if function == "Fn::Contains":
        return parts[1] in parts[0]
    raise SystemExit(f"A rule of template.yaml uses {function}, which local/ does not know.")


def plain(value: object) -> str:
    """The string that CloudFormation makes of a value of the template."""
    return str(value).lower() if isinstance(value, bool) else str(value)
