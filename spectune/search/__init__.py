"""The study: what is launched when, what is kept of it, and what it says in the end."""

from spectune.search.answer.picks import picked
from spectune.search.answer.summary import summarise
from spectune.search.answer.summary_fields import Summary
from spectune.search.beginning import open_study
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.search.launch.traffic import open_prompts, summary
from spectune.search.planning.plan import Stop
from spectune.search.planning.prospect import Progress, Prospect
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.warm_start import WarmStart, lend, refuse_lender
from spectune.search.shared.worker import refuse_shared
from spectune.search.storage.book import Book
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.migration import refuse_another
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.storage.studies import all_studies, running_studies, shared_study
from spectune.search.study import Ended, run_study
from spectune.search.watcher import Watcher

__all__ = [
    "Book",
    "Ended",
    "Evidence",
    "Progress",
    "Proposer",
    "Prospect",
    "Role",
    "Status",
    "Step",
    "Stop",
    "StudyFolder",
    "Summary",
    "TrialRecord",
    "WarmStart",
    "Watcher",
    "all_studies",
    "lend",
    "open_prompts",
    "open_study",
    "picked",
    "refuse_another",
    "refuse_lender",
    "refuse_shared",
    "run_study",
    "running_studies",
    "shared_study",
    "summarise",
    "summary",
    "weigh",
]
