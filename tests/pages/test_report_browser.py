"""The report page in a real browser: it draws, sorts and chooses.

What holds for every page is in test_pages_browser. Skipped where selenium, Chromium or its driver
are missing; `make test-browser` installs them and sets RANKWISE_BROWSER=required, so that nothing
is skipped there.
"""

from __future__ import annotations

import pytest

from rankwise.report import report
from tests.browser import find, set_screen, texts
from tests.pages.data import HOSTILE_TITLE


def column(page, k):
    return texts(page, f"#group-table tbody td:nth-child({k})")


def numbers(page, k):
    return [float(t.replace("−", "-").replace(",", "")) for t in column(page, k) if t != "–"]


def is_visible(page, selector):
    return find(page, selector).is_displayed()


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


def test_scores_of_a_group_have_the_same_decimals(open_page):
    page = open_page("grouped")
    scores = texts(page, "#item-table tbody td:nth-child(3)")
    assert len({len(score.partition(".")[2]) for score in scores}) == 1


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
    assert len(column(page, 1)) == 200
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
      return [count, chosenItems().betterBelow.reduce((a, b) => a + b, 0)];
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


def test_hostile_and_odd_names_are_shown_as_text(open_page):
    page = open_page("odd")
    names = page.execute_script("return data.groups.names")
    assert set(column(page, 1)) == set(names)
    assert HOSTILE_TITLE in names
    for name in names:
        row = names.index(name)
        find(page, f"#group-table tr[data-group='{row}'] button").click()
        again = page.execute_script("return [state.group, groupOfAddress()]")
        assert again == [row, row]
    assert HOSTILE_TITLE in texts(page, "#item-table tbody td.name")
    assert HOSTILE_TITLE in texts(page, "#feature-table td.name")


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


def test_a_notebook_shows_a_page_that_works(browser, tmp_path):
    page = report([3.0, 1.0, 2.0, 1.0, 2.0], None, [2, 0, 1, 1, 0], [0, 0, 0, 1, 1], metrics="tau")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{page._repr_html_()}", encoding="utf-8")
    set_screen(browser)
    browser.get(path.as_uri())
    browser.switch_to.frame(0)
    chosen = find(browser, "#group option:checked").text
    browser.execute_script("document.getElementById('next-group').click()")
    assert find(browser, "#group option:checked").text != chosen
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []
