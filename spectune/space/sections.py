"""What every section's model has in common."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    ValidationError,
)

from spectune.space.values import Value, canonical


class Section(BaseModel):
    """A mapping of the file: frozen, and every key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False, strict=False)


_Section = TypeVar("_Section", bound=Section)


def sound(model: type[_Section], raw: object) -> tuple[_Section | None, frozenset[str]]:
    """Read a section without its wrong entries, so that they hide no other's problems.

    Args:
        model: What the section is to be.
        raw: The section as it stands in the file.

    Returns:
        The section, None where it cannot be without them; and the names of the entries that were left out.
    """
    try:
        return model.model_validate(raw), frozenset()
    except ValidationError as error:
        wrong = frozenset(str(details["loc"][0]) for details in error.errors() if details["loc"])
        if not isinstance(raw, dict) or not wrong & raw.keys():
            return None, wrong
        rest, more = sound(model, {key: value for key, value in raw.items() if key not in wrong})
        return rest, wrong | more


def _listed(raw: object) -> object:
    """Turns a YAML list into a tuple, so that nothing but a list is taken for one."""
    if isinstance(raw, list | tuple):
        return tuple(raw)
    raise ValueError(f"must be a list, but got {raw!r}")


def _plain(value: Value) -> Any:
    """Turns a list back into one."""
    return list(value) if isinstance(value, tuple) else value


MOST = 1e9
"""Of any amount: sums and ratios of what is larger by far leave the range of a float."""


def readable(newest: int) -> AfterValidator:
    """Return what refuses the version of a file that is written for a later spectune."""

    def check(version: int) -> int:
        if version > newest:
            raise ValueError(f"{version} is newer than what this spectune reads ({newest}); update spectune")
        return version

    return AfterValidator(check)


Listed = BeforeValidator(_listed)

Text = Annotated[str, Strict(), Field(min_length=1)]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=0)]
Positive = Annotated[int, Strict(), Field(ge=1)]
Amount = Annotated[float, Strict(), Field(gt=0, le=MOST)]
ArgumentValue = Annotated[Value, PlainValidator(canonical), PlainSerializer(_plain)]
