"""What people paste below their question: source code, minutes of a meeting, a table of figures; short or long."""

from __future__ import annotations

import random

from spectune.bench import mixed_phrases as phrases

_NOUNS = ("order", "sensor", "booking", "ticket", "parcel", "reading", "member", "invoice", "route", "photo")
_FIELDS = ("price", "weight", "created", "priority", "distance", "score", "quantity", "rating")
_FUNCTIONS = (
    """def select_{noun}s({noun}s, lowest={n}):
    \"\"\"Keep every {noun} whose {field} is at least `lowest`, best first.\"\"\"
    chosen = []
    for {noun} in {noun}s:
        if {noun}.{field} >= lowest:
            chosen.append({noun})
    chosen.sort(key=lambda {noun}: {noun}.{field2}, reverse=True)
    return chosen
""",
    """def total_{field}({noun}s):
    total = 0
    for {noun} in {noun}s:
        if {noun} is None:
            continue
        total += {noun}.{field} * {noun}.{field2}
    return round(total, 2)
""",
    """class {Noun}Store:
    def __init__(self, limit={n}):
        self.limit = limit
        self.{noun}s = {{}}

    def add(self, {noun}):
        if len(self.{noun}s) >= self.limit:
            oldest = min(self.{noun}s.values(), key=lambda one: one.{field})
            del self.{noun}s[oldest.id]
        self.{noun}s[{noun}.id] = {noun}

    def find(self, {field}):
        return [one for one in self.{noun}s.values() if one.{field} == {field}]
""",
    """def read_{noun}s(path):
    {noun}s = []
    with open(path) as file:
        for number, line in enumerate(file):
            parts = line.strip().split(";")
            if len(parts) < 3:
                print(f"line {{number}} is too short")
                continue
            {noun}s.append(dict(id=parts[0], {field}=float(parts[1]), {field2}=int(parts[2])))
    return {noun}s
""",
    """def group_by_{field}({noun}s, width={n}):
    groups = {{}}
    for {noun} in {noun}s:
        key = int({noun}["{field}"] // width)
        groups.setdefault(key, []).append({noun}["{field2}"])
    return {{key: sum(values) / len(values) for key, values in sorted(groups.items())}}
""",
)
_CODE_REQUESTS = (
    "Review this module. Name every bug and every risk you see, then write an improved version.",
    "Explain step by step what this code does, and add type annotations and docstrings.",
    "Write unit tests for the following code, edge cases included.",
    "Translate this Python code into idiomatic Go and explain where the two differ.",
    "This code is slow for a million entries. Say why, and rewrite it.",
)
_MINUTES = (
    "{name} reported {matter} and asked for a decision within {period}.",
    "{name} wants to {goal}; {name2} doubts that it can be done within {period}.",
    "On {debate} there was no agreement: {name} spoke for it, {name2} against.",
    "So far {n} hours and {m} euros have gone into {occasion}, a third more than planned.",
    "{name} will prepare {occasion} together with {name2}, if possible {place}.",
    "{name2} reminded everybody of {matter}; {name} apologised and will write to {person}.",
    "A letter from {person} was read out. It concerns {matter} and should be answered by {name}.",
    "{name} proposed to invite {person}, who could talk about {topic}.",
)
_MINUTES_REQUESTS = (
    "Summarise these minutes for somebody who was not there, and list who has to do what until when.",
    "Write a friendly e-mail to all members that reports on this meeting.",
    "Which points below are still open, and which contradict each other? Suggest an agenda for the next meeting.",
    "Turn these notes into a well-structured report with headings and a short conclusion.",
)
_TABLE_REQUESTS = (
    "Find the mean and the standard deviation of each column, step by step, and say which week is most unusual.",
    "Fit a straight line to the takings by least squares and predict the next two weeks. Show your work.",
    "Is there a correlation between the two goods? Compute it from the figures below and interpret the result.",
    "What share of the takings came from each of the goods, week by week and in all? Explain each step.",
)


def code(rng: random.Random) -> str:
    """A question about pasted code: one function to a dozen."""
    parts: list[str] = []
    for _ in range(_amount(rng, 1, 12)):
        noun, (field, field2) = rng.choice(_NOUNS), rng.sample(_FIELDS, 2)
        template = rng.choice(_FUNCTIONS)
        parts.append(template.format(noun=noun, Noun=noun.title(), field=field, field2=field2, n=rng.randrange(2, 500)))
    return f"{rng.choice(_CODE_REQUESTS)}\n\n```python\n{chr(10).join(parts)}```"


def chat(rng: random.Random) -> str:
    """A request about the minutes of a meeting: a few sentences to a few pages."""
    words = phrases.CHAT_WORDS
    sentences: list[str] = []
    for _ in range(_amount(rng, 4, 48)):
        name, name2 = rng.sample(phrases.NAMES, 2)
        chosen = {kind: rng.choice(some) for kind, some in words.items()}
        sentences.append(
            rng.choice(_MINUTES).format(
                **chosen, name=name, name2=name2, n=rng.randrange(3, 90), m=rng.randrange(50, 5000, 10)
            )
        )
    return f"{rng.choice(_MINUTES_REQUESTS)}\n\n{' '.join(sentences)}"


def math(rng: random.Random) -> str:
    """A question about the figures of a small shop: a few weeks to a year."""
    one, other = rng.sample(phrases.GOODS, 2)
    price, second = rng.randrange(2, 40), rng.randrange(2, 40)
    rows = [f"week; {one}; {other}; takings"]
    for week in range(1, _amount(rng, 5, 52) + 1):
        sold, others = rng.randrange(5, 90), rng.randrange(5, 90)
        rows.append(f"{week}; {sold}; {others}; {sold * price + others * second}")
    return (
        f"{rng.choice(_TABLE_REQUESTS)} The {one} cost {price} euros each, the {other} {second}.\n\n" + "\n".join(rows)
    )  # fmt: skip


def _amount(rng: random.Random, least: int, most: int) -> int:
    """Small amounts more often than large ones, as lengths of real prompts are spread."""
    grown: float = (most / least) ** rng.random()
    return round(least * grown)
