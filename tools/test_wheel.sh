#!/usr/bin/env bash
# Does the wheel in dist/ work where there is no checkout? A fresh environment, `geonode demo`, and the smoke tests,
# copied away from the sources.
#
#   tools/test_wheel.sh [python]        default python3; PIP_FLAGS and KEEP=1 (leave the folder) as in the Makefile
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wheels=("$root"/dist/*.whl)
[ ${#wheels[@]} -eq 1 ] && [ -f "${wheels[0]}" ] || { echo "dist/ must hold one wheel; run make dist first" >&2; exit 1; }
place=$(mktemp -d)
[ -n "${KEEP:-}" ] || trap 'rm -rf "$place"' EXIT
"${1:-python3}" -m venv "$place/venv"
bin=$place/venv/bin
torch=$(grep -E '^torch==' "$root/constraints.txt")
"$bin/python" -m pip install --quiet --upgrade "pip>=24"
# shellcheck disable=SC2086
"$bin/python" -m pip install --quiet ${PIP_FLAGS:-} --constraint "$root/constraints.txt" "$torch" "${wheels[0]}[test,readers]"

cp -r "$root/tests" "$place/tests" # those of the docs (tests/docs) need the pages of the checkout
find "$place/tests" -name __pycache__ -type d -prune -exec rm -rf {} +
"$bin/python" "$root/tools/pytest_settings.py" "$root/pyproject.toml" > "$place/pytest.ini"
cd "$place"
unset PYTHONPATH
where=$("$bin/python" -c 'import geonode, geonode_kernels, geonode_runtime; print(geonode.__file__)')
case $where in "$place"/venv/*) ;; *) echo "geonode comes from $where, not from the wheel" >&2; exit 1 ;; esac
echo "wheel: $(basename "${wheels[0]}"), $(du -k "${wheels[0]}" | cut -f1) kB; $("$bin/geonode" --version)"
time "$bin/geonode" demo --out demo
OMP_NUM_THREADS=1 "$bin/python" -m pytest -q -m smoke -p no:cacheprovider --ignore tests/docs tests
