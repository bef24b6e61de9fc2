"""Templates and words of `builtin:mixed`; a slot `thing2` takes another word of the list `thing`."""

from __future__ import annotations

CODE_TASKS = (
    "Write a {language} function that {action}. Handle {edge}, explain the complexity and add a short test.",
    (
        "Implement {structure} in {language}. It should support {operation} and {operation2}, and be {quality}. "
        "Show how it is used."
    ),
    (
        "I have a {language} program that {action}, but it fails on {edge}. Show a typical implementation with "
        "this bug, explain the cause and give the corrected code."
    ),
    (
        "Write a command-line tool in {language} that reads {source}, {action} and writes the result to {source2}."
        " Include error handling for {edge}."
    ),
    (
        "Refactor this idea into clean {language}: a class that keeps {structure}, offers {operation}, and is "
        "{quality}. Write the complete code with comments."
    ),
    (
        "Write unit tests in {language} for a function that {action}. Cover {edge} and {edge2}, then write the "
        "function itself."
    ),
    (
        "Compare two ways to build {structure} in {language}: one that favours {operation}, one that is {quality}."
        " Give code for both."
    ),
    (
        "Translate the following into working {language} code, with types where the language has them: read "
        "{source}, keep {structure}, support {operation}, and stop cleanly on {edge}."
    ),
    (
        "Write a SQL schema and the {language} code around it for {domain}. It must support {operation} and be "
        "{quality}."
    ),
    (
        "Design a small REST interface in {language} for {domain}: routes, data model, validation of {edge}, and "
        "one handler in full."
    ),
)

CODE_WORDS: dict[str, tuple[str, ...]] = {
    "language": (
        "Python", "Go", "Rust", "TypeScript", "Java", "C++", "Kotlin", "C#", "Ruby", "Swift",
    ),
    "action": (
        "merges overlapping intervals", "finds the longest palindromic substring", "parses a duration such as 1h30m",
        "groups log lines by request and sums their times", "computes a moving median", "validates nested brackets",
        "deduplicates records by a fuzzy name", "resolves dependencies in topological order",
        "converts Roman numerals both ways", "finds the shortest path in a weighted grid",
        "rotates a matrix in place", "splits a bill among friends with the fewest payments",
        "formats a table with aligned columns", "counts word frequencies in a large file",
        "detects cycles in a linked list", "computes the diff of two texts", "schedules meetings into rooms",
        "evaluates an arithmetic expression", "compresses a string with run lengths",
        "generates all permutations without repeats", "finds anagrams in a dictionary",
        "rounds prices to the nearest five cents",
    ),
    "edge": (
        "empty input", "very large numbers", "duplicate keys", "Unicode text", "negative values", "missing fields",
        "a file that is cut off", "time zones and leap days", "input that arrives out of order", "a single element",
        "concurrent callers", "malformed lines",
    ),
    "structure": (
        "an LRU cache", "a priority queue", "a trie", "a ring buffer", "a bloom filter", "an interval tree",
        "a sparse matrix", "a rate limiter", "a connection pool", "an event bus", "a disjoint set", "a skip list",
        "an undo history", "a circular doubly linked list", "a thread-safe counter map", "a B-tree",
        "a directed graph", "a job queue",
    ),
    "operation": (
        "insertion and removal", "lookup by prefix", "iteration in sorted order", "bulk loading",
        "expiry after a timeout", "range queries", "saving to disk and loading again", "merging two of them",
        "listening for changes", "snapshots", "resizing while in use", "retrying what failed",
    ),
    "quality": (
        "safe for several threads", "free of external dependencies", "easy to test", "generic over its element type",
        "memory-efficient for a million entries", "immutable from the outside", "lazy where possible",
        "fast for small inputs",
    ),
    "source": (
        "a CSV file", "standard input", "a JSON document", "a folder of log files", "an HTTP endpoint",
        "a SQLite table", "a YAML configuration", "a message queue", "a gzip archive", "environment variables",
    ),
    "domain": (
        "a library that lends books", "a bike-sharing service", "a hospital's appointment desk",
        "a recipe collection", "an inventory of spare parts", "a chess club's rating list",
        "a parcel tracking service", "a cinema with reserved seats", "a shared grocery list",
        "a weather station network", "a photo archive", "a small bank's ledger",
    ),
}  # fmt: skip

CHAT_TASKS = (
    "Explain {topic} to {person}. Use {device} and end with a question that invites them to think further.",
    "Write {piece} about {person} who {event} {place}. The tone should be {tone}.",
    "I am {person} and want to {goal} within {period}. Make me a realistic plan, and warn me of the usual mistakes.",
    (
        "What are the arguments for and against {debate}, as {person} might see them? Present both sides in a way that "
        "is {tone}, then say what evidence would settle it."
    ),
    "Draft an e-mail from {person} to {person2} about {matter}. Keep it {tone}, and offer two ways forward.",
    (
        "Compare {topic} and {topic2} for {person}. Where do people confuse them, and why does the difference matter "
        "in practice?"
    ),
    (
        "Plan {occasion} for {person} {place}. Give a schedule, a shopping list and one idea for bad weather. "
        "Everybody should go home feeling that it was {tone}."
    ),
    "Write a dialogue between {person} and {person2}, who meet {place} and disagree about {debate}. Make it {tone}.",
    (
        "Give {person} a tour of the history of {topic}: the main turning points, the people behind them and what came "
        "of it. Start with {device}."
    ),
    (
        "{person} told me {place} that {debate} is obviously right. Interview me about it: ask six questions and "
        "explain why each one matters."
    ),
    (
        "Summarise what is known about {topic} in plain language for {person}. Begin with {device}, and list three "
        "open questions."
    ),
    "Write a speech for {person} to give at {occasion}. It should be {tone} and mention {matter}.",
)

