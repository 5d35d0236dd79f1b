# Builds the site: the reference of the public headers by Doxygen, and the pages by mkdocs-material. Checks the links
# and the reference. A missing comment and a wrong name in a comment are errors.

docs() {
  [ $# -eq 0 ] || wrong "docs takes no arguments: $1"
  take_turn
  need doxygen=doxygen || exit
  from_pypi venv-docs mkdocs-material==9.8.1 mkdocs==1.6.1 pymdown-extensions==13.1 markdown==3.11.3 pygments==2.21.0 ||
    exit
  HWT_VERSION=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
  export HWT_VERSION HWT_BUILD="$build" NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1
  rm -rf "$build/api" "$build/api-xml"
  say "building build/api and build/site"
  # mkdocs without --quiet, which would hide the warnings from --strict.
  (cd "$root" && doxygen docs/site/Doxyfile) &&
    quietly mkdocs build --strict --config-file "$root/docs/site/mkdocs.yml" --site-dir "$build/site" &&
    python3 "$root/docs/site/links.py" "$build/site" && python3 "$root/docs/site/reference.py" "$build/site" ||
    { say "the site is not as it should be"; return 1; }
  say "build/site/index.html: it needs neither a server nor a network"
}

check_docs() { docs; }

# Loads each page of the site with the Chromium of Debian.
check_browser() {
  docs || return 1
  need chromium=chromium fonts-dejavu-core fonts-liberation || return 1
  from_pypi venv-browser playwright==1.65.2 greenlet==3.5.6 || return 1
  python3 -B "$root/docs/site/browser.py" "$build/site"
}
