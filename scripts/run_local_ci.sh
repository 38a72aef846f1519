#!/usr/bin/env bash
# The jobs of .github/workflows/ci.yml on this machine, without installing system packages.
# The jobs and their commands are read from that file, so the two cannot differ.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

usage() {
  cat <<'END'
usage: scripts/run_local_ci.sh [--list] [--only JOB,…] [--skip JOB,…] [--fail-fast]

Runs the jobs of .github/workflows/ci.yml one after another, and prints each command's result and time at
the end. What cannot run on this machine (another Python, a missing program, no network) is skipped, with
the reason. A failed job does not stop the others. Logs are in build/local_ci/.

  --list         print jobs and commands, and run nothing
  --only JOB,…   run these jobs only
  --skip JOB,…   leave these jobs out
  --fail-fast    stop at the first failure
  --help         print this

Exit code: 0 if nothing failed, 1 if something did, 2 for a wrong option.

examples: scripts/run_local_ci.sh --only lint,test
          scripts/run_local_ci.sh --skip coverage,bench --fail-fast
END
}

refuse() {
  echo "run_local_ci: $1" >&2
  exit 2
}

# One line for each command: the job, a tab, the command; a job with a matrix has one for each Python.
commands() {
  awk '
    /^jobs:/ { inside = 1; next }
    inside && /^  [a-z][a-z-]*:$/ { job = $1; sub(":", "", job); count = 0 }
    inside && /^ *python: \[/ { line = $0; gsub(/[^0-9. ]/, "", line); count = split(line, pythons, " ") }
    inside && /^ *- run: / {
      sub(/^ *- run: /, "")
      if (count == 0) print job "\t" $0
      for (i = 1; i <= count; i++) { text = $0; gsub(/\$\{\{ matrix\.python \}\}/, pythons[i], text); print job "\t" text }
    }
  ' .github/workflows/ci.yml
}

# A Python of this version on this machine, or nothing.
find_python() {
  local candidate
  for candidate in "python$1" "$HOME"/.pyenv/versions/"$1"*/bin/python; do
    if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

# Why a command cannot run here, or nothing. $1: the make target, $2: the version of Python it asks for, $3: that Python.
obstacle() {
  if [[ -n "$2" && -z "$3" ]]; then
    echo "no Python $2 on this machine"
  elif [[ "$1" = test && -n "$2" && "$(uname -s)" = Linux ]] \
    && ! "$3" -m pip index versions torch 2>/dev/null | grep -F "$(sed -n 's/^torch==//p' constraints.txt)+cpu" >/dev/null; then
    echo "no CPU build of torch for Python $2, and the CUDA build takes gigabytes"
  elif [[ "$1" = opponents || "$1" = referee ]] && ! [[ -x /usr/games/fairy-stockfish && -x /usr/games/gpsusi ]]; then
    echo "fairy-stockfish or gpsshogi is not installed"
  elif [[ "$1" = browser && -z "${KEISEI_CHROMIUM:-}" ]] \
    && ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then
    echo "Chromium is not installed"
  elif [[ "$1" = tsan ]] && ! command -v setarch >/dev/null; then
    echo "setarch is not installed"
  elif [[ "$1" = sanitize ]] && [[ "$("${CXX:-g++}" -print-file-name=libasan.so 2>/dev/null)" != */* ]]; then
    echo "${CXX:-g++} has no AddressSanitizer"
  fi
}

# A function, so that bash has read it all before it starts: the file may change during the run.
main() {
  list='' only='' skip='' fail_fast=''
  while (($#)); do
    case "$1" in
      --list) list=1 ;;
      --fail-fast) fail_fast=1 ;;
      --only | --skip)
        (($# > 1)) || refuse "$1 needs a list of jobs"
        [[ "$1" = --only ]] && only="$2" || skip="$2"
        shift
        ;;
      --help | -h) usage; exit 0 ;;
      *) refuse "unknown option $1; see --help" ;;
    esac
    shift
  done

  jobs=$(commands | cut -f1 | uniq)
  for name in ${only//,/ } ${skip//,/ }; do
    grep -qx -- "$name" <<<"$jobs" || refuse "no job $name; jobs: $(tr '\n' ' ' <<<"$jobs")"
  done
  chosen=$(commands | while IFS=$'\t' read -r job command; do
    [[ -n "$only" && ",$only," != *",$job,"* || ",$skip," = *",$job,"* ]] || printf '%s\t%s\n' "$job" "$command"
  done)
  if [[ -n "$list" ]]; then
    expand -t 17 <<<"$chosen"
    exit 0
  fi

  # The Python that make uses without being told; its environment is .venv, others have their own.
  default=$(python3.11 -c 'print("3.11")' 2>/dev/null || python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  mkdir -p build/local_ci
  table='' failed=0 number=0
  while IFS=$'\t' read -r -u 3 job command; do
    number=$((number + 1))
    read -r -a words <<<"$command"  # make TARGET NAME=VALUE …
    target=${words[1]} version='' python=''
    if [[ "$command" = *PYTHON=python* ]]; then
      version=${command##*PYTHON=python}
      python=$(find_python "$version")
      words=("${words[@]:0:${#words[@]}-1}" "PYTHON=$python")
      if [[ "$target" = test ]]; then
        if [[ "$version" = "$default" ]]; then version=''; else words+=("VENV=.venv-$version"); fi
      fi
    fi
    log="build/local_ci/$number-$job.log"
    start=$SECONDS
    reason=$(obstacle "$target" "$version" "$python")
    if [[ -n "$fail_fast" ]] && ((failed)); then
      result="not run"
    elif [[ -n "$reason" ]]; then
      result="skipped: $reason"
    else
      printf '\n== %s: %s\n' "$job" "$command"
      if "${words[@]}" 2>&1 </dev/null | tee "$log"; then
        result=ok
      # The last word of the target, before make's own: a test that failed may quote the phrase.
      elif reason=$(tail -n 2 "$log" | grep -o 'cannot run here: .*'); then
        result="skipped: ${reason#cannot run here: }"
      else
        result="FAILED: $log" failed=1
      fi
    fi
    table+=$(printf '%-15s %-36s %6s s  %s' "$job" "$command" "$((SECONDS - start))" "$result")$'\n'
  done 3<<<"$chosen"

  printf '\n%-15s %-36s %8s  %s\n%s' job command time result "$table"
  exit "$failed"
}

main "$@"
