# SPDX-License-Identifier: Apache-2.0
"""Pages of `shardwright plan --html` in a headless browser: nothing overflows, everything is there and reachable.

The page is put into frames of several widths, whose document a small script measures; the browser prints what the script
found. SHW_SCREENSHOTS=DIR keeps pictures of the pages.
"""
import functools
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["SHW_SOURCE_DIR"])
PROGRAM = pathlib.Path(os.environ["SHW_BUILD_DIR"], "bin", "shardwright")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EXAMPLES = ["fsdp", "hsdp", "moe", "tp_pp_dp"]
WIDTHS = [360, 768, 1280]
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium on this machine")

MEASURE = """
<script>
addEventListener('load', () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const outside = [...page.querySelectorAll('body *')].filter(e => {
      if (e.closest('.scroll') || e.closest('details:not([open])') || e.closest('svg')) return false;
      const box = e.getBoundingClientRect();
      return box.width > 0 && (box.right > root.clientWidth + 1 || box.left < -1);
    }).map(e => e.tagName + '.' + e.className);
    const style = frame.contentWindow.getComputedStyle(page.body);
    const empty = [...page.querySelectorAll('svg rect')].filter(e => !(e.width.baseVal.value > 0)).length;
    return {width: frame.width, scroll: root.scrollWidth, client: root.clientWidth, outside: outside.slice(0, 5),
      background: style.backgroundColor, ink: style.color, empty,
      cells: page.querySelectorAll('svg.cells rect').length, bars: page.querySelectorAll('.chart svg rect').length,
      focusable: [...page.querySelectorAll('a[href], summary, [tabindex="0"]')].length,
      unnamed: [...page.querySelectorAll('svg[role=img]')].filter(
        e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).length,
      broken: [...page.querySelectorAll('[aria-labelledby]')].filter(
        e => !page.getElementById(e.getAttribute('aria-labelledby'))).length,
      anchors: [...page.querySelectorAll('nav a')].filter(a => !page.querySelector(a.getAttribute('href'))).length,
      requests: frame.contentWindow.performance.getEntriesByType('resource').length};
  });
  document.title = JSON.stringify(found);
});
</script>
"""


def browse(*arguments):
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
               *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


@pytest.fixture(scope="module", params=EXAMPLES)
def page(request, tmp_path_factory):
    """A page as a file."""
    path = tmp_path_factory.mktemp(request.param) / "page.html"
    subprocess.run([PROGRAM, "plan", "save", SOURCE / "examples" / "meshes" / f"{request.param}.json", "--bandwidth", "2GB",
                    "--html", path], check=True, capture_output=True)
    return path


@functools.cache
def measured(page, *arguments):
    frames = [f'<iframe width="{width}" height="900" srcdoc="{html.escape(page.read_text())}"></iframe>' for width in WIDTHS]
    harness = page.with_name("harness.html")
    harness.write_text("<!doctype html><meta charset=utf-8><title>-</title>" + "".join(frames) + MEASURE)
    dump = browse("--dump-dom", *arguments, harness.as_uri())
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dump, re.S)[1]))


def luminance(colour):
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_nothing_leaves_the_page_at_any_width(page):
    for found in measured(page):
        assert found["scroll"] <= found["client"], found
        assert found["outside"] == [], found


def test_pictures_and_bars_are_drawn_and_named(page):
    for found in measured(page):
        assert found["cells"] >= 8 and found["bars"] >= 64 and found["empty"] == 0, found
        assert found["unnamed"] == 0 and found["broken"] == 0, found
        assert found["anchors"] == 0, "a link of the navigation leads nowhere"
        assert found["requests"] == 0, "the page loaded something from elsewhere"


def test_everything_is_reachable_by_keyboard(page):
    text = page.read_text()
    wanted = text.count("<figure") + text.count("<summary>") + text.count("<a href") + text.count('class="scroll"')
    for found in measured(page):
        assert found["focusable"] == wanted, found


def test_dark_and_light_follow_the_system(page):
    light = measured(page, "--blink-settings=preferredColorScheme=1")[0]
    dark = measured(page, "--blink-settings=preferredColorScheme=0")[0]
    assert luminance(light["background"]) > 600 > 300 > luminance(light["ink"]), light
    assert luminance(dark["background"]) < 200 < 600 < luminance(dark["ink"]), dark


def test_the_markup_is_balanced(page):
    class Balance(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids = [], []

        def handle_starttag(self, tag, attrs):
            self.ids += [value for key, value in attrs if key == "id"]
            if tag not in ("meta",):
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            assert self.open.pop() == tag, (tag, self.getpos())

    parser = Balance()
    parser.feed(page.read_text())
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids)), "an id stands twice"


def test_a_screenshot_has_more_than_one_colour(page, tmp_path):
    folder = pathlib.Path(os.environ.get("SHW_SCREENSHOTS", tmp_path))
    target = folder / f"{page.parent.name}.png"
    browse("--window-size=1200,2400", f"--screenshot={target}", page.as_uri())
    assert target.stat().st_size > 20_000, "an empty page compresses to less"
