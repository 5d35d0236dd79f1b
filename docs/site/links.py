"""Checks the built site: every link and anchor has a target, and no page needs a network.

usage: links.py SITE
"""

import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

LINKS = {("a", "href"), ("area", "href")}
PARTS = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("object", "data"), ("source", "src")}


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.places = {"", "top", "__top"}
        self.links = []  # line, link, whether it is a part of the page
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.places.add(value)
            elif value and (tag, name) in LINKS | PARTS:
                self.links.append((self.getpos()[0], value, (tag, name) in PARTS))


def dead_links(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for line, link, is_part in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                if is_part and url.scheme not in ("data", "javascript"):
                    yield path, line, f"{link} is fetched when the page is viewed"
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if target.is_dir():
                yield path, line, f"{link} is a folder, which only a server shows"
            elif not target.is_relative_to(site) or not target.exists():
                yield path, line, f"there is no {link}"
            elif target in pages and urllib.parse.unquote(url.fragment) not in pages[target].places:
                yield path, line, f"there is no such place: {link}"


def main(folder):
    site = Path(folder).resolve()
    pages = len(list(site.rglob("*.html")))
    dead = list(dead_links(site))
    for path, line, what in dead:
        print(f"{path.relative_to(site)}:{line}: {what}")
    print(f"{len(dead)} dead links in {pages} pages")
    return bool(dead) or not pages


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
