"""How far a study is, in words."""

from __future__ import annotations

from spectune.cli.terminal import clock
from spectune.counts import count
from spectune.search import Progress

NEARLY_S = 5.0


def left_words(progress: Progress, since_s: float) -> str:
    """Return how far the study is, how long it may take, what it costs and whether speculation will pay.

    A number of launches is told as what it is: what is expected, which may be exceeded, or what the budget allows,
    which may not be needed. Where all that was expected is done and the study goes on, nobody knows how far.
    """
    expected, words = progress.expected, [_made(progress)]
    if progress.done < progress.planned or progress.planned == 0:
        words.append(_left(progress, since_s))
    if expected is not None and expected.gpu_hours and not expected.virtual:
        whole = "so far" if progress.done >= progress.planned else "in all"
        words.append(f"about {expected.gpu_hours:.2g} GPU-hours {whole}")
    if expected is not None and expected.pays is not None:
        words.append(f"speculation pays: {expected.pays:.0%}")
    return ", ".join(filter(None, words))


def _made(progress: Progress) -> str:
    done, planned = progress.done, progress.planned
    most = planned if progress.expected is None else progress.expected.most
    if planned == most:
        at_most = "" if progress.expected is None or done >= planned else "at most "
        return f"{done} of {at_most}{count(planned, 'launch')} done"
    bound = "" if most is None else f" ({most} at most)"
    if done < planned:
        return f"{done} of about {count(planned, 'launch')} done{bound}"
    return f"{count(done, 'launch')} done{bound}"


def _left(progress: Progress, since_s: float) -> str:
    if progress.left_s is None:
        return "" if progress.done else "time left is known after the first"
    left_s = progress.left_s - since_s
    if left_s > NEARLY_S:
        return f"about {clock(left_s)} left"
    if progress.done + 1 >= progress.planned:
        sure = progress.expected is None or progress.expected.most == progress.planned
        return "nearly done" if sure else ""
    return f"about {clock(left_s)} left" if left_s > 0.0 else "this launch takes longer than those before"
