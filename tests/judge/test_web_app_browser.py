"""The page of `rankwise judge` in a real browser: a whole session, by hand and by keyboard."""

from __future__ import annotations

import csv
import io
import signal
import urllib.request

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.browser import find, set_screen, start_browser, wait_for
from tests.judge.data import Program

HOSTILE = "<img src=x onerror=alert(1)>"
NAMES = ["Brie", "Comté", HOSTILE, "مرحبا بالعالم", "Feta", "Gouda", "x" * 300, "Roquefort"]


@pytest.fixture(scope="module")
def other_browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("other"))
    yield driver
    driver.quit()


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "note", "price"])
        writer.writerows([name, f"note {k}\nsecond line", 5 + k] for k, name in enumerate(NAMES))
    return path


@pytest.fixture
def start_program(items):
    """Start `rankwise judge`; what still runs after the test is stopped."""
    programs = []

    def start(*options):
        program = Program(items, *options)
        programs.append(program)
        return program

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.end(signal.SIGTERM)


@pytest.fixture
def program(start_program):
    return start_program()


def enter(page, program, name="Ann", width=1200, scheme="light"):
    set_screen(page, width, scheme)
    page.get("about:blank")
    page.get(program.url)
    page.execute_script("sessionStorage.clear()")
    page.refresh()
    find(page, "#name").send_keys(name + "\n")
    wait_for(page, lambda: shown(page) != ["", ""])


def shown(page):
    return [find(page, f"#{side} .content").text for side in ("first", "second")]


def progress(page):
    return find(page, "#progress").text


def open_question(page):
    """The number of the question that the page shows."""
    return page.execute_script("return openQuestion")


def press(page, key):
    """Press a key and wait for the reply."""
    from selenium.webdriver.common.action_chains import ActionChains

    before = open_question(page)
    ActionChains(page).send_keys(key).perform()
    wait_for(
        page, lambda: page.execute_script("return !isBusy && openQuestion") not in (False, before)
    )


def answers(program):
    with urllib.request.urlopen(f"{program.url}comparisons.csv") as reply:
        return list(csv.DictReader(io.TextIOWrapper(reply, "utf-8")))


def complaints(page):
    return page.get_log("browser")


def test_thirty_judgements_by_keyboard_with_undo_and_reload(browser, program):
    from selenium.webdriver.common.keys import Keys

    enter(browser, program)
    keys = [Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.ARROW_UP]
    for k in range(30):
        press(browser, keys[k % 3])
    assert progress(browser).startswith("30 answers from you;")
    last = answers(program)[-1]
    assert last["outcome"] == "tie"
    press(browser, Keys.BACKSPACE)
    # asked again; by chance the question that was open is about the same two items
    assert [text.split("\n")[0] for text in shown(browser)] == [last["first"], last["second"]]
    assert len(answers(program)) == 29
    waiting = shown(browser)
    browser.refresh()
    wait_for(browser, lambda: shown(browser) == waiting)
    press(browser, Keys.ARROW_LEFT)
    found = answers(program)
    assert len(found) == 30
    assert found[-1]["outcome"] == "first"
    assert [row["outcome"] for row in found[:3]] == ["first", "second", "tie"]
    assert {row["judge"] for row in found} == {"Ann"}
    assert complaints(browser) == []


def test_buttons_cards_and_the_live_board(browser, program):
    enter(browser, program)
    for selector in ("#first", "button[data-outcome=tie]", "button[data-outcome=second]"):
        before = open_question(browser)
        find(browser, selector).click()
        wait_for(browser, lambda b=before: open_question(browser) != b)
    find(browser, "#board summary").click()
    wait_for(browser, lambda: len(browser.find_elements("css selector", "#rows tr")) == 8)
    wait_for(browser, lambda: "From 3 answers" in find(browser, "#board-note").text)
    assert [row["outcome"] for row in answers(program)] == ["first", "tie", "second"]
    find(browser, "#undo").click()
    wait_for(browser, lambda: "undone" in find(browser, "#message").text)
    assert len(answers(program)) == 2
    assert complaints(browser) == []


