"""Why a server that already runs is slow. Pure: what is known of it goes in, causes and next actions come out."""

from spectune.analysis.diagnosis.case import STUDY, Action, Cause, Cost
from spectune.analysis.diagnosis.diagnose import Diagnosis, diagnose
from spectune.analysis.diagnosis.graphs import BACKENDS
from spectune.analysis.diagnosis.graphs import NAMES as GRAPH_CAUSES
from spectune.analysis.diagnosis.running import GRAPH_FLAG, Load, Running, loads_of

__all__ = [
    "BACKENDS", "GRAPH_CAUSES", "GRAPH_FLAG", "STUDY", "Action", "Cause", "Cost", "Diagnosis", "Load", "Running",
    "diagnose", "loads_of",
]  # fmt: skip
