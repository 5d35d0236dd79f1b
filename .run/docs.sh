# Builds the site: the reference of the public headers by Doxygen, and the pages by mkdocs-material. Checks the links
# and the reference.

# The command `docs`, and the step of the check.
docs() {
  [ $# -eq 0 ] || wrong "docs takes no arguments: $1"
  set_up_docs
  if make_reference && make_pages && python3 -B "$root/docs/site/links.py" "$build/site" &&
    python3 -B "$root/docs/site/reference.py" "$build/site"; then
    say "build/site/index.html: it needs neither a server nor a network"
  else
    say "the site is not as it should be"
    return 1
  fi
}

# Loads each page of the site in Debian's Chromium.
browser() {
  docs || return 1
  install_packages "$(for package in chromium fonts-dejavu-core fonts-liberation; do
    have_package $package || echo $package
  done)"
  from_pypi venv-browser playwright==1.65.2 greenlet==3.5.6 ||
    { say "could not install playwright, see build/last.log"; return 1; }
  "$build/venv-browser/bin/python" -B "$root/docs/site/browser.py" "$build/site"
}

set_up_docs() {
  take_turn
  have doxygen || install_packages doxygen
  have doxygen || fail "the reference needs Doxygen"
  from_pypi venv-docs mkdocs-material==9.8.1 mkdocs==1.6.1 pymdown-extensions==13.1 markdown==3.11.3 pygments==2.21.0 ||
    fail "could not install mkdocs-material, see build/last.log"
}

# Runs Doxygen. A missing comment and a wrong name in a comment are errors.
make_reference() {
  rm -rf "$build/api" "$build/api-xml"
  HWT_VERSION=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
  export HWT_VERSION HWT_BUILD="$build"
  say "building build/api"
  (cd "$root" && doxygen docs/site/Doxyfile)
}

make_pages() {
  say "building build/site"
  # Without --quiet, which would hide the warnings from --strict.
  quietly env NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 "$build/venv-docs/bin/mkdocs" build --strict \
    --config-file "$root/docs/site/mkdocs.yml" --site-dir "$build/site"
}
