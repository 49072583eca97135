"""The report of `capibara plan` in a browser: nothing fetched, an empty console, readable in light and dark, narrow and wide."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")
ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("chromium and its driver are not installed (apt install chromium chromium-driver)", allow_module_level=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "plan.html"
    words = ["--model", "llama3.1-8b", "--tpu", "v5p-128", "--seq", "4096", "--search", "--html", str(path)]
    subprocess.run([COMMAND, "plan", *words], check=True, capture_output=True, timeout=300)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", profile):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


def contrast(driver):
    """The contrast of the text on its background, as defined by WCAG."""
    return driver.execute_script("""
        const numbers = text => text.match(/[\\d.]+/g).map(Number);
        const lightness = color => color.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const probe = document.createElement('div');
        probe.style.cssText = 'background: Canvas; color: CanvasText';
        document.body.append(probe);
        const paper = lightness(numbers(getComputedStyle(probe).backgroundColor));
        probe.remove();
        return [...document.querySelectorAll('h1, h2, td, th, p, text')].map(element => {
            const style = getComputedStyle(element);
            const ink = lightness(numbers(element.tagName === 'text' ? style.fill : style.color));
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        });""")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_shows_whole(browser, page, scheme, width):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    asked = [entry["message"] for entry in browser.get_log("performance") if '"Network.requestWillBeSent"' in entry["message"]]
    assert all("file://" in message and "http" not in message.split('"url":"')[1].split('"')[0] for message in asked), asked
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.querySelectorAll('svg').length") == 5
    widths = browser.execute_script("return [...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().width)")
    assert all(250 < drawn <= width for drawn in widths), widths
    assert min(contrast(browser)) >= 4.5
