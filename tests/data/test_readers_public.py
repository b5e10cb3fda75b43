"""Two thousand files as public folders hold them, made here: read to the values written, or refused in a sentence."""

from __future__ import annotations

import pytest

from tests.data import public_families, public_files


@pytest.mark.parametrize("seed", range(4))
def test_files_of_every_family_locale_encoding_axis_and_label(tmp_path, seed):
    outcomes = public_files.run(500, seed, tmp_path)
    read = {what.split()[1] for what in outcomes if what.startswith("read")}
    assert read == {family.__name__ for family in public_families.FAMILIES}, "every family is read"
    refused = sum(n for what, n in outcomes.items() if what.startswith("refused"))
    assert refused < 0.1 * sum(outcomes.values()), "a refusal is the exception"
