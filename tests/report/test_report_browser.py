"""The report in a real browser (Debian package chromium)."""

import re
import shutil
import subprocess

import pytest
from report_samples import ENVIRONMENT, SPACE, lively, summary

from spectune.report import write_report

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--v=0", "--window-size=1200,900",
    "--virtual-time-budget=5000",
)  # fmt: skip


def chromium(profile, *arguments):
    program = shutil.which("chromium")
    assert program, "install the package chromium"
    command = [program, *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.services
def test_charts_are_drawn_without_a_word_on_the_console(tmp_path):
    path = write_report(summary(lively()), lively(), ENVIRONMENT, SPACE, tmp_path / "report.html")
    answer = chromium(tmp_path / "profile", "--dump-dom", path.as_uri())
    assert len(re.findall(r"<div[^>]*js-plotly-plot", answer.stdout)) == 4
    assert len(re.findall(r'class="main-svg"', answer.stdout)) >= 4
    assert "CONSOLE" not in answer.stderr
    picture = tmp_path / "report.png"
    chromium(tmp_path / "profile2", f"--screenshot={picture}", path.as_uri())
    assert picture.stat().st_size > 20_000
