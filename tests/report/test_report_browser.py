"""The report in a real browser (Debian package chromium)."""

import re
import shutil
import subprocess

import pytest
from report_samples import ENVIRONMENT, SPACE, candidate, failed, lively, summary

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


@pytest.mark.services
def test_a_study_with_nothing_to_draw_opens_as_well(tmp_path):
    records = [failed(0, candidate(0)), failed(1, candidate(3), "</pre><script>console.error('ran')</script>")]
    path = write_report(summary(records), records, ENVIRONMENT, SPACE, tmp_path / "report.html")
    answer = chromium(tmp_path / "profile", "--dump-dom", path.as_uri())
    assert 'class="scripted"' in answer.stdout
    assert "CONSOLE" not in answer.stderr


@pytest.mark.services
def test_console_errors_would_be_seen(tmp_path):
    (tmp_path / "bad.html").write_text("<script>console.error('seen')</script>")
    assert "CONSOLE" in chromium(tmp_path / "profile", "--dump-dom", (tmp_path / "bad.html").as_uri()).stderr