def test_two_browsers_at_once(browser, other_browser, program):
    from selenium.webdriver.common.keys import Keys

    enter(browser, program, "Ann")
    enter(other_browser, program, "Bob")
    for _ in range(5):
        pairs = [
            frozenset(text.split("\n")[0] for text in shown(page))
            for page in (browser, other_browser)
        ]
        assert pairs[0] != pairs[1]
        press(browser, Keys.ARROW_LEFT)
        press(other_browser, Keys.ARROW_RIGHT)
    found = answers(program)
    assert sorted(row["judge"] for row in found) == ["Ann"] * 5 + ["Bob"] * 5
    assert {(row["judge"], row["outcome"]) for row in found} == {
        ("Ann", "first"),
        ("Bob", "second"),
    }
    assert "10 in total" in progress(other_browser)


def test_a_killed_server_is_told_and_nothing_is_lost(browser, start_program):
    from selenium.webdriver.common.keys import Keys

    program = start_program()
    enter(browser, program)
    press(browser, Keys.ARROW_LEFT)
    press(browser, Keys.ARROW_UP)
    waiting = shown(browser)
    program.end(signal.SIGKILL)
    find(browser, "button[data-outcome=first]").click()
    wait_for(browser, lambda: "does not answer" in find(browser, "#message").text)
    assert shown(browser) == waiting
    port = program.url.rsplit(":", 1)[1].strip("/")
    again = start_program("--port", port)
    find(browser, "button[data-outcome=first]").click()
    wait_for(browser, lambda: progress(browser).startswith("3 answers"))
    assert [row["outcome"] for row in answers(again)] == ["first", "tie", "first"]


def test_names_and_texts_are_never_executed(browser, program):
    from selenium.webdriver.common.keys import Keys

    enter(browser, program, HOSTILE)
    for _ in range(8):
        press(browser, Keys.ARROW_LEFT)
    find(browser, "#board summary").click()
    wait_for(browser, lambda: HOSTILE in find(browser, "#rows").text)
    assert not browser.find_elements("css selector", "img")
    assert find(browser, "#judge-name").text == HOSTILE
    assert complaints(browser) == []


def test_a_blind_judge_sees_no_name_before_the_answer_and_no_board(browser, start_program):
    program = start_program("--blind")
    enter(browser, program)
    page = browser.execute_script("return document.body.innerText")
    assert not [name for name in NAMES if name in page]
    assert not find(browser, "#board").is_displayed()
    find(browser, "#second").click()
    wait_for(browser, lambda: "The items were" in find(browser, "#message").text)
    assert [name in find(browser, "#message").text for name in NAMES].count(True) == 2


def test_buttons_are_large_enough_for_a_thumb(browser, program):
    enter(browser, program, width=360)
    heights = browser.execute_script(
        "return [...document.querySelectorAll('.choice')]"
        ".map((button) => button.getBoundingClientRect().height)"
    )
    assert len(heights) == 3
    assert min(heights) >= 44


def test_enter_chooses_the_focused_card_and_buttons_keep_the_focus(browser, program):
    from selenium.webdriver.common.keys import Keys

    enter(browser, program)
    browser.execute_script("byId('second').focus()")
    press(browser, Keys.ENTER)
    browser.execute_script("document.querySelector('.tie').focus()")
    press(browser, Keys.SPACE)
    wait_for(browser, lambda: not browser.execute_script("return isBusy"))
    assert [row["outcome"] for row in answers(program)] == ["second", "tie"]
    assert browser.execute_script("return document.activeElement.dataset.outcome") == "tie"


def test_arrow_keys_scroll_a_long_text_that_has_the_focus(browser, program):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    enter(browser, program)
    browser.execute_script("""
      byId("first").querySelector(".content").append("word ".repeat(5000));
      byId("first").focus();""")
    ActionChains(browser).send_keys(Keys.ARROW_UP).perform()
    assert browser.execute_script("return isBusy") is False
    press(browser, Keys.ARROW_LEFT)
    assert [row["outcome"] for row in answers(program)] == ["first"]


def test_a_huge_interval_does_not_shrink_the_others_to_dots(browser, program):
    enter(browser, program)
    lengths, arrows = browser.execute_script("""
      const row = (low, high) => ({rating: 0, low, high});
      const rows = [row(-1, 1), row(-2, 2), row(-600, 600), row(-500, 700)];
      const [low, high] = scaleOf(rows);
      const pictures = rows.map((each) => drawInterval(each, low, high));
      const end = (svg, name) => parseFloat(svg.querySelector("line").getAttribute(name));
      return [pictures.map((svg) => end(svg, "x2") - end(svg, "x1")),
              pictures.map((svg) => svg.querySelectorAll("text").length)];""")
    assert lengths == pytest.approx([46, 92, 92, 92])
    assert arrows == [0, 0, 2, 2]
