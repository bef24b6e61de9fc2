"""The search space: the YAML file, what it means, and `Candidate`, one assignment of it."""

from spectune.space.arguments import ArgumentNames
from spectune.space.candidate import Candidate
from spectune.space.conditions import Condition, Test, parse_condition
from spectune.space.document import Document, parse_document, read_document
from spectune.space.durations import format_duration, parse_duration
from spectune.space.engine_section import EngineSection
from spectune.space.goals import Budget, Objective
from spectune.space.levels import SLOWEST_BORNE, Level
from spectune.space.loading import SpaceProblems, in_order, load_space, parse_space
from spectune.space.locating import find_space_file, shipped_folder, shipped_spaces
from spectune.space.metrics import Direction
from spectune.space.names import (
    ALGORITHM,
    DRAFTER,
    EAGLE_TOPK,
    NO_SPECULATION,
    NUM_DRAFT_TOKENS,
    NUM_STEPS,
    is_speculative,
)
from spectune.space.parameters import IntegerRange, Parameter
from spectune.space.space import Branch, SearchSpace
from spectune.space.values import UNSET, Value, canonical, canonical_json, text_of

__all__ = [
    "ALGORITHM",
    "DRAFTER",
    "EAGLE_TOPK",
    "NO_SPECULATION",
    "NUM_DRAFT_TOKENS",
    "NUM_STEPS",
    "SLOWEST_BORNE",
    "UNSET",
    "ArgumentNames",
    "Branch",
    "Budget",
    "Candidate",
    "Condition",
    "Direction",
    "Document",
    "EngineSection",
    "IntegerRange",
    "Level",
    "Objective",
    "Parameter",
    "SearchSpace",
    "SpaceProblems",
    "Test",
    "Value",
    "canonical",
    "canonical_json",
    "find_space_file",
    "format_duration",
    "in_order",
    "is_speculative",
    "load_space",
    "parse_condition",
    "parse_document",
    "parse_duration",
    "parse_space",
    "read_document",
    "shipped_folder",
    "shipped_spaces",
    "text_of",
]
