"""What every page must hold, in a real browser: the report, the board, the page that judges."""

from __future__ import annotations

import itertools
import signal

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.browser import CONTRASTS, find, set_screen, texts, wait_for
from tests.judge.data import Program
from tests.pages.data import HOSTILE_TITLE, ODD_NAMES

FILES = ("grouped", "list", "odd", "many", "flat", "full", "odd_board", "several", "many_items")
FILES += ("scores", "odd_scores")
NAMELESS = """
return [...document.querySelectorAll("button, select, input")]
  .filter((node) => !(node.textContent.trim() && node.tagName === "BUTTON")
    && !node.labels?.length && !node.getAttribute("aria-label")).length"""
#: Boxes that scroll and that the keyboard does not reach, and texts that are cut off.
OUT_OF_REACH = """
return [...document.querySelectorAll("body *")].filter((node) => {
  const { overflowX, overflowY } = getComputedStyle(node);
  const isWide = node.scrollWidth > node.clientWidth + 1;
  const isHigh = node.scrollHeight > node.clientHeight + 1;
  const canScroll = (overflow) => /auto|scroll/.test(overflow);
  const scrolls = (isWide && canScroll(overflowX)) || (isHigh && canScroll(overflowY));
  const isCut = isWide && overflowX === "hidden" && !node.closest("svg") && !node.title;
  return node.getClientRects().length && ((scrolls && node.tabIndex < 0) || isCut);
}).map((node) => `${node.tagName} ${node.className} ${node.textContent.slice(0, 60)}`)"""

#: Labels of drawings that leave the page.
OUTSIDE = """
return [...document.querySelectorAll("figure svg text")].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.left < -1 || box.right > document.documentElement.clientWidth + 1;
}).map((node) => node.textContent)"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    path = tmp_path_factory.mktemp("judge") / "items.txt"
    path.write_text("\n".join(ODD_NAMES), encoding="utf-8")
    program = Program(path)
    yield program
    program.end(signal.SIGTERM)


@pytest.fixture
def open_any(open_page, browser, judge):
    """Open a page by name; "judge" is entered, with a hostile name, and shows its board."""

    def open_it(name, width=1200, scheme="light"):
        if name != "judge":
            return open_page(name, width, scheme)
        set_screen(browser, width, scheme)
        browser.get(judge.url)
        browser.execute_script("sessionStorage.setItem('judge', arguments[0])", HOSTILE_TITLE)
        browser.refresh()
        is_asked = "return !isBusy && openQuestion !== null"
        wait_for(browser, lambda: browser.execute_script(is_asked))
        question = browser.execute_script("return openQuestion")
        find(browser, "button[data-outcome=tie]").click()  # the board is shown after an answer
        wait_for(browser, lambda: browser.execute_script("return openQuestion") != question)
        wait_for(browser, lambda: browser.execute_script(is_asked))
        find(browser, "#board summary").click()
        return browser

    return open_it


SCREENS = [(360, "light"), (768, "dark"), (1280, "light")]
NAMES = ["grouped", "list", "long", "odd", "full", "odd_board", "several", "many_items", "judge"]
NAMES += ["scores", "odd_scores"]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_its_screen_and_can_be_read(open_any, name, width, scheme):
    page = open_any(name, width, scheme)
    assert page.execute_script("return window.innerWidth") == width
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script(OUTSIDE) == []
    assert page.execute_script(CONTRASTS) == []
    assert page.execute_script(OUT_OF_REACH) == []
    assert page.execute_script(NAMELESS) == 0
    levels = [
        int(tag[1])
        for tag in page.execute_script(
            "return [...document.querySelectorAll('h1, h2, h3')]"
            ".filter((node) => node.getClientRects().length).map((node) => node.tagName)"
        )
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


@pytest.mark.parametrize("name", FILES)
def test_a_file_draws_and_loads_nothing(open_page, name):
    page = open_page(name)
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    drawn = page.execute_script("return document.querySelectorAll('figure svg *, td svg *').length")
    assert drawn > 20
    unnamed = "svg:not([role=img]), svg:not([aria-label])"
    assert page.find_elements("css selector", unnamed) == []


@pytest.mark.parametrize("name", ["grouped", "full", "judge"])
def test_the_policy_keeps_out_what_others_would_load_or_run(browser, open_any, name):
    page = open_any(name)
    page.execute_script(
        "const image = new Image(); image.src = 'https://example.org/x.png';"
        "document.body.append(image);"
        "const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
        "document.body.append(script);"
    )
    assert page.execute_script("return window.ran") is None
    messages = [entry["message"] for entry in browser.get_log("browser")]
    assert len(messages) == 2
    assert all("Content Security Policy" in message for message in messages)


@pytest.mark.parametrize("name", ["odd", "odd_board", "judge"])
def test_hostile_names_are_text(open_any, name):
    page = open_any(name)
    assert any(HOSTILE_TITLE in text for text in texts(page, "h1, #judge-name"))
    assert page.find_elements("css selector", "img") == []


TABLES = {"grouped": ("group", 0, int), "full": ("rating", 1, lambda text: text[0].lower())}


@pytest.mark.parametrize("name", TABLES)
def test_column_heads_sort_by_pointer_and_keyboard_and_say_so(open_page, name):
    page = open_page(name)
    table, k, value = TABLES[name]
    head = page.find_elements("css selector", f"#{table}-table th")[k]
    button = head.find_element("css selector", "button")
    for key, way in (("\ue007", "ascending"), (" ", "descending"), (None, "ascending")):
        button.click() if key is None else button.send_keys(key)
        assert head.get_attribute("aria-sort") == way
        shown = list(map(value, texts(page, f"#{table}-table tbody td:nth-child({k + 1})")))
        assert shown == sorted(shown, reverse=way == "descending")


@pytest.mark.parametrize("name", ["grouped", "full"])
def test_button_changes_between_light_and_dark(open_page, name):
    page = open_page(name)
    color = lambda: find(page, "body").value_of_css_property("background-color")  # noqa: E731
    light, button = color(), find(page, "#theme")
    assert (button.text, button.get_attribute("aria-pressed")) == ("Dark", "false")
    button.click()
    assert color() != light
    assert (button.text, button.get_attribute("aria-pressed")) == ("Light", "true")
    button.click()
    assert color() == light
    assert (
        find(open_page(name, scheme="dark"), "body").value_of_css_property("background-color")
        != light
    )
