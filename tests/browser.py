"""A real Chromium for tests of pages.

Skipped where selenium, Chromium or its driver are missing; `make test-browser` installs them and
sets RANKWISE_BROWSER=required, so that nothing is skipped there.
"""

from __future__ import annotations

import os
import shutil

import pytest

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1200,900",
]

#: A script that lists texts of too little contrast with what is behind them (WCAG: 4.5).
CONTRASTS = r"""
const parse = (text) => {
  const numbers = text.match(/[\d.]+/g).map(Number);
  if (text.startsWith("color(")) numbers.splice(0, 3, ...numbers.slice(0, 3).map((n) => 255 * n));
  return numbers.length > 3 ? numbers : [...numbers, 1];
};
const over = (top, below) =>
  [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
const backgroundOf = (node) => {
  if (!node) return [255, 255, 255, 1];
  const own = parse(getComputedStyle(node).backgroundColor);
  return own[3] === 1 ? own : over(own, backgroundOf(node.parentElement));
};
const luminance = (color) => {
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = color.slice(0, 3).map((c) => linear(c / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const low = [];
for (const node of document.querySelectorAll("body *")) {
  const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const isHidden = !node.getClientRects().length || node.matches("script, style, option, title");
  if (!hasText || isHidden) continue;
  const style = getComputedStyle(node);
  const below = backgroundOf(node);
  const color = over(parse(node.namespaceURI.endsWith("svg") ? style.fill : style.color), below);
  const [light, dark] = [luminance(color), luminance(below)].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  if (ratio < 4.5) low.push(`${node.tagName} ${node.textContent}: ${ratio.toFixed(2)}`);
}
return low;
"""


def missing(reason):
    if os.environ.get("RANKWISE_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def find_programs():
    browsers = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, browsers)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        missing("Chromium or chromedriver is not installed; make test-browser installs both")
    return browser, driver


def start_browser(profile):
    """Return a driver; `profile` is an empty folder."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing("selenium is not installed: pip install 'rankwise[test]'")
    program, driver_program = find_programs()
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver_program))


def set_screen(driver, width=1200, scheme="light"):
    """Size of the window and scheme of colors; a width below 600 is a phone."""
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},  # clicks need a page at rest
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def find(page, selector):
    return page.find_element("css selector", selector)


def texts(page, selector):
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)",
        selector,
    )


def wait_for(page, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(page, 60).until(lambda _: condition())
