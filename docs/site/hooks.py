"""What mkdocs asks while it builds the site: which pages there are, and what a link of theirs leads to.

The pages keep the paths that they have in the repository, so that a link between them works there and here. A link to a
public header leads to its page in the reference, which Doxygen has put into $HWT_BUILD/api; one to another text to a
page with that text; one to a folder to its README.md or to a list of its files.
"""

import os
import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[2]
API = Path(os.environ["HWT_BUILD"]) / "api"
PAGES = ["*.md", "docs/*.md", "docs/examples/**/*.md", "docs/monitoring/*.md", "perf/*.md"]
PICTURES = ["docs/**/*.svg"]
HEADERS = ["hashed_wheel_timer/*.h"]
# Shown as pages; other files are there as they are.
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
# The search's worker where a page is a file: the theme would fetch this from a server.
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
    """What is no page of its own."""
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

    return LINK.sub(resolved, markdown)


def on_post_page(output, page, config):
    return SHIM.sub(get_relative_url("worker_in_file.js", page.url), output)


def on_post_build(config):
    site = Path(config.site_dir)
    shutil.copytree(API, site / "api", dirs_exist_ok=True)
    (site / "404.html").unlink()  # for a server of its own
