"""The study: what is launched when, what is kept of it, and what it says in the end."""

from spectune.search.beginning import open_study
from spectune.search.book import Book
from spectune.search.folder import StudyFolder
from spectune.search.migration import refuse_another
from spectune.search.outcome import Evidence, weigh
from spectune.search.picks import picked
from spectune.search.plan import Stop
from spectune.search.proposals import Proposer
from spectune.search.prospect import Progress, Prospect
from spectune.search.records import Status, TrialRecord
from spectune.search.samplers import check_sampler
from spectune.search.shared.worker import refuse_shared
from spectune.search.steps import Role, Step
from spectune.search.studies import all_studies, running_studies, shared_study
from spectune.search.study import Ended, run_study
from spectune.search.summary import Summary, summarise
from spectune.search.traffic import open_prompts, summary
from spectune.search.warm_start import WarmStart, lend, refuse_lender
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
    "check_sampler",
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
