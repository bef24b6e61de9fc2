"""The launch as a service of docker compose."""

from __future__ import annotations

from typing import Any

import yaml

from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.errors import SpectuneError
from spectune.export.header import Origin, comment, header
from spectune.export.launch import Launch
from spectune.search.storage.records import TrialRecord

SERVICE = "sglang"
IMAGE = "lmsysorg/sglang"
EVERYWHERE = "0.0.0.0"  # noqa: S104 (inside the container; the published port says who may come)
HUB_CACHE = "${HF_HOME:-${HOME}/.cache/huggingface}:/root/.cache/huggingface"


def compose_file(record: TrialRecord, launch: Launch, origin: Origin, *, file_name: str) -> str:
    """Return a compose file whose only service is the launch, in SGLang's own container image.

    Values are doubled in their `$`, which compose would expand. Variables that must be absent are taken away inside
    the container, since an image may set some. Secrets are passed on by name from the caller's shell.

    Raises:
        SpectuneError: The launch was one of the CPU reference runtime, of which there is no image.
    """
    if origin.on_cpu_reference:
        raise SpectuneError(
            "the CPU reference runtime is spectune's own and has no container image: --format compose is for launches "
            "of an SGLang on GPUs, or simulated"
        )
    tag = origin.version and f"v{origin.version}"
    service: dict[str, Any] = {
        "image": f"${{SGLANG_IMAGE:-{IMAGE}:{tag or 'latest'}}}",
        "command": [_literal(word) for word in _command(launch)],
        "ports": [f"${{HOST:-{LOOPBACK}}}:${{PORT:-{DEFAULT_PORT}}}:{DEFAULT_PORT}"],
        "ipc": "host",
        "volumes": [*_folders(launch), HUB_CACHE],
    }
    environment: dict[str, str | None] = {name: _literal(value) for name, value in launch.env}
    environment |= dict.fromkeys(launch.withheld_env)  # null: as it is in the caller's shell
    if environment:
        service["environment"] = environment
    if origin.gpus:
        device = {"driver": "nvidia", "count": origin.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    notes = [
        "SGLANG_IMAGE chooses another image, HOST and PORT the address; the image was not run when this was written",
        f"start: docker compose -f {file_name} up",
    ]
    lines = [*header(record, launch, origin), *map(comment, notes)]
    body = yaml.safe_dump({"services": {SERVICE: service}}, sort_keys=False, width=1000)
    return "\n".join([*lines, body])


def _command(launch: Launch) -> list[str]:
    absent = [word for name in launch.unset for word in ("-u", name)]
    words = [word for option in launch.options for word in option.words]
    address = ["--host", EVERYWHERE, "--port", str(DEFAULT_PORT)]
    return [*(["env", *absent] if absent else []), "python3", *launch.program[1:], *words, *address]


def _folders(launch: Launch) -> list[dict[str, Any]]:
    """Return a mount for everything the launch names by an absolute path."""
    paths = {value for option in launch.options for value in option.values if value.startswith("/") and len(value) > 1}
    return [
        {"type": "bind", "source": _literal(path), "target": _literal(path), "read_only": True}
        for path in sorted(paths)
    ]


def _literal(text: str) -> str:
    return text.replace("$", "$$")
