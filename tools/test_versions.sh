#!/usr/bin/env bash
# The tests with the oldest or the newest releases that pyproject.toml admits, in a fresh environment.
#
#   tools/test_versions.sh oldest|newest [pytest arguments]      default: -m smoke
#
#   UV          uv to use, default .venv-release/bin/uv
#   UV_PYTHON   interpreter, default 3.11
#   UV_FLAGS    for example --torch-backend cpu, where PyTorch's own index is reached; otherwise torch is the CUDA build
#               of PyPI (about 7 GB with what it asks for)
#   KEEP=1      leave the environment, and say where it is
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
    oldest) resolution=lowest-direct ;; # direct dependencies at their lower bounds, theirs at the newest that goes with them
    newest) resolution=highest ;;
    *) echo "usage: tools/test_versions.sh oldest|newest [pytest arguments]" >&2; exit 2 ;;
esac
shift
[ $# -gt 0 ] || set -- -m smoke
uv=${UV:-$root/.venv-release/bin/uv}
place=$(mktemp -d)
if [ -n "${KEEP:-}" ]; then echo "environment: $place/venv"; else trap 'rm -rf "$place"' EXIT; fi
"$uv" venv --quiet --python "${UV_PYTHON:-3.11}" "$place/venv"
# shellcheck disable=SC2086
VIRTUAL_ENV=$place/venv "$uv" pip install --quiet --resolution "$resolution" ${UV_FLAGS:-} "$root[test,readers]"
cp -r "$root/tests" "$place/tests" # those of the docs (tests/docs) need the pages of the checkout
"$place/venv/bin/python" "$root/tools/pytest_settings.py" "$root/pyproject.toml" > "$place/pytest.ini"
cd "$place"
unset PYTHONPATH
"$place/venv/bin/geonode" doctor | head -12
OMP_NUM_THREADS=1 "$place/venv/bin/python" -m pytest -q -p no:cacheprovider --ignore tests/docs "$@" tests
