"""The page in a real browser: filter, search, shared state, copying, keys, and without JavaScript.

Needs Playwright, Chromium and axe-core: tools/report-tests fetches them and runs this.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import report_scenarios as scenarios

from ciwrap.report.html import render_html

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from playwright.sync_api import Page, expect, sync_playwright
except ImportError:
    pytest.skip("no Playwright here (tools/report-tests)", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CIWRAP_CHROMIUM") or shutil.which("chromium")
AXE = Path(
    os.environ.get("CIWRAP_AXE", ROOT / "build/report-tests/node_modules/axe-core/axe.min.js")
)
if CHROMIUM is None:
    pytest.skip("no Chromium here (tools/report-tests)", allow_module_level=True)
# Slower machines than ours get five times the time a reader should have to wait.
MOST_LOAD_SECONDS = 2.0 * 5

SCENARIOS = ("match", "planted", "planted_residues", "field", "not_comparable", "many", "hostile")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of each scenario's page."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in SCENARIOS:
        path = folder / f"{name}.html"
        if name in ("many", "hostile"):
            path.write_text(render_html(getattr(scenarios, name)()), encoding="utf-8")
        else:
            getattr(scenarios, name)(folder / name)
            path.write_bytes((folder / name / "report.html").read_bytes())
        found[name] = path.as_uri()
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    """A desktop page that fails the test for anything on its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: _only_ours(request.url, complaints))
    yield page
    context.close()
    assert complaints == []


def _only_ours(url: str, complaints: list[str]) -> None:
    if not url.startswith(("file:", "data:")):
        complaints.append(f"asked for {url}")


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_quickly_and_fits_the_screen(
    page: Page, pages: Any, name: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    started = time.monotonic()
    page.goto(pages[name])
    assert time.monotonic() - started < MOST_LOAD_SECONDS
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["match", "planted", "planted_residues", "not_comparable"])
def test_accessibility(browser: Any, pages: Any, name: str, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core here (tools/report-tests)")
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(pages[name])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run().then((result) => result.violations)")
    context.close()
    said = [
        f"{one['impact']} {one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found
    ]
    assert said == []


def test_filter_search_and_state_in_the_address(page: Page, pages: Any, browser: Any) -> None:
    page.goto(pages["many"])
    rows = page.locator("tr[data-v]:visible")
    page.get_by_role("searchbox").fill("case_00042")
    expect(rows).to_have_count(1)
    expect(page.locator("#shown")).to_have_text("1 of 10,000 listed variables")
    expect(page.locator("article:visible")).to_have_count(0)
    page.wait_for_url("**#q=case_00042")
    page.get_by_role("searchbox").fill("suite/000 case")
    page.get_by_role("button", name="differ").click()
    expect(rows).to_have_count(8)
    shared = page.url
    assert "show=" in shared

    other = browser.new_context().new_page()
    other.goto(shared)
    expect(other.locator("tr[data-v]:visible")).to_have_count(8)
    expect(other.get_by_role("searchbox")).to_have_value("suite/000 case")
    pressed = other.get_by_role("button", name="9,285 variables match").get_attribute(
        "aria-pressed"
    )
    assert pressed == "false"
    other.context.close()

    page.keyboard.press("Tab")
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_a_link_to_a_card_leads_there(page: Page, pages: Any) -> None:
    page.goto(pages["planted"] + "#c2")
    expect(page.locator("#c2")).to_be_in_viewport()


def test_copy(browser: Any, pages: Any) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(pages["planted"])
    button = page.get_by_role("button", name="Copy")
    button.click()
    expect(page.locator("#status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "ciwrap accept wave --reason 'WHY'"
    context.close()


def test_keys(page: Page, pages: Any) -> None:
    page.goto(pages["planted"])
    page.keyboard.press("j")
    expect(page.locator("#c1")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#c2")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("#c1")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_without_javascript_all_that_matters_is_there(browser: Any, pages: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["planted"])
    expect(page.locator("#lead")).to_contain_text("First divergence: iteration 7, rank 2, u")
    expect(page.locator("#accept")).to_be_visible()
    expect(page.locator("#c1 svg.chart").first).to_be_visible()
    expect(page.locator("#c1 table").first).to_be_visible()
    expect(page.locator("#environment")).to_be_visible()
    # What does nothing without it is not shown.
    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator("button.copy").first).to_be_hidden()
    page.locator("#c1 details").first.locator("summary").click()
    expect(page.locator("#c1 details").first.locator("table")).to_be_visible()
    context.close()


def test_no_script_of_a_name_runs(page: Page, pages: Any) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(pages["hostile"])
    page.mouse.move(300, 300)
    page.get_by_role("searchbox").fill("<script>")
    expect(page.locator("tr[data-v]:visible")).not_to_have_count(0)
    assert dialogs == []


def test_print_leaves_out_what_paper_cannot_do(page: Page, pages: Any) -> None:
    page.goto(pages["planted"])
    page.emulate_media(media="print")
    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator("#lead")).to_be_visible()
