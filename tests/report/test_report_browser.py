"""The report page in a real browser: it draws, sorts, chooses, fits a phone and runs nothing else.

Skipped where selenium, Chromium or its driver are missing; `make test-browser` installs them and
sets RANKWISE_BROWSER=required, so that nothing is skipped there.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankwise import RankRLS, RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.report import write_report
from tests.browser import CONTRASTS, set_screen, start_browser

HOSTILE = "</script><img src=x onerror=alert(1)>"
ODD_NAMES = [HOSTILE, "مرحبا بالعالم", "🏳️‍🌈 emoji", "x" * 500, "&lt;b&gt;", "a b=c#d%e"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name: grouped with a search, one list, odd names, many groups, no difference."""
    folder = tmp_path_factory.mktemp("pages")
    X, y, groups = make_ranking(n_queries=24, n_documents=(3, 12), n_features=6, random_state=0)[:3]
    old = groups < 12
    model = RankRLSCV().fit(X[old], y[old], groups[old])
    write_report(
        *(folder / "grouped.html", model, X[~old], y[~old], groups[~old]),
        training=(X[old], y[old], groups[old]),
        title="Grouped",
    )
    X, y, _ = make_ranking(n_queries=1, n_documents=400, n_levels=None, random_state=0)[:3]
    write_report(
        folder / "list.html", RankRLS(kernel="rbf").fit(X, y), X, y, metrics=("tau", "disagreement")
    )
    rng = np.random.default_rng(0)
    features, truth = rng.normal(size=(60, 6)), rng.integers(0, 4, 60)
    write_report(
        *(folder / "odd.html", RankRLS().fit(features, truth), features, truth),
        [ODD_NAMES[i % 6] for i in range(60)],
        ids=[ODD_NAMES[(i // 6) % 6] for i in range(60)],
        feature_names=ODD_NAMES,
        title=HOSTILE,
    )
    flat, truth = np.zeros((12, 3)), np.arange(12) % 3
    model = RankRLS().fit(flat, truth)
    write_report(folder / "flat.html", model, flat, truth, training=(flat, truth))
    tied = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, *range(10)]
    truth = [*np.arange(10) % 3, *range(10)]
    write_report(folder / "tied.html", tied, None, truth, [0] * 10 + [1] * 10, metrics="tau")
    features, truth = rng.normal(size=(40, 4)), rng.integers(0, 3, 40)
    labels = np.repeat(["a rather long name of the group number 1", f"{'and another ' * 4}2"], 20)
    for name, size in (("huge", 1e200), ("tiny", 1e-200)):
        model = RankRLS().fit(features, truth, labels)
        model.coef_ = model.coef_ * size
        write_report(folder / f"{name}.html", model, features, truth, labels, metrics="tau")
    ids = [f"a long name that differs from the others at its very end only, {k}" for k in range(40)]
    write_report(
        *(folder / "long.html", RankRLS().fit(features, truth, labels), features, truth, labels),
        ids=ids,
        feature_names=ids[:4],
        training=(features, truth, labels),
    )
    scores, truth = rng.normal(size=1200), rng.integers(0, 3, 1200)
    write_report(folder / "many.html", scores, None, truth, np.repeat(np.arange(300), 4))
    return folder


@pytest.fixture
def open_page(browser, pages):
    def open_it(name, width=1200, scheme="light", address=""):
        set_screen(browser, width, scheme)
        browser.get("about:blank")
        browser.get((pages / f"{name}.html").as_uri() + address)
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


def column(page, k):
    return texts(page, f"#group-table tbody td:nth-child({k})")


def numbers(page, k):
    return [float(t.replace("−", "-").replace(",", "")) for t in column(page, k) if t != "–"]


def is_visible(page, selector):
    return find(page, selector).is_displayed()


@pytest.mark.parametrize("name", ["grouped", "list", "odd", "many", "flat"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_draws_without_errors_and_without_network(open_page, name, scheme):
    page = open_page(name, scheme=scheme)
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    drawn = page.execute_script("return document.querySelectorAll('figure svg *').length")
    assert drawn > 40
    unnamed = "svg:not([role=img]), svg:not([aria-label])"
    assert page.find_elements("css selector", unnamed) == []


def test_policy_keeps_out_what_others_would_load_or_run(browser, open_page):
    page = open_page("grouped")
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


def test_column_heads_sort_and_say_so(open_page):
    page = open_page("grouped")
    assert numbers(page, 2) == sorted(numbers(page, 2))
    heads = page.find_elements("css selector", "#group-table th")
    assert [head.get_attribute("aria-sort") for head in heads].count("ascending") == 1
    heads[5].find_element("css selector", "button").click()
    assert heads[5].get_attribute("aria-sort") == "descending"
    assert numbers(page, 6) == sorted(numbers(page, 6), reverse=True)
    heads[5].find_element("css selector", "button").click()
    assert heads[5].get_attribute("aria-sort") == "ascending"
    assert numbers(page, 6) == sorted(numbers(page, 6))


def test_column_heads_sort_by_keyboard(open_page):
    page = open_page("grouped")
    button = find(page, "#group-table th:first-child button")
    button.send_keys("\ue007")  # Enter
    assert column(page, 1) == sorted(column(page, 1), key=int)
    button.send_keys(" ")
    assert column(page, 1) == sorted(column(page, 1), key=int, reverse=True)


def test_groups_without_a_value_stay_last(open_page):
    page = open_page("many")
    head = find(page, "#group-table th:nth-child(2) button")
    for _ in range(2):
        head.click()
        values = page.execute_script("return groupTable.rows.map((g) => data.groups.values[0][g])")
        known = [value for value in values if value is not None]
        assert None not in values[: len(known)]
        assert len(known) < len(values)


def test_choosing_a_metric_brings_its_worst_groups_up(open_page):
    page = open_page("grouped")
    find(page, "#metric option:nth-child(3)").click()
    assert numbers(page, 4) == sorted(numbers(page, 4), reverse=True)
    assert (
        find(page, "#group-histogram svg")
        .get_attribute("aria-label")
        .startswith("Histogram of Disagreement")
    )


def test_filter_shows_matching_groups(open_page):
    page = open_page("many")
    find(page, "#filter").send_keys("29")
    assert set(column(page, 1)) == {str(g) for g in range(300) if "29" in str(g)}
    assert find(page, "#group-count").text == "13 of 300 groups match"
    find(page, "#filter").send_keys("zzz")
    assert column(page, 1) == []


def test_more_groups_come_on_demand(open_page):
    page = open_page("many")
    assert len(column(page, 1)) == 25
    find(page, "#more-groups").click()
    assert len(column(page, 1)) == 225
    find(page, "#more-groups").click()
    assert len(column(page, 1)) == 300
    assert not is_visible(page, "#more-groups")


def test_choosing_a_group_shows_its_items_and_keeps_the_address(open_page):
    page = open_page("grouped")
    row = page.find_elements("css selector", "#group-table tbody tr")[3]
    name, size = (row.find_elements("css selector", "td")[k].text for k in (0, 5))
    row.find_element("css selector", "button").click()
    assert len(texts(page, "#item-table tbody tr")) == int(size)
    assert len(page.find_elements("css selector", "#slope g.item")) == int(size)
    assert len(texts(page, "#contribution-table tbody tr")) == int(size)
    assert find(page, "#item-count").text.startswith(f"{size} items")
    assert page.current_url.endswith(f"#group={name}")
    assert row.get_attribute("class") == "chosen"
    again = open_page("grouped", address=f"#group={name}")
    assert find(again, "#group option:checked").text == name


def test_select_box_and_arrows_choose_groups(open_page):
    page = open_page("grouped")
    order = column(page, 1)
    assert find(page, "#group option:checked").text == order[0]
    find(page, "#next-group").click()
    assert find(page, "#group option:checked").text == order[1]
    find(page, "#previous-group").click()
    find(page, "#previous-group").click()
    assert find(page, "#group option:checked").text == order[-1]
    find(page, f"#group option[value='{page.execute_script('return groupTable.rows[4]')}']").click()
    assert page.current_url.endswith(f"#group={order[4]}")


def test_the_way_back_leads_to_the_group_before(open_page):
    page = open_page("grouped")
    order = column(page, 1)
    chosen = lambda: find(page, "#group option:checked").text  # noqa: E731
    for k in (3, 5):
        page.find_elements("css selector", "#group-table tbody button")[k].click()
    find(page, "nav a[href='#margins']").click()
    assert chosen() == order[5]
    for expected in (order[5], order[3], order[0]):
        page.back()
        page.execute_async_script("setTimeout(arguments[0], 50)")
        assert chosen() == expected


def test_equally_predicted_items_are_shaded(open_page):
    page = open_page("tied")
    runs = page.execute_script("return tiedRuns(chosenItems().predicted)")
    assert [last - first + 1 for first, last in runs] == [4, 6]
    assert len(page.find_elements("css selector", "#slope rect.level[x='0']")) == 2
    assert is_visible(page, "#tie-legend")
    find(page, "#next-group").click()
    assert not is_visible(page, "#tie-legend")
    assert page.find_elements("css selector", "#slope rect.level[x='0']") == []


@pytest.mark.parametrize("size", ["huge", "tiny"])
def test_numbers_of_any_size_stay_short_and_differ_from_zero(open_page, size):
    page = open_page(size)
    cells = texts(page, "#contribution-table td:not(.name), #feature-table td:not(.name)")
    assert max(map(len, cells)) < 12
    assert sum("e" in cell for cell in cells) > len(cells) / 2


def test_long_names_that_differ_at_the_end_can_be_told_apart(open_page):
    page = open_page("long")
    assert len(set(texts(page, "#slope g.item text:first-of-type"))) == 20
    boxes = page.execute_script("""
      return [...document.querySelectorAll("#group-table td.name button")].map(
        (node) => [node.scrollWidth - node.clientWidth, node.offsetHeight]);""")
    assert all(cut <= 0 and height > 30 for cut, height in boxes)


@pytest.mark.parametrize("name", ["grouped", "list", "long"])
@pytest.mark.parametrize("width", [360, 1200])
def test_no_label_of_a_drawing_leaves_the_page(open_page, name, width):
    page = open_page(name, width=width)
    outside = page.execute_script("""
      return [...document.querySelectorAll("figure svg text")].filter((node) => {
        const box = node.getBoundingClientRect();
        return box.left < -1 || box.right > document.documentElement.clientWidth + 1;
      }).map((node) => node.textContent);""")
    assert outside == []


def test_an_address_of_no_group_is_harmless(open_page):
    for address in ("#group=nothing", "#group=%E0%A4%A", "#margins"):
        page = open_page("grouped", address=address)
        assert find(page, "#group option:checked").text == column(page, 1)[0]


def test_lines_of_the_slope_cross_where_pairs_are_wrong(open_page):
    page = open_page("grouped")
    crossing = """
      const { predictedY, trueY } = slopeFrame(chosenItems(), 900);
      let count = 0;
      for (let i = 0; i < trueY.length; i += 1)
        for (let j = 0; j < i; j += 1)
          if ((predictedY[i] - predictedY[j]) * (trueY[i] - trueY[j]) < 0) count += 1;
      return [count, chosenItems().tooHigh.reduce((a, b) => a + b, 0)];
    """
    seen = set()
    for _ in column(page, 1):
        crossings, wrong = page.execute_script(crossing)
        assert crossings == wrong
        seen.add(wrong)
        find(page, "#next-group").click()
    assert len(seen) > 1


def test_pointing_at_a_row_marks_its_line(open_page):
    from selenium.webdriver import ActionChains

    page = open_page("grouped")
    row = find(page, "#item-table tbody tr:nth-child(2)")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", row)
    ActionChains(page).move_to_element(row).perform()
    marked = page.find_elements("css selector", "#slope g.hot")
    assert [node.get_attribute("data-item") for node in marked] == [row.get_attribute("data-item")]
    assert "predicted rank" in find(page, "#slope figcaption").text


def test_button_changes_between_light_and_dark(open_page):
    page = open_page("grouped")
    color = lambda: find(page, "body").value_of_css_property("background-color")  # noqa: E731
    light = color()
    button = find(page, "#theme")
    assert (button.text, button.get_attribute("aria-pressed")) == ("Dark", "false")
    button.click()
    assert color() != light
    assert (button.text, button.get_attribute("aria-pressed")) == ("Light", "true")
    button.click()
    assert color() == light
    dark = open_page("grouped", scheme="dark")
    assert find(dark, "body").value_of_css_property("background-color") != light


@pytest.mark.parametrize("name", ["grouped", "list", "odd", "many"])
@pytest.mark.parametrize("width", [360, 768])
def test_narrow_screens_need_no_sideways_scrolling(open_page, name, width):
    page = open_page(name, width=width)
    wide, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert inner == width
    assert wide <= inner


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["grouped", "list"])
def test_text_stands_out_from_its_background(open_page, name, scheme):
    assert open_page(name, scheme=scheme).execute_script(CONTRASTS) == []


def test_controls_have_names_and_headings_are_in_order(open_page):
    page = open_page("grouped")
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
    names = page.execute_script("return data.groups.names")
    assert set(column(page, 1)) == set(names)
    assert HOSTILE in names
    for name in names:
        row = names.index(name)
        find(page, f"#group-table tr[data-group='{row}'] button").click()
        again = page.execute_script("return [state.group, groupOfAddress()]")
        assert again == [row, row]
    assert HOSTILE in texts(page, "#item-table tbody td.name")
    assert HOSTILE in texts(page, "#feature-table td.name")


def test_one_list_has_no_table_of_groups(open_page):
    page = open_page("list")
    assert not is_visible(page, "#groups")
    assert not is_visible(page, "#group")
    assert not is_visible(page, "#feature-box")
    assert len(page.find_elements("css selector", "#slope g.item")) == 200


def test_charts_follow_the_width_of_the_window(open_page, browser):
    page = open_page("grouped")
    width = lambda: int(find(page, "#curve svg").get_attribute("width"))  # noqa: E731
    before = width()
    size = {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 100))"
    )
    assert width() < before
