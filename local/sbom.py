"""The bill of materials of what is delivered: every crate that is built into a function or into
`tirada`.

Run by the Python that has the CycloneDX library (`supply.sbom`): what cargo says of the tree comes
in by standard input, the document goes out. Crates that only build or test are not in it.
"""

from __future__ import annotations

import json
import re
import sys
import uuid

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from .settings import FUNCTIONS, ROOT

DELIVERED = (*FUNCTIONS, "operator")
LOCK = ROOT / "Cargo.lock"


def document(metadata: dict) -> str:
    """CycloneDX 1.6, checked against its schema."""
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {node["id"]: needed(node) for node in metadata["resolve"]["nodes"]}
    roots = [one for one in metadata["workspace_members"] if packages[one]["name"] in DELIVERED]
    if len(roots) != len(DELIVERED):
        raise SystemExit("Not every function is a package of this workspace.")
    sums = checksums(LOCK.read_text())
    components = {one: component(packages[one], sums) for one in reached(roots, needs)}

    product = Component(name="tirada", type=ComponentType.APPLICATION, bom_ref="tirada")
    serial = uuid.uuid5(uuid.NAMESPACE_OID, LOCK.read_text())
    bom = Bom(components=components.values(), serial_number=serial)
    bom.metadata.component = product
    bom.register_dependency(product, [components[one] for one in roots])
    for one, made in components.items():
        bom.register_dependency(made, [components[need] for need in needs[one]])
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        raise SystemExit(f"The document is not CycloneDX 1.6: {wrong}")
    return text


def needed(node: dict) -> list[str]:
    """What becomes a part of a package: its normal dependencies."""
    normal = [one for one in node["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]
    return sorted({one["pkg"] for one in normal})


def reached(roots: list[str], needs: dict[str, list[str]]) -> list[str]:
    found, open_ones = set(), list(roots)
    while open_ones:
        one = open_ones.pop()
        if one not in found:
            found.add(one)
            open_ones.extend(needs[one])
    return sorted(found)


def checksums(lock: str) -> dict[tuple[str, str], str]:
    """SHA-256 of each crate by name and version."""
    block = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"'
    return {(name, version): digest for name, version, digest in re.findall(block, lock)}


def component(package: dict, sums: dict[tuple[str, str], str]) -> Component:
    name, version = package["name"], package["version"]
    ours = package["source"] is None
    digest = sums.get((name, version))
    if not ours and not digest:
        raise SystemExit(f"Cargo.lock has no checksum of {name} {version}.")
    # Some still write MIT/Apache-2.0.
    licence = re.sub(r"\s*/\s*", " OR ", package["license"])
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION if name in DELIVERED else ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        purl=None if ours else PackageURL("cargo", None, name, version),
        licenses=[LicenseFactory().make_from_string(licence)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
    )


if __name__ == "__main__":
    sys.stdout.write(document(json.load(sys.stdin)) + "\n")
