"""Hooks of mkdocs: the pages of the site, and the targets of their links.

Pages keep their paths in the repository, so that links between them work in both places. A link to a public header
leads to its page in the reference, which Doxygen writes to $HWT_BUILD/api. A link to another text leads to a page with
that text, and a link to a folder to its README.md or to a list of its files. The search index includes the reference.
"""

import html
import os
import posixpath
import re
import shutil
import xml.etree.ElementTree
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[2]
API = Path(os.environ["HWT_BUILD"]) / "api"
API_XML = Path(os.environ["HWT_BUILD"]) / "api-xml"
PAGES = ["*.md", "docs/*.md", "docs/examples/**/*.md", "docs/monitoring/*.md", "perf/*.md"]
PICTURES = ["docs/**/*.svg"]
HEADERS = ["hashed_wheel_timer/*.h"]
# Files that become pages. Other files are copied.
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "sh", ".proto": "protobuf", "": "text"}
CODE = """---
search:
  exclude: true
---
# {path}

````{language}
{text}````
"""
LINK = re.compile(r"(?<=\]\()[^)\s#:]+(?=[)#])")
# The search multiplies the score of a page by its rank. The default is 1, and 2 for a class of the reference.
RANKS = {"README.md": 4, "docs/guide.md": 4, "README.zh-CN.md": 0.5, "docs/guide.zh-CN.md": 0.5, "docs/design.md": 0.2,
         "docs/decisions.md": 0.2, "docs/verification.md": 0.1, "docs/performance.md": 0.5, "perf/README.md": 0.2,
         "CONTRIBUTING.md": 0.2, "CHANGELOG.md": 0.1, "hwt::Timer": 4, "hwt::Timeout": 4, "hwt::net": 1}
# The script applies the light or dark scheme that the reader chose on any page.
SCHEME = '<script src="../reference.js"></script>\n</head>'
# Follows the title of the home page.
FACTS = """
Version {version} | repository: `<the URL of this repository>` | [Apache License 2.0](LICENSE)
"""
# A script of the theme that runs the search without a server. Each page would fetch it from another server, so
# on_post_page() puts worker_in_file.js in its place.
SHIM = re.compile(r"https://[^\s\"']+/iframe-worker/shim")


def found(patterns):
    return sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)})


def on_files(files, config):
    def add(path, **options):
        if files.get_file_from_path(path) is None:
            if "content" not in options:
                options["abs_src_path"] = str(ROOT / path)
            files.append(File.generated(config, path, **options))

    for path in found(PAGES + PICTURES):
        add(path)
    for path in found(HEADERS):
        name = Path(path).name.replace("_", "__").replace(".", "_8") + ".html"
        files.append(File.generated(config, path, abs_src_path=str(API / name)))
        files.get_file_from_path(path).dest_uri = files.get_file_from_path(path).url = f"api/{name}"
    examples = next(section["Examples"] for section in config.nav if "Examples" in section)
    examples += [*found(["docs/examples/README.md"]), *found(["docs/examples/*/README.md"])]
    pages = [(file.src_uri, file.content_string) for file in files if file.is_documentation_page()]
    for target in sorted({target_of(page, link) for page, text in pages for link in LINK.findall(text)}):
        if files.get_file_from_path(target) is None:
            add_linked(target, add)
    return files


def target_of(page, link):
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def add_linked(path, add):
    """Adds a file or folder that is not a page of the site."""
    place = ROOT / path
    if place.is_dir() and not (place / "README.md").exists():
        inside = sorted(file.name for file in place.iterdir() if file.is_file())
        for name in inside:
            add(f"{path}/{name}")
        names = "".join(f"- [{name}]({name})\n" for name in inside)
        add(f"{path}/README.md", content=f"# {path}\n\n{names}", inclusion=InclusionLevel.NOT_IN_NAV)
    elif place.is_file() and place.suffix in LANGUAGES:
        text = CODE.format(path=path, language=LANGUAGES[place.suffix], text=place.read_text(encoding="utf-8"))
        add(path + ".md", content=text, inclusion=InclusionLevel.NOT_IN_NAV)
    elif place.is_file():
        add(path)


def on_page_markdown(markdown, page, config, files):
    def resolved(match):
        target = target_of(page.file.src_uri, match[0])
        for suffix in ("", ".md", "/README.md"):
            if files.get_file_from_path(target + suffix) is not None:
                return match[0].rstrip("/") + suffix
        return match[0]

    rank = RANKS.get(page.file.src_uri)
    if rank is not None:
        page.meta["search"] = {"boost": rank}
    if page.file.src_uri == "README.md":
        title, rest = markdown.split("\n", 1)
        markdown = title + "\n" + FACTS.format(version=os.environ["HWT_VERSION"]) + rest
    return LINK.sub(resolved, markdown)


def on_env(env, config, files):
    config.plugins["material/search"].search_index.entries += reference_entries()
    return env


def reference_entries():
    """Yields entries of the search index: classes, public members and functions, with their descriptions."""
    for path in sorted(API_XML.glob("*.xml")):
        compound = xml.etree.ElementTree.parse(path).getroot().find("compounddef")
        page = f"{path.stem}.html"
        if not path.name.startswith(("class", "struct", "namespace")) or not (API / page).exists():
            continue
        name = compound.findtext("compoundname")
        rank = RANKS.get(name, 2)
        yield reference_entry(f"api/{page}", name, compound, rank)
        for member in compound.iterfind("sectiondef/memberdef[@prot='public']"):
            owner, _, anchor = member.get("id").rpartition("_1")
            if owner == path.stem:  # otherwise inherited
                call = "()" if member.get("kind") == "function" else ""
                title = f"{name}::{member.findtext('name')}{call}"
                yield reference_entry(f"api/{page}#{anchor}", title, member, rank)


def reference_entry(location, title, element, rank):
    parts = [element.find("briefdescription"), element.find("detaileddescription")]
    text = " ".join(" ".join(part.itertext()) for part in parts if part is not None)
    return {"location": location, "title": title, "text": html.escape(" ".join(text.split())), "boost": rank}


def on_post_page(output, page, config):
    return SHIM.sub(get_relative_url("worker_in_file.js", page.url), output)


def on_post_build(config):
    site = Path(config.site_dir)
    shutil.copytree(API, site / "api", dirs_exist_ok=True)
    for path in (site / "api").glob("*.html"):
        text = path.read_text(encoding="utf-8").replace("</head>", SCHEME, 1)
        path.write_text(text.replace("terms={}", "terms = {}"), encoding="utf-8")
    (site / "404.html").unlink()  # its absolute links need a server whose root is the site
