"""The monitor's page in headless Chromium, and capibara top on a terminal: selenium and pyte, from build/venv-operate."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = os.environ.get("CAPIBARA_COMMAND") or str(BUILD / "capibara")
PYTHON = ROOT / "build" / "venv-operate" / "bin" / "python"

# A training run of 100 steps per second that raises an alert; its button takes profiles.
TRAINING = """
import time
import capibara.jax as jax, capibara.jax.numpy as jnp
from capibara.core.tpu import TPUMonitor
monitor = TPUMonitor(0.2, enable_prometheus=True, prometheus_port=0)
monitor.set_alert("steps", ">", 3, lambda: None)
monitor.start()
step = jax.jit(lambda x: x @ x / 64)
x = jnp.ones((64, 64))
print(monitor.link, flush=True)
while True:
    x = step(x)
    monitor.step(loss=x[0, 0], tokens=64)
    time.sleep(0.01)
"""

BROWSER = """
import json, sys, time
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.chrome.service import Service
options = webdriver.ChromeOptions()
options.binary_location = sys.argv[2]
words = "--headless=new --no-sandbox --disable-dev-shm-usage --disable-gpu --no-proxy-server --disable-background-networking"
for word in words.split():
    options.add_argument(word)
options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
driver = webdriver.Chrome(options=options, service=Service(sys.argv[3]))
answer = {}
def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)
def shown(name):
    cards = driver.find_elements(By.CSS_SELECTOR, ".card")
    return {c.find_element(By.CSS_SELECTOR, ".name").text: c for c in cards}.get(name)
try:
    # Without a token the page asks for one; a wrong one is refused and asked for again.
    driver.get(sys.argv[1].split("#")[0])
    button, said = driver.find_element(By.ID, "capture"), driver.find_element(By.ID, "captured")
    until(button.is_displayed)
    button.click()
    driver.switch_to.alert.send_keys("0" * 64)
    driver.switch_to.alert.accept()
    until(lambda: "expected the token" in said.text)
    until(button.is_enabled)
    button.click()
    driver.switch_to.alert.dismiss()
    driver.get_log("browser")  # the refusal is an error of the console
    driver.get(sys.argv[1])  # the page that is there takes it, and holds it when it is loaded again
    until(lambda: driver.current_url == sys.argv[1].split("#")[0])
    driver.refresh()
    answer["address"] = driver.current_url
    until(lambda: shown("steps per second") is not None)
    points = lambda: (shown("steps").find_element(By.TAG_NAME, "polyline").get_attribute("points") or "").split()
    until(lambda: len(points()) >= 3)
    answer["heights"] = [float(point.split(",")[1]) for point in points()[:3]]
    until(lambda: "steps > 3" in driver.find_element(By.ID, "alerts").text)
    until(lambda: driver.find_element(By.ID, "capture").is_displayed())
    driver.find_element(By.ID, "capture").click()
    until(lambda: ".pb" in driver.find_element(By.ID, "captured").text)
    answer["captured"] = driver.find_element(By.ID, "captured").text
    for width in (400, 1400):
        driver.set_window_size(width, 900)
        time.sleep(0.5)
        page = "document.documentElement"
        answer[f"overflow{width}"] = driver.execute_script(f"return {page}.scrollWidth - {page}.clientWidth")
    answer["console"] = [entry["message"] for entry in driver.get_log("browser")]
    urls = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.append(message["params"]["request"]["url"])
    answer["elsewhere"] = [url for url in urls if not url.startswith(("http://127.0.0.1:", "data:"))]
finally:
    driver.quit()
print(json.dumps(answer))
"""

SCREEN = """
import os, pty, select, sys, time
import pyte
screen = pyte.Screen(110, 40)
stream = pyte.ByteStream(screen)
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "top", sys.argv[2]])
end = time.monotonic() + 60
seen = []
# Two screens, the second to its last line.
while time.monotonic() < end and (len(set(seen)) < 2 or not any(line.startswith("ALERT") for line in screen.display)):
    if select.select([terminal], [], [], 0.2)[0]:
        stream.feed(os.read(terminal, 65536))
    for line in screen.display:
        words = line.split()
        if words[:1] == ["steps"]:
            seen.append(words[1])
os.kill(child, 9)
print("\\n".join(line.rstrip() for line in screen.display))
print("STEPS", *sorted(set(seen), key=float))
"""


def need(module):
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
        pytest.skip(f"{module} is not installed (build/venv-operate)")


@pytest.fixture
def training(tmp_path):
    started = subprocess.Popen([sys.executable, "-c", TRAINING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "CAPIBARA_PROFILE_FOLDER": str(tmp_path)})
    link = started.stdout.readline().strip()
    assert link, started.stderr.read()
    yield link
    started.kill()
    started.wait()


def port_of(link):
    return re.match(r"http://127.0.0.1:(\d+)/#", link)[1]


def is_profile_of_training(path):
    """True if the file that the button names shows the training program."""
    from capibara.jax.profiler import ProfileData
    names = {event.name for plane in ProfileData.from_file(path).planes for line in plane.lines for event in line.events}
    return any("dot_general" in name for name in names)


def test_the_page_in_a_browser(training):
    need("selenium")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("chromium and chromium-driver are not installed")
    done = subprocess.run([PYTHON, "-c", BROWSER, training, browser, driver], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["heights"] == sorted(answer["heights"], reverse=True)  # steps grow: the curve rises
    assert is_profile_of_training(answer["captured"])
    assert answer["overflow400"] <= 0 and answer["overflow1400"] <= 0
    assert answer["address"] == training.split("#")[0]  # the token is removed from the address bar
    assert answer["console"] == [] and answer["elsewhere"] == []


def test_top_draws_a_screen_that_changes(training):
    need("pyte")
    done = subprocess.run([PYTHON, "-c", SCREEN, COMMAND, port_of(training)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    *screen, steps = done.stdout.splitlines()
    assert len(steps.split()) >= 3, done.stdout  # STEPS and two numbers
    text = "\n".join(screen)
    assert "loss" in text and "queue_depth" in text and "ALERT steps > 3" in text


def test_the_button_needs_the_token_of_the_link(training):
    page, token = training.split("#")

    def post(**headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(page + "capture", data=b"", headers=headers), timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    assert post()[0] == 403
    status, answer = post(**{"X-Capibara-Token": token})
    assert status == 200 and is_profile_of_training(answer["profile"]), answer
