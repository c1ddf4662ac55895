"""The page of a leaderboard in a real browser: it draws, sorts and searches.

What holds for every page is in test_pages_browser.
"""

from __future__ import annotations

import base64
import csv
import io
from urllib.parse import unquote

import pytest

from tests.browser import find, texts
from tests.pages.data import HOSTILE_TITLE


def column(page, k, table="rating"):
    return texts(page, f"#{table}-table tbody td:nth-child({k})")


def numbers(page, k, table="rating"):
    plain = [text.replace("−", "-").replace(",", "") for text in column(page, k, table)]
    return [float(text.rstrip("%")) for text in plain if text != "–"]


def ratings(page):
    """The numbers above their intervals."""
    first_lines = page.execute_script(
        "return [...document.querySelectorAll('#rating-table tbody td:nth-child(5)')]"
        ".map((cell) => cell.firstChild.data)"
    )
    return [float(text.replace("−", "-").replace(",", "")) for text in first_lines]


def ranges(rows, kind):
    return [f"{a}–{b}" for a, b in zip(rows[f"best_{kind}"], rows[f"worst_{kind}"], strict=True)]


def test_rows_are_those_of_the_board_and_thin_items_are_marked(open_page):
    page = open_page("full")
    rows = page.execute_script("return data.boards[0].rows")
    names = [name + ("\u00a0†" if k in rows["thin"] else "") for k, name in enumerate(rows["item"])]
    assert column(page, 2) == names
    assert "Zoe\u00a0†" in names
    both = zip(ranges(rows, "rank"), ranges(rows, "of_all"), strict=True)
    assert column(page, 4) == [f"{each}, at once {all_}" for each, all_ in both]
    assert ratings(page) == pytest.approx(rows["rating"], abs=0.6)
    assert column(page, 6) == [text or "–" for text in rows["holdsText"]]
    wide, table = page.execute_script("""
      const table = document.querySelector("#rating-table");
      const picture = table.querySelector("td.picture svg");
      return [picture.getBoundingClientRect().width, table.parentNode.clientWidth];""")
    assert wide == pytest.approx(table / 3, abs=2)
    assert table >= page.execute_script("return byId('rating-table').scrollWidth")
    shaded = page.execute_script(
        "return [...document.querySelectorAll('#rating-table tbody tr')]"
        ".map((row) => row.classList.contains('shaded'))"
    )
    assert shaded == [tier is not None and tier % 2 == 0 for tier in rows["tier"]]


def test_search_and_more_rows_on_a_board_of_2000_items(open_page):
    page = open_page("many_items")
    assert len(column(page, 2)) == 50
    find(page, "#more-ratings").click()
    assert len(column(page, 2)) == 400
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
    assert words.startswith(f"{names[0]} against {names[2]}") or "never compared" in words
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


def test_ratings_over_time_are_drawn_and_tell_their_numbers(open_page):
    page = open_page("moving")
    paths = page.execute_script("return data.boards[0].paths")
    assert {path["label"] for path in paths} == {"Rise", "Fall", "Calm"}
    rise = next(path for path in paths if path["label"] == "Rise")
    assert rise["mean"][0] < 0 < rise["mean"][-1]
    assert len(page.find_elements("css selector", "#paths polyline.curve")) == 3
    point = "#paths circle.touch"
    page.execute_script(
        f"document.querySelector('{point}').dispatchEvent(new Event('pointerenter'))"
    )
    words = find(page, "#path-words").text
    assert paths[0]["label"] in words
    assert "2001-" in words
    assert "2,00" not in find(page, "#paths").text
    phone = open_page("moving", width=390, scheme="dark")
    assert phone.execute_script("return document.documentElement.scrollWidth") <= 390
    assert not find(open_page("full"), "#over-time").is_displayed()


def test_a_large_board_fits_on_paper(open_page, browser):
    page = open_page("many_items")
    page.execute_script("data.boards[0].nMatrix = 40; state.matrix = 40; drawMatrix()")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = page.execute_script("""
          const rows = [...document.querySelectorAll("#matrix tbody tr")];
          return rows.filter((row) => row.getClientRects().length).length;""")
        assert shown == 25
        assert not find(page, "#pair-words").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_arrow_keys_read_the_ratings_over_time(open_page):
    from selenium.webdriver.common.keys import Keys

    page = open_page("moving")
    paths = page.execute_script("return data.boards[0].paths")
    (start,) = page.find_elements("css selector", "#paths circle[tabindex='0']")
    start.send_keys(Keys.ARROW_RIGHT)
    for label, date, keys in (
        (paths[0]["label"], paths[0]["dates"][1], Keys.ARROW_DOWN),
        (paths[1]["label"], paths[1]["dates"][0], Keys.ARROW_LEFT),  # there is no point before it
        (paths[1]["label"], paths[1]["dates"][0], Keys.ARROW_UP),
        (paths[0]["label"], paths[0]["dates"][0], Keys.ARROW_UP),
    ):
        words = find(page, "#path-words").text
        assert label in words
        assert date in words
        page.switch_to.active_element.send_keys(keys)
    assert len(page.find_elements("css selector", "#paths circle[tabindex='0']")) == 1


