"""The page of a leaderboard in a real browser: it draws, sorts, searches and runs nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankwise import PairGraph
from rankwise.leaderboard import rate, rate_groups
from rankwise.report import write_board
from tests.browser import CONTRASTS, set_screen, start_browser
from tests.report.test_board_page import board_of, columns_of, make_battles

HOSTILE = "</script><img src=x onerror=alert(1)>"
ODD_NAMES = [HOSTILE, "مرحبا بالعالم", "🏳️‍🌈 emoji", "x" * 300, "&lt;b&gt;", "a b=c#d%e"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name: with all parts, several boards, odd names, many items, no intervals."""
    folder = tmp_path_factory.mktemp("pages")
    names = ["Ann", "Bob", "Cleo", "Dan", "Eve", "a player with a rather long name"]
    rows = [*make_battles(names=names), ("Zoe", "Ann", "left", "j1", 0.0)]
    full = board_of(rows, judge="judge", side=True, covariates=["length"], scale="elo")
    write_board(folder / "full.html", full, title="Full")
    rows = make_battles(names=ODD_NAMES)
    odd = board_of(rows, judge="judge")
    write_board(folder / "odd.html", {HOSTILE: odd, "second": odd}, title=HOSTILE)
    boards = rate_groups(
        columns_of(make_battles()),
        ["old" if k < 90 else "new" for k in range(300)],
        sides=("left", "right"),
        outcome="better",
    )
    write_board(folder / "several.html", boards)
    rng = np.random.default_rng(0)
    first = rng.integers(2000, size=12_000)
    second = (first + 1 + rng.integers(1999, size=12_000)) % 2000
    won = rng.random(12_000) < 1 / (1 + np.exp((first - second) / 700))
    games = PairGraph(np.where(won, first, second), np.where(won, second, first), n_items=2000)
    labels = [f"item {k}" for k in range(2000)]
    write_board(folder / "many.html", rate(games, items=labels, n_resamples=0, alpha=1e-3))
    scores = {"home": ["a", "b", "c", "a"], "away": ["b", "c", "a", "c"], "x": [3, 2, 1, 5]}
    scores["y"] = [0, 1, 2, 1]
    board = rate(scores, sides=("home", "away"), scores=("x", "y"), margin=True)
    write_board(folder / "margins.html", board)
    return folder


@pytest.fixture
def open_page(browser, pages):
    def open_it(name, width=1200, scheme="light"):
        set_screen(browser, width, scheme)
        browser.get("about:blank")
        browser.get((pages / f"{name}.html").as_uri())
        return browser

    yield open_it
    assert browser.get_log("browser") == []


def find(page, selector):
    return page.find_element("css selector", selector)


def texts(page, selector):
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)",
        selector,
    )


def column(page, k, table="rating"):
    return texts(page, f"#{table}-table tbody td:nth-child({k})")


def numbers(page, k, table="rating"):
    plain = [text.replace("−", "-").replace(",", "") for text in column(page, k, table)]
    return [float(text.rstrip("%")) for text in plain if text != "–"]


def drawn(page):
    """Centers of the dots of the rating table, from top to bottom."""
    return page.execute_script(
        "return [...document.querySelectorAll('#rating-table circle')]"
        ".map((dot) => Number(dot.getAttribute('cx')))"
    )


@pytest.mark.parametrize("name", ["full", "odd", "several", "many", "margins"])
def test_page_draws_without_errors_and_without_network(open_page, name):
    page = open_page(name)
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(drawn(page)) >= 3
    assert drawn(page) == sorted(drawn(page), reverse=True)
    unnamed = "svg:not([role=img]), svg:not([aria-label])"
    assert page.find_elements("css selector", unnamed) == []
    assert len(texts(page, "#matrix tbody td")) >= 9


def test_policy_keeps_out_what_others_would_load_or_run(browser, open_page):
    page = open_page("full")
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


