"""Loads each page of the built site in Chromium, at two widths and in both schemes.

Nothing may be cut off or reach beyond the window, and code may not need to scroll in the wide one. No page may have an
error or use the network. The search must find the words of WORDS. The script plants each fault first.

usage: browser.py SITE
"""

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
WIDTHS = (1280, 390)
SCHEMES = {"light": "default", "dark": "slate"}
WORDS = ("periodic", "interval", "cron", "debounce", "throttle", "keep-alive", "idle timeout", "retry with backoff",
         "deadline", "watchdog")
# Returns elements whose content is wider than they are, although neither they nor an element around them scroll. Code
# in the wide window may not scroll either. Inline code has two pixels of padding at each end of a line. Not looked at:
# closed menus, the title that ends in dots, and the frame of tables that scroll up to the edge.
CUT_OFF = """() => {
  const scrolls = e => e.localName != "html" && /auto|scroll/.test(getComputedStyle(e).overflowX)
  const inScrolling = e => e && (scrolls(e) || inScrolling(e.parentElement))
  return [...document.querySelectorAll("html, body *")].filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 4
    && !(innerWidth > 1000 && e.matches("pre, code, .fragment") ? false : inScrolling(e))
    && !e.matches(".md-sidebar *, .main-menu-btn, .md-header__title, .md-header__title *, .md-content__inner")
  ).map(e => `${e.localName}.${e.className}: ${e.scrollWidth} px in ${e.clientWidth}: ${e.innerText.trim().slice(0, 60)}`)
}"""
SCHEME = "() => document.documentElement.dataset.scheme ?? document.body.dataset.mdColorScheme"
PLANTED = {
    "a wide block": "<pre style='overflow: hidden'>" + "wide " * 300,
    "a wide page": "<div style='width: 2000px'>wide",
    "code that scrolls": "<pre style='overflow: auto'>" + "wide " * 300,
    "an error on the console": "<script>console.error('planted')</script>",
    "an exception": "<script>throw new Error('planted')</script>",
    "a request": "<link rel='stylesheet' href='http://localhost/style.css'>",
    "a page without a scheme": "<script>delete document.documentElement.dataset.scheme</script>",
}


class Browser:
    """A browser whose user prefers one scheme."""

    def __init__(self, chromium, scheme):
        self.scheme = scheme
        self.page = chromium.new_page(color_scheme=scheme, reduced_motion="reduce", offline=True)
        self.errors = []
        self.page.on("console", lambda line: line.type == "error" and self.errors.append(line.text))
        self.page.on("pageerror", lambda error: self.errors.append(f"{error}"))
        self.page.on("request", lambda request: self.requested(request.url))

    def requested(self, url):
        if not url.startswith(("file:", "data:", "blob:", "about:")):
            self.errors.append(f"uses the network: {url}")

    def load(self, path):
        self.page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        self.page.goto(path.as_uri())

    def faults(self, path):
        self.errors.clear()
        self.load(path)
        if self.page.evaluate(SCHEME) != SCHEMES[self.scheme]:
            yield "has another scheme"
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            yield from (f"width {width}: {fault}" for fault in self.page.evaluate(CUT_OFF))
        yield from self.errors

    def finds(self, site, words):
        """Returns whether the first result of a search contains the words. The results come in parts."""
        self.load(site / "index.html")
        # The page loads the index when the field has the focus, and looks at the words when a key is released.
        field = self.page.locator("input[name=query]")
        field.focus()
        expect(self.page.locator(".md-search-result__meta")).to_have_text(re.compile("Type to start"), timeout=60_000)
        field.press_sequentially(words)
        first = self.page.locator(".md-search-result__item").first
        try:
            expect(first).to_contain_text(words, ignore_case=True, timeout=20_000)
        except AssertionError:
            return False
        return True


def unnoticed(browser, site):
    """Plants each fault in a page, and yields those that the checks do not find."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        for name, fault in {"": "<p>no fault", **PLANTED}.items():
            page.write_text(f"<!doctype html><html data-scheme='{SCHEMES[browser.scheme]}'>{fault}", encoding="utf-8")
            if any(browser.faults(page)) != bool(name):
                yield name or "no fault"
    if browser.finds(site, "sundial"):
        yield "a word that no page has"


def main(folder):
    site = Path(folder).resolve()
    pages = sorted(page for page in site.rglob("*.html") if page.parent.name != "search")  # those are frames
    found = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        for scheme in SCHEMES:
            browser = Browser(chromium, scheme)
            found += [f"judged wrongly when planted: {fault}" for fault in unnoticed(browser, site)]
            found += [f"{page.relative_to(site)}, {scheme}: {fault}" for page in pages for fault in browser.faults(page)]
            found += [f"the search does not find: {words}" for words in WORDS if not browser.finds(site, words)]
    for fault in found:
        print(fault)
    print(f"{len(found)} faults in {len(pages)} pages, at widths of {WIDTHS[0]} and {WIDTHS[1]}, light and dark")
    return bool(found) or not pages


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
