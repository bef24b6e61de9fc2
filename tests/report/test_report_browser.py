"""The report in a real browser, as a colleague uses it: pointer, keyboard, dark, narrow, without scripts."""

from __future__ import annotations

import pytest
from report_browser import chromium, opened
from report_samples import ENVIRONMENT, candidate, failed, lively, record, space, summary

from spectune.report import write_report

pytestmark = pytest.mark.services

HOSTILE = "</pre></script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=console.error('ran')>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(summary(lively()), lively(), ENVIRONMENT, space(), path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_it_is_quiet_fits_and_has_no_serious_fault(browser, report, scheme, width):
    with opened(browser, report, width=width, color_scheme=scheme) as it:
        for details in it.page.locator("details").all():
            details.evaluate("element => element.open = true")
        assert it.sideways <= 0
        assert it.faults() == []
        assert it.said == []
        assert [url for url in it.asked if not url.startswith("data:")] == []


def test_it_follows_the_colours_of_the_system(browser, report):
    with opened(browser, report, color_scheme="light") as it:
        colour = "getComputedStyle(document.querySelector('.plot use')).fill + getComputedStyle(document.body).color"
        light = it.page.evaluate(colour)
        it.page.emulate_media(color_scheme="dark")
        assert it.page.evaluate(colour) != light


def test_the_command_is_copied(browser, report):
    with opened(browser, report, permissions=["clipboard-read", "clipboard-write"]) as it:
        it.page.get_by_role("button", name="Copy command").first.click()
        it.page.get_by_text("Copied").wait_for()
        assert it.page.evaluate("navigator.clipboard.readText()") == it.page.locator("#command-2").inner_text()


def test_the_slider_moves_the_probe_and_says_what_it_means(browser, report):
    with opened(browser, report) as it:
        curve = it.page.locator("#what-if-0")
        slider, said, probe = curve.get_by_role("slider"), curve.locator(".said"), curve.locator(".probe")
        assert (
            said.inner_text()
            == "Accept length 3.39 gives 733.0 tok/s, 1.66 × the best launch without: speculation pays."
        )
        before = probe.get_attribute("x")
        slider.focus()
        it.page.keyboard.press("Home")
        assert "Accept length 1.00 gives 216.2 tok/s, 0.49 × the best launch without: speculation does not pay." in (
            said.inner_text()
        )
        assert "No wanted speed is reached." in said.inner_text()
        assert probe.get_attribute("x") == "0%"
        it.page.keyboard.press("End")
        assert "500 tok/s reached" in said.inner_text()
        assert probe.get_attribute("x") == "100%" != before
        slider.fill("2.10")
        assert "whether speculation pays is not known" in said.inner_text()


def test_another_configuration_can_be_chosen(browser, report):
    with opened(browser, report) as it:
        it.page.get_by_label("Configuration").select_option(label="EAGLE3 weak 3,1,4 · c1")
        assert it.page.locator(".curve:visible").count() == 1
        assert "Accept length 1.97" in it.page.locator(".curve:visible .said").inner_text()


def test_figures_are_filtered_and_sorted(browser, report):
    with opened(browser, report) as it:
        rows = it.page.locator("#all-figures tbody tr:visible")
        everything = rows.count()
        it.page.get_by_label("Show rows with").fill("C8 weak")
        assert it.page.locator("#filtered").inner_text() == f"2 of {everything} rows"
        assert rows.count() == 2
        it.page.get_by_label("Show rows with").fill("c1")
        button = it.page.get_by_role("button", name="tok/s one")
        for order, compare in (("ascending", sorted), ("descending", lambda found: sorted(found, reverse=True))):
            button.press("Enter")
            assert it.page.locator(f'th[aria-sort="{order}"]').inner_text().startswith("tok/s one")
            speeds = [float(text.split()[0]) for text in rows.locator("td:nth-child(8)").all_inner_texts()]
            assert len(speeds) == 8
            assert speeds == compare(speeds)


def test_points_say_what_they_are_to_pointer_and_keyboard(browser, report):
    with opened(browser, report) as it:
        plot = it.page.locator("#plot-trade-off")
        tip = plot.locator(".tip")
        plot.focus()
        it.page.keyboard.press("ArrowRight")
        assert "decode speed" in tip.inner_text()
        first = tip.inner_text()
        it.page.keyboard.press("ArrowRight")
        assert tip.inner_text() != first
        it.page.keyboard.press("Escape")
        assert tip.is_hidden()
        plot.locator("use").last.hover()
        assert "output throughput" in tip.inner_text()


def test_without_scripts_all_is_drawn_and_nothing_dead_is_shown(browser, report):
    with opened(browser, report, java_script_enabled=False) as it:
        assert it.page.locator("#plot-trade-off use").count() == 14
        assert it.page.locator("#plot-trade-off use").first.bounding_box()["width"] > 0
        assert not it.page.get_by_role("button").or_(it.page.get_by_role("slider")).first.is_visible()


def test_a_study_with_nothing_to_draw_opens_as_well(browser, tmp_path):
    records = [failed(0, candidate(0)), failed(1, candidate(3))]
    path = write_report(summary(records), records, {}, space(), tmp_path / "report.html")
    with opened(browser, path, width=360) as it:
        assert it.page.locator("html.scripted").count() == 1
        assert (it.said, it.sideways, it.faults()) == ([], 0, [])


def test_hostile_names_do_nothing(browser, tmp_path):
    hostile = candidate(3, HOSTILE)
    records = [record(0, candidate(0), (442.0, 261.0)), record(1, hostile, (700.0, 300.0), 3.2, why=HOSTILE)]
    records.append(failed(2, candidate(2), HOSTILE))
    path = write_report(summary(records, study=HOSTILE), records, {}, space(), tmp_path / "report.html")
    with opened(browser, path, width=360) as it:
        assert it.said == []
        assert [url for url in it.asked if not url.startswith("data:")] == []
        assert it.sideways <= 0


def test_what_is_wrong_would_be_seen(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<html><body style='width:2000px'><script>console.error('seen')</script><img src=gone.png><input>", "utf-8"
    )
    with opened(browser, bad) as it:
        assert "error: seen" in it.said
        assert any(url.endswith("gone.png") for url in it.asked)
        assert it.sideways > 0
        assert any("image-alt" in fault for fault in it.faults())
