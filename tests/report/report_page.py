"""Reading a report as a browser would, without one."""

from __future__ import annotations

import json
from html.parser import HTMLParser

LOADING = {"src", "href", "srcset", "action", "data", "poster", "background"}


class Page(HTMLParser):
    """Collects what the tests ask about."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag in {"script", "style", "title", "pre"}:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            self.scripts.append(data)
        elif not self._inside or self._inside[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def loads(self) -> list[str]:
        return [value for _, name, value in self.attributes if name in LOADING]

    @property
    def figures(self) -> dict[str, dict]:
        return json.loads(self.scripts[0])
