"""Words of a pasted shell command, read the way a POSIX shell splits them; nothing is ever executed or looked up.

What only a running shell knows (`$VAR` without an assignment in the text, `$(…)`, backquotes) stays in the word as it
was written and is named in `Word.unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spectune.engines.sglang.launch_line.shell_expansion import closing, expansion_at, unclosed
from spectune.errors import SpectuneError
from spectune.printable import printable

_ARRAY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_BLANK = " \t\r"
_LONGEST, _MOST_WORDS = 2**20, 4096  # of what variables stand for
_REDIRECTION = re.compile(r"&?(?:>>|>\||>&|<<<|<<-?|<>|<&|>|<)")
_PASSED_ON = re.compile(r"(\"?)\$@\1(?=[\s;&|)]|$)")  # a script's own arguments, of which a text has none
_BROKEN_CONTINUATION = re.compile(r"\\[ \t]+\r?(?=\n)")


@dataclass(frozen=True)
class Word:
    """One word of a command line.

    Attributes:
        text: The word without its quotes.
        unknown: What in it only a running shell knows, such as `$TP`.
    """

    text: str
    unknown: tuple[str, ...] = ()


@dataclass
class ShellText:
    """Commands of a text, one after the other; an assignment in one is seen by those after it.

    Attributes:
        text: The text as pasted.
        variables: Shell variables known so far; the reader of `commands` adds what each command assigns.
        arrays: Shell arrays known so far.
        within_array: Whether the text stood between the brackets of one, which hold no others.
        assumed: Expansions that are read as their defaults.
        broken_continuations: Lines whose backslash is followed by blanks, which a shell takes for the end.
    """

    text: str
    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[Word]] = field(default_factory=dict)
    within_array: bool = False
    broken_continuations: int = 0
    assumed: list[str] = field(default_factory=list)
    _at: int = 0
    _letters: list[str] = field(default_factory=list)
    _unknown: list[str] = field(default_factory=list)
    _started: bool = False
    _quoted: bool = False
    _skip: bool = False
    _words: list[Word] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text, self.broken_continuations = _BROKEN_CONTINUATION.subn("\\\\", self.text)

    def commands(self) -> Iterator[list[Word]]:
        """Yield the words of each command that has any, redirections and comments left out.

        Raises:
            SpectuneError: For a quote or a bracket that is never closed.
        """
        while self._at < len(self.text):
            if self._step():
                yield from self._command()
        self._end_word()
        yield from self._command()

    def _command(self) -> Iterator[list[Word]]:
        words, self._words, self._skip = self._words, [], False
        if words:
            yield words

    def _step(self) -> bool:
        """Read one character or construct; return whether a command ended there."""
        letter = self.text[self._at]
        redirection = _REDIRECTION.match(self.text, self._at)
        if letter in _BLANK:
            self._end_word()
        elif redirection and not (redirection[0] == "<" and self.text.startswith("<(", self._at)):
            self._redirect(redirection[0])
            return False
        elif letter == "(" and (array := self._assigned_array()) is not None:
            self._array(array[1], more=bool(array[2]))
            return False
        elif letter in "\n;&|()":
            self._end_word()
            self._at += 1
            return True
        elif letter == "#" and not self._started:
            end = self.text.find("\n", self._at)
            self._at = len(self.text) if end < 0 else end
            return False
        elif letter in "'\"\\$`":
            self._special(letter)
            return False
        else:
            self._take(letter)
        self._at += 1
        return False

    def _special(self, letter: str) -> None:
        if not self._started and (passed_on := _PASSED_ON.match(self.text, self._at)):
            self._at = passed_on.end()
        elif letter == "\\":
            self._escape()
        elif letter == "'":
            self._quoted = True
            self._take(self._until("'", self._at + 1))
        elif letter == '"':
            self._double_quotes()
        else:
            self._expansion(quoted=False)

    def _escape(self) -> None:
        rest = self.text[self._at + 1 : self._at + 3]
        if rest.startswith("\n") or rest == "\r\n":
            self._at += 1 + (2 if rest == "\r\n" else 1)
            return
        if not rest:  # the end of what was pasted
            self._at += 1
            return
        self._quoted = True
        self._take(rest[:1])
        self._at += 2

    def _double_quotes(self) -> None:
        opened = self._at
        self._quoted = True
        self._take("")
        self._at += 1
        while True:
            if self._at >= len(self.text):
                raise unclosed('"', self.text, opened)
            letter = self.text[self._at]
            if letter == '"':
                self._at += 1
                return
            if letter == "\\" and self.text[self._at + 1 : self._at + 2] in {*'$`"\\\n'}:
                self._take(self.text[self._at + 1].replace("\n", ""))
                self._at += 2
            elif letter in "$`":
                self._expansion(quoted=True)
            else:
                self._take(letter)
                self._at += 1

    def _expansion(self, *, quoted: bool) -> None:
        expansion = expansion_at(self.text, self._at, quoted=quoted)
        self._at = expansion.end
        value = expansion.literal if expansion.name is None else self.variables.get(expansion.name)
        if expansion.default is not None and not value:
            value = expansion.default
            self.assumed.append(expansion.written)
        if value is not None and len(value) > _LONGEST:
            raise SpectuneError(f"{printable(expansion.written, 60)} grows beyond {_LONGEST} characters")
        if expansion.quote_follows:
            return
        if expansion.array in self.arrays:
            self._spread(self.arrays[str(expansion.array)])
            return
        if value is None:
            self._unknown.append(expansion.written)
            self._take(expansion.written)
        elif quoted:
            self._take(value)
        else:
            self._split(value)

    def _assigned_array(self) -> re.Match[str] | None:
        """Return the `NAME=` or `NAME+=` before a bracket."""
        plain = not (self.within_array or self._quoted)
        return _ARRAY.fullmatch("".join(self._letters)) if plain else None

    def _array(self, name: str, *, more: bool) -> None:
        """Read `NAME=(…)`, whose words `${NAME[@]}` stands for; no command of its own."""
        end = closing(self.text, self._at, "(", ")")
        inner = ShellText(self.text[self._at + 1 : end - 1], self.variables, self.arrays, within_array=True)
        words = [word for command in inner.commands() for word in command]
        self.arrays[name] = [*self.arrays.get(name, ()), *words] if more else words
        if len(self.arrays[name]) > _MOST_WORDS:
            raise SpectuneError(f"the array {printable(name, 60)} grows beyond {_MOST_WORDS} words")
        self._letters, self._started, self._at = [], False, end

    def _spread(self, words: Sequence[Word]) -> None:
        for place, word in enumerate(words):
            if place:
                self._end_word()
            self._take(word.text)
            self._unknown += word.unknown

    def _split(self, value: str) -> None:
        """Add an unquoted expansion, which a shell splits at blanks."""
        pieces = re.split(r"\s+", value)
        for place, piece in enumerate(pieces):
            if place:
                self._end_word()
            if piece:
                self._take(piece)

    def _redirect(self, operator: str) -> None:
        if self._started and not self._quoted and "".join(self._letters).isdigit():
            self._letters, self._started = [], False  # the 2 of 2>&1
        self._end_word()
        self._at += len(operator)
        self._skip = True

    def _take(self, letters: str) -> None:
        self._started = True
        self._letters.append(letters)

    def _end_word(self) -> None:
        if self._started and self._skip:
            self._skip = False
        elif self._started:
            self._words.append(Word("".join(self._letters), tuple(self._unknown)))
        self._letters, self._unknown, self._started, self._quoted = [], [], False, False

    def _until(self, mark: str, start: int) -> str:
        end = self.text.find(mark, start)
        if end < 0:
            raise unclosed(mark, self.text, start - 1)
        self._at = end + 1
        return self.text[start:end]
