"""The search space: the YAML file, what it means, and `Candidate`, one assignment of it."""

from spectune.space.arguments import Argument, ArgumentNames, KnownArguments
from spectune.space.candidate import Candidate
from spectune.space.conditions import Condition, Test, parse_condition
from spectune.space.document import Document, parse_document, read_document
from spectune.space.durations import format_duration, parse_duration
from spectune.space.engine_section import RUNTIMES, EngineSection
from spectune.space.goals import Budget, Constraint, Objective, Targets
from spectune.space.labels import drafter_name
from spectune.space.levels import SLOWEST_BORNE, Level
from spectune.space.loading import SpaceProblems, in_order, load_space, parse_space
from spectune.space.locating import find_space_file, shipped_folder, shipped_spaces
from spectune.space.metrics import METRICS, Direction, Metric
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
from spectune.space.schema import SCHEMA, SpaceFile
from spectune.space.space import Branch, SearchSpace
from spectune.space.values import UNSET, Scalar, Value, canonical, canonical_json, text_of
from spectune.space.workload import BUILTIN_PROMPTS, PromptSource, SharedPrefix, Workload

__all__ = [
    "ALGORITHM",
    "BUILTIN_PROMPTS",
    "DRAFTER",
    "EAGLE_TOPK",
    "METRICS",
    "NO_SPECULATION",
    "NUM_DRAFT_TOKENS",
    "NUM_STEPS",
    "RUNTIMES",
    "SCHEMA",
    "SLOWEST_BORNE",
    "UNSET",
    "Argument",
    "ArgumentNames",
    "Branch",
    "Budget",
    "Candidate",
    "Condition",
    "Constraint",
    "Direction",
    "Document",
    "EngineSection",
    "IntegerRange",
    "KnownArguments",
    "Level",
    "Metric",
    "Objective",
    "Parameter",
    "PromptSource",
    "Scalar",
    "SearchSpace",
    "SharedPrefix",
    "SpaceFile",
    "SpaceProblems",
    "Targets",
    "Test",
    "Value",
    "Workload",
    "canonical",
    "canonical_json",
    "drafter_name",
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
