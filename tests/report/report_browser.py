"""A report opened in Chromium (Debian package chromium), with everything it says and asks for written down."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

GRAVE = {"serious", "critical"}
PATIENCE_MS = 240_000  # with a browser on a busy machine


@dataclass
class Opened:
    """A page, with its console messages, errors and dialogs, and the addresses it asked for besides its own."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def sideways(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def faults(self) -> list[str]:
        """What axe-core calls serious or critical."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in GRAVE]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Debian's Chromium."""
    program = shutil.which("chromium")
    assert program, "install the package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE_MS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1200, **context: Any) -> Iterator[Opened]:
    """Open a file and wait until it is drawn.

    Args:
        browser: Where.
        path: The file.
        width: Of the window, pixels.
        context: More for the browser's context: color_scheme, java_script_enabled.
    """
    within = browser.new_context(viewport={"width": width, "height": 900}, **context)
    within.set_default_timeout(PATIENCE_MS)
    page = within.new_page()
    found = Opened(page)
    page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (found.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: found.asked.append(request.url))
    page.goto(path.as_uri())
    found.asked.remove(path.as_uri())
    yield found
    within.close()