CHAT_WORDS: dict[str, tuple[str, ...]] = {
    "topic": (
        "photosynthesis", "compound interest", "how vaccines work", "plate tectonics", "the water cycle",
        "black holes", "supply and demand", "how elections are counted", "natural selection", "the printing press",
        "how sleep affects memory", "the theory of relativity", "how bridges carry loads", "the Silk Road",
        "fermentation", "encryption", "ocean currents", "the immune system", "inflation",
        "how glaciers shape valleys", "musical harmony", "the Roman aqueducts",
    ),
    "person": (
        "a curious ten-year-old", "a retired teacher", "a new team leader", "a night-shift nurse",
        "a first-year student", "a lighthouse keeper", "a small-town mayor", "a travelling violinist",
        "a tired parent of twins", "a beekeeper", "a museum guide", "an apprentice baker", "a marathon runner",
        "a landlord", "a librarian", "a train conductor", "an amateur astronomer", "a shop owner",
        "a volunteer firefighter", "a hobby gardener",
    ),
    "device": (
        "an everyday comparison", "a short story", "a kitchen experiment", "three simple steps",
        "a drawing described in words", "an example from sport",
    ),
    "piece": (
        "a short story", "a poem in four stanzas", "a diary entry", "a newspaper article", "a fable",
        "the opening of a novel",
    ),
    "event": (
        "finds a letter nobody was meant to read", "misses the last train", "inherits a broken clock",
        "hears a strange radio signal", "is asked to judge a contest", "loses a bet with a neighbour",
        "discovers a door that was not there yesterday", "has to give a speech without notes",
        "returns after twenty years", "adopts a stubborn dog",
    ),
    "place": (
        "in a fishing village", "at a mountain hut", "in a crowded market", "on a night ferry",
        "in an old observatory", "at the edge of a desert", "in a city under snow", "in a community garden",
        "at a railway museum", "on a small island", "in a suburban kitchen", "at a harvest festival",
    ),
    "tone": (
        "warm and personal", "dry and funny", "formal but friendly", "hopeful", "calm and precise",
        "a little mysterious",
    ),
    "goal": (
        "learn to play the cello", "run a half marathon", "write a family history", "start a vegetable garden",
        "learn Portuguese", "get out of debt", "build a wooden boat", "prepare for a job interview", "sleep better",
        "read more books", "learn to cook for twelve people", "organise a neighbourhood library",
    ),
    "period": (
        "six weeks", "three months", "half a year", "a year", "the summer holidays",
    ),
    "debate": (
        "a four-day working week", "free public transport", "homework in primary school", "keeping animals in zoos",
        "working from home", "a sugar tax", "banning cars from city centres", "mandatory voting", "learning by heart",
        "space travel paid by the state", "uniforms at school", "tipping in restaurants",
    ),
    "matter": (
        "a delayed delivery", "a noisy renovation", "a change of the meeting day", "a lost set of keys",
        "a proposal for a joint project", "an invoice that was paid twice", "a missed deadline", "a broken promise",
        "a surprising success", "the end of a long lease",
    ),
    "occasion": (
        "a golden wedding", "a farewell party", "a street festival", "a school anniversary", "a weekend reunion",
        "a retirement dinner", "a charity concert", "a birthday picnic",
    ),
}  # fmt: skip

MATH_REQUESTS = (
    "Show every step.", "Explain your reasoning before you give the result.",
    "Solve it step by step and check the answer.", "Work it out slowly, then state the answer in one sentence.",
    "Solve it in two different ways.", "Explain it so that a pupil of fifteen can follow.",
)  # fmt: skip
NAMES = (
    "Amara", "Bruno", "Chen", "Dalia", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kavya", "Luis", "Mina",
    "Noor", "Olga", "Pavel", "Rosa", "Samir", "Tessa", "Yusuf",
)  # fmt: skip
TOWNS = (
    "Aldbury", "Brackwell", "Corvo", "Dunmore", "Eastlake", "Fairhaven", "Glenrock", "Harwick", "Ironbridge",
    "Larkspur",
)  # fmt: skip
VEHICLES = (
    "lorry", "bus", "train", "motorcycle", "delivery van", "coach", "sports car", "tractor",
)  # fmt: skip
GOODS = (
    "notebooks", "lamps", "tickets", "paint brushes", "chairs", "bags of flour", "plants", "light bulbs", "mugs",
    "batteries", "jars of honey", "tennis balls",
)  # fmt: skip
COLOURS = (
    "red", "blue", "green", "white", "black", "yellow", "silver",
)  # fmt: skip
TOKENS = (
    "marbles", "balls", "beads", "buttons", "counters", "stones",
)  # fmt: skip
JOBS = (
    "paint a fence", "dig a trench", "type a manuscript", "tile a bathroom", "mow a meadow", "sort an archive",
    "build a wall",
)  # fmt: skip
VESSELS = (
    "grain silo", "water tank", "candle mould", "rocket model", "perfume bottle", "concrete pillar",
)  # fmt: skip
