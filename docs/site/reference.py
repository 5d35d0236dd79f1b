"""Checks the reference of the built site. Pages begin with the description, and list inherited members and no deleted
ones. They follow the scheme of the site, and are in the search index. The home page has version, repository and licence.

usage: reference.py SITE
"""

import json
import re
import sys
from pathlib import Path

# A row of a table of members. Rows that the page folds away have a further class, "inherit".
MEMBER = re.compile(r'<tr class="memitem:\w+">(.*?)</tr>', re.S)
TAG = re.compile(r"<[^>]*>")
# By page: members of base classes.
INHERITED = {"classhwt_1_1HashedWheelTimer.html": ("new_timeout", "stop", "stats", "pending_timeouts"),
             "classhwt_1_1HierarchicalWheelTimer.html": ("new_timeout", "stop", "stats"),
             "classhwt_1_1ManualTimer.html": ("new_timeout", "try_new_timeout")}
# A class of another project that links to one of ours.
THEIRS = re.compile(r"\b(?:Netty|Dubbo|Kafka|Asio|Java|folly|libuv)'s <a [^>]*>[^<]*")
FIRST, LATER = ("index.html", "docs/guide.html"), ("docs/design.html", "CHANGELOG.html")


def faults(site):
    pages = {path.name: path.read_text(encoding="utf-8") for path in sorted((site / "api").glob("*.html"))}
    members = {name: [TAG.sub("", row) for row in MEMBER.findall(text)] for name, text in pages.items()}
    for name, inherited in INHERITED.items():
        for member in inherited:
            if not any(re.search(rf"\b{member}\s*\(", row) for row in members.get(name, [])):
                yield f"api/{name}: does not list the inherited member {member}()"
    for name, rows in members.items():
        if deleted := [row for row in rows if re.search(r"=\s*delete\b", row)]:
            yield f"api/{name}: lists a deleted function: {' '.join(deleted[0].split())}"
    for name, text in pages.items():
        if "/reference.js" not in text:
            yield f"api/{name}: does not take the scheme of the pages"
        if theirs := THEIRS.search(text):
            yield f"api/{name}: {TAG.sub('', theirs[0])} is a link"
        if "__builtin_FILE" in text and not re.search("_source|Terms", name):
            yield f"api/{name}: shows the place of a call as a default"
        if 0 <= text.find('class="memberdecls"') < text.find('id="details"') and not name.endswith("_8h.html"):
            yield f"api/{name}: lists members before the description"
    home = (site / "index.html").read_text(encoding="utf-8")
    if not re.search(r"Version \d+\.\d+\.\d+ .*repository.*Apache License", home):
        yield "index.html: has no line with version, repository and licence"

    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    found = {entry["location"]: entry for entry in entries}
    for name in pages:
        if re.fullmatch(r"(class|struct)(?!.*-members).*\.html", name) and f"api/{name}" not in found:
            yield f"api/{name}: is not in the search"
    if not any(entry["title"] == "hwt::KeyedTimer::set()" and "lets it expire" in entry["text"] for entry in entries):
        yield "KeyedTimer::set() and its description are not in the search"
    for location in found:
        page = location.partition("#")[0]
        if page.startswith("api/") and not (site / page).exists():
            yield f"{location}: is in the search, but there is no such page"
    ranks = {page: found.get(page, {}).get("boost", 1) for page in FIRST + LATER}
    if min(ranks[page] for page in FIRST) <= max(ranks[page] for page in LATER):
        yield f"the search does not rank the guide before design and changelog: {ranks}"


def main(folder):
    found = list(faults(Path(folder).resolve()))
    for fault in found:
        print(fault)
    print(f"{len(found)} faults in the reference")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