def test_rows_are_those_of_the_board_and_thin_items_are_marked(open_page):
    page = open_page("full")
    rows = page.execute_script("return data.boards[0].rows")
    names = [name + ("\u00a0†" if k in rows["thin"] else "") for k, name in enumerate(rows["item"])]
    assert column(page, 2) == names
    assert "Zoe\u00a0†" in names
    ranges = [f"{a}–{b}" for a, b in zip(rows["best_rank"], rows["worst_rank"], strict=True)]
    assert column(page, 6) == ranges
    assert numbers(page, 4) == pytest.approx(rows["rating"], abs=0.6)
    shaded = page.execute_script(
        "return [...document.querySelectorAll('#rating-table tbody tr')]"
        ".map((row) => row.classList.contains('shaded'))"
    )
    assert shaded == [tier % 2 == 0 for tier in rows["tier"]]


def test_column_heads_sort_by_pointer_and_keyboard(open_page):
    page = open_page("full")
    heads = page.find_elements("css selector", "#rating-table th")
    heads[7].find_element("css selector", "button").click()
    assert heads[7].get_attribute("aria-sort") == "descending"
    assert numbers(page, 8) == sorted(numbers(page, 8), reverse=True)
    button = heads[1].find_element("css selector", "button")
    button.send_keys("\ue007")  # Enter
    assert [name[0].lower() for name in column(page, 2)] == sorted(
        name[0].lower() for name in column(page, 2)
    )
    button.send_keys(" ")
    assert column(page, 2)[0] == "Zoe\u00a0†"


def test_search_and_more_rows_on_a_board_of_2000_items(open_page):
    page = open_page("many")
    assert len(column(page, 2)) == 50
    find(page, "#more-ratings").click()
    assert len(column(page, 2)) == 250
    find(page, "#filter").send_keys("ITEM 19")
    assert find(page, "#rating-count").text == "111 of 2,000 items match"
    find(page, "#filter").send_keys("99")
    assert column(page, 2) == ["item 1999"]
    assert not find(page, "#more-ratings").is_displayed()
    assert len(texts(page, "#matrix tbody tr")) == 40
    find(page, "#more-matrix").click()
    assert len(texts(page, "#matrix tbody tr")) == 80
    assert "The first 80 of 2,000 items" in find(page, "#matrix-count").text


def test_matrix_tells_seen_and_expected_and_its_mirror_image(open_page):
    page = open_page("full")
    for kind in ("observed", "expected", "difference"):
        find(page, f"#shown option[value={kind}]").click()
        cells = page.execute_script(
            "return [...document.querySelectorAll('#matrix tbody td[data-i]')]"
            ".map((cell) => [cell.dataset.i, cell.dataset.j, cell.textContent])"
        )
        shown = {(int(i), int(j)): text.replace("−", "-") for i, j, text in cells}
        met = page.execute_script("return data.boards[0].meetings")
        for k, (i, j) in enumerate(zip(met["first"], met["second"], strict=True)):
            seen, wanted = met["observed"][k], met["expected"][k]
            value = {"observed": 1 + seen, "expected": 1 + wanted, "difference": seen - wanted}
            assert float(shown[i, j]) == pytest.approx(50 * value[kind], abs=0.51)
            total = 0 if kind == "difference" else 100
            assert float(shown[i, j]) + float(shown[j, i]) == pytest.approx(total, abs=1)
        empty = {pair for pair, text in shown.items() if not text}
        pairs = set(zip(met["first"], met["second"], strict=True))
        assert empty == {(i, j) for i, j in shown if not {(i, j), (j, i)} & pairs}


def test_arrow_keys_go_through_the_matrix_and_read_it(open_page):
    page = open_page("full")
    cell = find(page, "#matrix td[tabindex='0']")
    cell.send_keys("\ue014")  # right
    names = page.execute_script("return data.boards[0].rows.item")
    words = find(page, "#pair-words").text
    assert words.startswith(f"{names[0]} against {names[2]}") or "never met" in words
    page.switch_to.active_element.send_keys("\ue015")  # down
    assert f"{names[1]} " in find(page, "#pair-words").text
    assert len(page.find_elements("css selector", "#matrix td[tabindex='0']")) == 1
    page.switch_to.active_element.send_keys("\ue012")  # left, past the item against itself
    assert names[0] in find(page, "#pair-words").text