def test_axes_of_time_have_whole_months(open_page):
    page = open_page("moving")
    labels = page.execute_script("""
      const label = ([from, to, count]) => monthTicks(from, to, count).map(yearAndMonth);
      return [[2018.0, 2019.9, 9], [2010.2, 2019.9, 4], [2019.5, 2019.8, 9]].map(label);""")
    assert labels[0][:3] == ["2018", "2018-04", "2018-07"]
    assert labels[1] == ["2012", "2014", "2016", "2018"]
    assert labels[2] == ["2019-07", "2019-08", "2019-09", "2019-10"]


def test_explanations_are_those_of_the_columns(open_page):
    page = open_page("full")
    assert page.execute_script("""
      const {rows} = chosen();
      Object.assign(rows, {thin: [], holds: null, best_rank: rows.best_rank.map(() => 7),
                           worst_rank: rows.worst_rank.map(() => 7)});
      drawTexts(chosen());
      return [rankRange(rows, 0), byId("reading").innerText.includes("To flip"),
              byId("reading").innerText.includes("†"), byId("reading").innerText.includes("tier")];
    """) == ["7", False, False, True]  # fmt: skip


def test_another_board_can_be_chosen(open_page):
    page = open_page("several")
    assert texts(page, "#board option") == ["new", "old"]
    assert find(page, "#subtitle").text == "210 comparisons of 5 items"
    before = ratings(page)
    find(page, "#board option:last-child").click()
    assert find(page, "#subtitle").text == "90 comparisons of 5 items"
    assert ratings(page) != before
    assert not find(open_page("full"), "#board-choice").is_displayed()


@pytest.mark.parametrize("name", ["full", "many_items"])
def test_a_phone_cuts_no_picture_off(open_page, name):
    page = open_page(name, width=360)
    edge, right, n_ranks = page.execute_script("""
      const right = (node) => node.getBoundingClientRect().right;
      const pictures = [...document.querySelectorAll("#rating-table td svg")];
      const edge = right(document.querySelector("#rating-table").parentNode);
      const bars = document.querySelectorAll("#rating-table rect.ranks");
      return [edge, Math.max(...pictures.map(right)), bars.length];
    """)
    assert right <= edge <= 360
    assert (n_ranks > 0) == (name != "many_items")  # which has no intervals


def test_a_board_is_saved_as_table_and_as_picture(open_page):
    page = open_page("odd_board")
    page.execute_script("window.saved = {}; save = (name, address) => (saved[name] = address)")
    find(page, "#save-csv").click()
    find(page, "#save-png").click()
    saved = page.execute_script("return saved")
    (table, picture) = saved.values()
    text = unquote(table.partition(",")[2]).removeprefix("\ufeff")
    lines = list(csv.DictReader(io.StringIO(text)))
    rows = page.execute_script("return data.boards[0].rows")
    assert [line["item"] for line in lines] == rows["item"]
    assert [float(line["rating"]) for line in lines] == rows["rating"]
    assert [line["best_of_all"] for line in lines] == list(map(str, rows["best_of_all"]))
    header = base64.b64decode(picture.partition(",")[2])[:24]
    assert header.startswith(b"\x89PNG")
    assert int.from_bytes(header[16:20], "big") == 1800


def test_results_of_few_comparisons_are_pale(open_page):
    page = open_page("full")
    cells = page.execute_script("""
      return [...document.querySelectorAll("#matrix tbody td[data-i]")].map((cell) => {
        const met = meeting(Number(cell.dataset.i), Number(cell.dataset.j));
        const color = cell.style.backgroundColor.match(/([\\d.]+)%/);
        return met && [met.n, Math.abs(met.observed), Number(color?.[1] ?? 0), cell.className];
      });""")
    for n, seen, strength, name in filter(None, cells):
        assert strength == pytest.approx(42 * seen * n / (n + 5), abs=0.6)
        assert (name == "few") == (n < 5)


def test_hostile_and_odd_names_are_shown_as_text(open_page):
    page = open_page("odd_board")
    assert texts(page, "#board option") == [HOSTILE_TITLE, "second"]
    rows = page.execute_script("return data.boards[0].rows")
    assert HOSTILE_TITLE in rows["item"]
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
