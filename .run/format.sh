# Formats, and checks the format. The versions are fixed, because each version formats a little differently.

# git_here ARGUMENTS...: runs git in the project, even if another user owns the files, which git would refuse.
git_here() { git -C "$root" -c safe.directory='*' "$@"; }

# run_formatters OF_CLANG_FORMAT OF_MDFORMAT: runs both with these options, after it has installed them.
run_formatters() {
  take_turn
  need git=git || exit
  git_here rev-parse || fail "formatting needs a clone: git tells which files there are"
  from_pypi venv-format clang-format==22.1.8 mdformat==0.7.22 mdformat-gfm==1.0.0 markdown-it-py==3.0.0 \
    mdit-py-plugins==0.7.0 mdurl==0.1.2 wcwidth==0.9.4 check-jsonschema==0.39.0 || exit
  status=0
  texts_with '' '*.cpp' '*.h' | each clang-format $1 || status=1
  texts_with '' '*.md' ':!*.zh-CN.md' | each mdformat $2 || status=1
  texts_with '' '*.zh-CN.md' | each mdformat --wrap no $2 || status=1
  return $status
}

# texts_with EXPRESSION PATTERN...: prints the texts that git tracks or would add, that match a pattern, and that have a
# line that matches the expression.
texts_with() { git_here grep --untracked -lIz "$@"; }

# each COMMAND...: runs the command in the project's folder, with the files from standard input as arguments.
each() { (cd "$root" && xargs -0 -r "$@"); }

reformat() {
  [ $# -eq 0 ] || wrong "format takes no arguments: $1"
  run_formatters -i '' && untidy_texts | each sed -i -e 's/[[:space:]]*$//' -e '$a\' || fail "could not format"
}

check_format() {
  run_formatters '--dry-run -Werror' --check
  check-jsonschema --builtin-schema vendor.github-workflows "$root"/.github/workflows/*.yml || status=1
  untidy_texts | each printf '%s: blanks at the end of a line, or no newline at the end\n' | grep . >&2 && status=1
  [ $status -eq 0 ] || say "./run format puts this right"
  return $status
}

# Prints the texts that do not meet .editorconfig. Blanks in plots are allowed, because a library writes them.
untidy_texts() {
  texts_with '[[:space:]]$' . ':!*.svg'
  texts_with '' . | each sh -c 'for file; do [ -z "$(tail -c 1 "$file")" ] || printf "%s\0" "$file"; done' sh
}
