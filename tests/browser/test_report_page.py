"""The page in a real browser: filter, search, shared state, copying, keys, and without JavaScript.

Needs Playwright, Chromium and axe-core: tools/report-tests fetches them and runs this.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import planted_defects as planted
import pytest
import report_cases as cases
import report_scenarios as scenarios
import study_pages as studies

from ciwrap.report.page import render_html

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


def complaints_of(page: Page) -> list[str]:
    """What axe-core finds on a page, which has to be opened with bypass_csp."""
    if not AXE.is_file():
        pytest.skip("no axe-core here (tools/report-tests)")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run().then((result) => result.violations)")
    return [
        f"{one['impact']} {one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found
    ]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["match", "planted", "planted_residues", "not_comparable", "field"]
)
def test_accessibility(browser: Any, pages: Any, name: str, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 844}
    )
    page = context.new_page()
    page.goto(pages[name])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    said = complaints_of(page)
    context.close()
    assert said == []


# One of 12,800 checkpoints takes long to write, and looks as the growing one does.
CASES = [name for name in cases.CASES if name != "long_run"]
PLANTED = [name for name in planted.DEFECTS if name != "nothing"]
STUDIES = list(studies.PAGES)
assert len({*CASES, *PLANTED, *STUDIES}) == len(CASES) + len(PLANTED) + len(STUDIES)


@pytest.fixture(scope="session")
def case_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cases")
    found = {name: cases.make(name, folder / name).as_uri() for name in CASES}
    for name in PLANTED:
        planted.checked(folder / "planted" / name, name)
        found[name] = (folder / "planted" / name / "report.html").as_uri()
    for name in STUDIES:
        found[name] = studies.make(name, folder / "studies" / name).as_uri()
    return found


# Texts of a chart that lie on each other, and cells that are squeezed to a few letters.
COLLIDE = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const texts = [...chart.querySelectorAll("text")];
    const boxes = texts.map((one) => [one.textContent, one.getBoundingClientRect()]);
    boxes.forEach(([words, a], at) => {
      for (const [others, b] of boxes.slice(at + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1.5 && high > 3) found.push(`${words} / ${others}`);
      }
    });
  }
  for (const cell of document.querySelectorAll("td")) {
    const words = cell.textContent;
    if (cell.offsetParent && words.length > 20 && cell.offsetWidth < 80) found.push(words);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", [*CASES, *PLANTED, *STUDIES])
def test_every_case_is_accessible_fits_and_is_silent(
    browser: Any, case_pages: dict[str, str], name: str, width: int, scheme: str
) -> None:
    context = browser.new_context(
        bypass_csp=True, viewport={"width": width, "height": 844}, color_scheme=scheme
    )
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(case_pages[name])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # A column that is squeezed by the one beside it fits the page, too.
    assert (
        page.evaluate(
            "[...document.querySelectorAll('.worst, figure')].filter("
            "(one) => one.offsetParent && one.offsetWidth < 120).map((one) => one.textContent)"
        )
        == []
    )
    told += page.evaluate(COLLIDE)
    told += complaints_of(page)
    context.close()
    assert told == []


@pytest.mark.parametrize("width", [1440, 390])
def test_an_enlarged_picture_is_accessible(browser: Any, pages: Any, width: int) -> None:
    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(pages["field"])
    page.locator(".looker").first.click()
    said = complaints_of(page)
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= width
    context.close()
    assert said == []


def test_a_picture_is_read_with_the_keyboard(page: Page, pages: Any) -> None:
    """The wave of rank 2 has the wrong sign in its last plane, the first one that is shown."""
    page.goto(pages["planted"])
    page.locator(".looker").first.focus()
    page.keyboard.press("Enter")
    dialog, output = page.locator("dialog"), page.locator("dialog output")
    expect(dialog).to_be_visible()
    page.keyboard.press("w")
    expect(output).to_contain_text("\u00d7 the bound")
    before = output.inner_text()
    golden, new = (float(part.split()[-1]) for part in before.split(": ")[1].split(", ")[:2])
    assert golden == pytest.approx(-new, rel=1e-3)
    page.keyboard.press("ArrowDown")
    expect(output).not_to_have_text(before)
    for key, label in (("g", "golden"), ("n", "new"), ("d", "|difference| / bound")):
        page.keyboard.press(key)
        expect(dialog.get_by_role("button", name=label, exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
    # Blinking goes from one side to the other, and a second press ends it.
    page.keyboard.press("b")
    seen = set()
    for _ in range(20):
        for label in ("golden", "new"):
            button = dialog.get_by_role("button", name=label, exact=True)
            if button.get_attribute("aria-pressed") == "true":
                seen.add(label)
        page.wait_for_timeout(100)
    assert seen == {"golden", "new"}
    page.keyboard.press("b")
    expect(dialog.get_by_role("button", name="Blink")).to_have_attribute("aria-pressed", "false")
    # In the plane before the last nothing is beyond the bound.
    page.keyboard.press("[")
    expect(output).to_contain_text(", 22]")
    expect(output).to_contain_text("% of the bound")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator(".looker").first).to_be_focused()


def test_the_value_under_the_pointer(page: Page, pages: Any) -> None:
    page.goto(pages["planted"])
    page.locator(".looker").first.click()
    box = page.locator(".look-frame canvas").bounding_box()
    assert box is not None
    output = page.locator("dialog output")
    # 24 cells each way; the middle of the cell in row 3, column 20.
    page.mouse.move(box["x"] + box["width"] * 20.5 / 24, box["y"] + box["height"] * 3.5 / 24)
    expect(output).to_contain_text("[3, 20, 23]: golden")
    page.keyboard.press("+")
    page.mouse.move(box["x"] + box["width"] / 48, box["y"] + box["height"] / 48)
    expect(output).to_contain_text("\u00d7 the bound")
    assert page.locator(".look-frame canvas").evaluate("(one) => [one.width, one.height]") == [
        12,
        12,
    ]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PLANTED)
def test_the_first_screen_answers_five_questions(
    page: Page, case_pages: dict[str, str], name: str, width: int
) -> None:
    """What, how much, likely cause and next step, and where if it is not everywhere; the telephone
    is 844 high.
    """
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(case_pages[name])
    answers = page.locator("#lead dt").all_text_contents()
    assert set(answers) >= {"What", "How much", "Likely cause", "Next"}
    bottom = page.locator("#lead dl").evaluate("(one) => one.getBoundingClientRect().bottom")
    assert bottom <= 844


def test_golden_and_new_are_swiped_with_the_keyboard(page: Page, pages: Any) -> None:
    """The picture opens on the difference; both scales and both axes are named."""
    page.goto(pages["planted"])
    page.locator(".looker").first.click()
    dialog = page.locator("dialog")
    difference = dialog.get_by_role("button", name="new \u2212 golden", exact=True)
    expect(difference).to_have_attribute("aria-pressed", "true")
    scale = page.locator(".look-scale")
    expect(scale).to_contain_text(re.compile("\u2212[0-9,]+ \u00d7 the bound"))
    expect(page.locator(".look-axes")).to_have_text(
        "down: axis 0, 0 to 23; across: axis 1, 0 to 23"
    )
    pictures = {}
    for key in "gns":
        page.keyboard.press(key)
        pictures[key] = page.locator(".look-frame canvas").evaluate("(one) => one.toDataURL()")
    assert len(set(pictures.values())) == 3
    seam, knob = page.locator(".look-seam"), dialog.get_by_label("golden | new")
    expect(scale).not_to_contain_text("bound")
    knob.focus()
    for key, value, shown in (("End", "100", "g"), ("Home", "0", "n")):
        page.keyboard.press(key)
        expect(knob).to_have_value(value)
        expect(seam).to_have_attribute("style", re.compile(f"left: {value}%"))
        picture = page.locator(".look-frame canvas").evaluate("(one) => one.toDataURL()")
        assert picture == pictures[shown]
    page.keyboard.press("+")
    expect(page.locator(".look-axes")).not_to_have_text(re.compile("0 to 23.*0 to 23"))
    page.keyboard.press("m")
    expect(seam).to_be_hidden()
    expect(knob).to_be_hidden()


def test_a_table_of_nothing_has_no_head(page: Page, pages: Any) -> None:
    page.goto(pages["not_comparable"])
    page.get_by_role("button", name="match", exact=False).last.click()
    expect(page.locator("#matrix")).to_be_hidden()
    expect(page.locator("#h-findings")).to_be_hidden()
    expect(page.locator("#matching table")).to_be_visible()
    # The keys 1, 2, ... are the buttons.
    page.keyboard.press("1")
    expect(page.locator("#matrix")).to_be_visible()
    assert "show=not_comparable" in page.url


def test_one_line_is_between_the_buttons_and_what_matches(page: Page, pages: Any) -> None:
    page.goto(pages["match"])
    lines = page.evaluate(
        "['.tools', '#matching'].map((one) => getComputedStyle(document.querySelector(one)))"
        ".map((one, at) => parseFloat(at ? one.borderTopWidth : one.borderBottomWidth))"
    )
    assert lines == [1, 0]


def test_the_name_of_a_fact_is_not_broken(page: Page, pages: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(pages["match"])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    name = page.locator("#environment th[scope=row]").first
    alone = name.evaluate("(one) => one.clientHeight")
    name.evaluate("(one) => { one.textContent = 'OPENBLAS_NUM_THREADS' }")
    page.locator("#environment td").first.evaluate(
        "(one) => { one.textContent = 'a value of many words '.repeat(20) }"
    )
    assert (
        name.evaluate(
            "(one) => { const range = document.createRange(); range.selectNodeContents(one);"
            " return range.getBoundingClientRect().height }"
        )
        < alone
    )


def test_filter_search_and_state_in_the_address(page: Page, pages: Any, browser: Any) -> None:
    page.goto(pages["many"])
    rows = page.locator("tr[data-v]:visible")
    page.get_by_role("searchbox").fill("case_00042")
    expect(rows).to_have_count(1)
    expect(page.locator("#shown")).to_have_text("1 of 10,000 variables")
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
    button = page.locator(".accept > .cmd").get_by_role("button", name="Copy")
    button.click()
    expect(page.locator("#status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "ciwrap accept wave --reason 'WHY'"
    context.close()


def test_every_command_has_a_button_that_copies_it(
    browser: Any, case_pages: dict[str, str]
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    copied = []
    for name in case_pages:
        page.goto(case_pages[name])
        for one in page.locator("#lead .cmd, .accept > .cmd").all():
            words = one.locator("code").inner_text()
            assert words.startswith(("ciwrap ", "git show "))
            one.get_by_role("button", name="Copy").click()
            assert page.evaluate("navigator.clipboard.readText()") == words
            copied.append(name)
    context.close()
    assert {"repeat", "time_changed", "trend", "bisect", "bisect_open", "variability"} <= set(
        copied
    )


@pytest.mark.parametrize("name", ["repeat", "time_changed", "trend", "variability", "bisect"])
def test_a_printed_card_is_broken_in_its_tables_alone(
    page: Page, case_pages: dict[str, str], name: str
) -> None:
    page.goto(case_pages[name])
    page.emulate_media(media="print")
    breaks = page.evaluate(
        "[...document.querySelectorAll('.card')].map((one) =>"
        " [one.querySelector('table') !== null, getComputedStyle(one).breakInside])"
    )
    assert breaks
    for has_table, inside in breaks:
        assert inside == ("auto" if has_table else "avoid")


def test_names_in_a_printed_table_are_whole(page: Page, pages: Any) -> None:
    page.goto(pages["not_comparable"])
    page.set_viewport_size({"width": 703, "height": 1000})  # an A4 page without its margins
    page.emulate_media(media="print")
    lines = page.evaluate(
        "[...document.querySelectorAll('#matrix th, #matrix .ch')].map((one) => {"
        " const range = document.createRange(); range.selectNodeContents(one);"
        " const tops = [...range.getClientRects()].map((line) => Math.round(line.top));"
        " return [one.textContent, new Set(tops).size]; })"
    )
    assert ["ocean", 1] in lines
    assert [words for words, count in lines if count > 1 and " " not in words] == []


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
    expect(page.locator("#lead")).to_contain_text("First difference: iteration 7, rank 2, u")
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


def test_the_values_under_the_pointer_are_told_beside_the_pictures(
    page: Page, pages: dict[str, str]
) -> None:
    page.goto(pages["field"])
    image = page.locator("image[data-axes]").first
    image.scroll_into_view_if_needed()
    box = image.bounding_box()
    assert box is not None
    line = page.locator(".looking .under").first
    expect(line).to_have_text("")
    page.mouse.move(box["x"] + 0.62 * box["width"], box["y"] + 0.35 * box["height"])
    expect(line).to_contain_text("the bound")
    worst = line.inner_text()
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    expect(line).to_contain_text("[9, 0:2, 0]: A 278.26, B 278.26, about 0.12 % of the bound")
    assert line.inner_text() != worst
    page.mouse.move(1, 1)
    expect(line).to_have_text("")