def test_effects_and_judges_are_there_if_the_board_has_them(open_page):
    page = open_page("full")
    assert column(page, 1, "effect") == ["first side", "length"]
    effects = page.execute_script("return data.boards[0].effects")
    assert numbers(page, 3, "effect") == pytest.approx([e["value"] for e in effects], rel=0.01)
    assert numbers(page, 4, "effect") == pytest.approx([e["error"] for e in effects], rel=0.06)
    assert "9 clusters" in find(page, "#effect-lead").text
    judges = page.execute_script("return data.boards[0].judges")
    by_name = dict(zip(column(page, 1, "judge"), numbers(page, 3, "judge"), strict=True))
    for judge in judges:
        assert by_name[judge["name"]] == pytest.approx(judge["agreement"], abs=0.0051)
    page = open_page("margins")
    for part in ("effects", "judges"):
        assert not find(page, f"#{part}").is_displayed()
        assert not find(page, f"nav a[href='#{part}']").is_displayed()


def test_another_board_can_be_chosen(open_page):
    page = open_page("several")
    assert texts(page, "#board option") == ["new", "old"]
    assert find(page, "#subtitle").text == "210 comparisons of 5 items"
    before = numbers(page, 4)
    find(page, "#board option:last-child").click()
    assert find(page, "#subtitle").text == "90 comparisons of 5 items"
    assert numbers(page, 4) != before
    assert sum(numbers(page, 8)) == 180
    assert not find(open_page("full"), "#board-choice").is_displayed()


@pytest.mark.parametrize("name", ["full", "odd", "several", "many"])
def test_a_phone_needs_no_sideways_scrolling_and_cuts_no_picture_off(open_page, name):
    page = open_page(name, width=360)
    wide, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert (wide, inner) == (360, 360)
    right = page.execute_script("""
      return Math.max(...[...document.querySelectorAll("#rating-table td svg")]
        .map((node) => node.getBoundingClientRect().right));""")
    assert right <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(open_page, scheme):
    page = open_page("full", scheme=scheme)
    assert page.execute_script(CONTRASTS) == []
    find(page, "#shown option[value=difference]").click()
    assert page.execute_script(CONTRASTS) == []


def test_controls_have_names_and_headings_are_in_order(open_page):
    page = open_page("full")
    nameless = page.execute_script("""
      return [...document.querySelectorAll("button, select, input")]
        .filter((node) => !(node.textContent.trim() && node.tagName === "BUTTON")
          && !node.labels?.length && !node.getAttribute("aria-label")).length""")
    assert nameless == 0
    levels = page.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')].map((node) => Number(node.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_hostile_and_odd_names_are_shown_as_text(open_page):
    page = open_page("odd")
    assert find(page, "h1").text == HOSTILE
    assert page.find_elements("css selector", "img") == []
    assert texts(page, "#board option") == [HOSTILE, "second"]
    rows = page.execute_script("return data.boards[0].rows")
    assert HOSTILE in rows["item"]
    assert texts(page, "#rating-table tbody td bdi") == rows["item"]
    assert texts(page, "#matrix tbody th bdi") == rows["item"]
    directions = page.execute_script("""
      return [...document.querySelectorAll("#rating-table td bdi")].map(
        (node) => getComputedStyle(node).direction);""")
    arabic = rows["item"].index("مرحبا بالعالم")
    assert [k for k, way in enumerate(directions) if way == "rtl"] == [arabic]


def test_paper_has_the_rows_but_no_controls(open_page, browser):
    page = open_page("full")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not find(page, "#filter").is_displayed()
        assert not find(page, "#shown").is_displayed()
        assert find(page, "#rating-table tbody tr").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
