"""What a file of settings says holds: an option that is not given never takes its place, one that is given does."""

from __future__ import annotations

import dataclasses
import json
import sys
from functools import partial

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.commands.plan import read_config
from geonode.config import ALIASES, GeodesicConfig
from geonode.errors import InputError
from geonode.sweep.spec import read_spec

OTHER = {
    "seed": 7,
    "folds": True,
    "epochs": 3,
    "margin": 0.5,
    "precision": "64-true",
    "members": 1,
    "flow": "velocity",
    "wavelengths_per_step": None,
}
"""None of them the default."""
COMMANDS = {
    "fit": (("--settings",), ("geonode.model", "fit")),
    "evaluate": (("--settings",), ("geonode.validation", "evaluate")),
    "plan": ((), ("geonode.training.plan", "plan")),
    "doctor": (("--fit",), ("geonode.training.plan", "plan")),
}
"""Every command that takes a file of settings: how, and what it hands them to."""


class Handed(Exception):
    """What the library was handed, before it begins."""


@pytest.fixture
def standards(tmp_path):
    rows = [f"{w},{0.1},{0.2 + w / 1e4},{0.3},{0.35}" for w in range(400, 500, 10)]
    path = tmp_path / "standards.csv"
    path.write_text("\n".join(["nm,0,10,20,30", *rows]) + "\n")
    return path


@pytest.fixture
def handed(standards, tmp_path, monkeypatch):
    """The settings that a command hands on when it is given a file of settings and some options."""

    def of(command: str, settings: dict, *options: str) -> GeodesicConfig:
        path = tmp_path / "settings.json"
        path.write_text(json.dumps(settings))
        how, (module, function) = COMMANDS[command]

        def stop(*positional, seed=None, **named):
            config = next(value for value in positional if isinstance(value, GeodesicConfig))
            raise Handed(config if seed is None else config.replace(seed=seed))

        __import__(module)
        monkeypatch.setattr(sys.modules[module], function, stop)
        files = {"fit": [str(standards), "--out", str(tmp_path / "m")], "evaluate": [str(standards)]}.get(command, [])
        result = CliRunner().invoke(app, [command, *files, *how, str(path), "--device", "cpu", *options])
        assert isinstance(result.exception, Handed), result.output
        return result.exception.args[0]

    return of


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_settings_arrives_as_it_is(command, handed):
    wanted = GeodesicConfig(**OTHER)
    assert handed(command, OTHER) == wanted
    # and where it leaves the rest to the defaults: what is planned is a training
    rest = GeodesicConfig() if command in ("fit", "evaluate") else GeodesicConfig(flow="path_independent")
    assert handed(command, {"seed": 5}) == rest.replace(seed=5)
    assert handed(command, {}) == rest


@pytest.mark.parametrize("name", [name for name in OTHER if OTHER[name] is not None])
def test_each_setting_of_the_file_alone_arrives(name, handed):
    one = {"flow": "path_independent", name: OTHER[name]}
    assert handed("fit", one) == GeodesicConfig(**one)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--seed", "0"], {"seed": 0}),  # the command line's former default, given
        (["--no-folds"], {"folds": False}),
        (["--epochs", "60"], {"epochs": 60}),
        (["--margin", "0.25"], {"margin": 0.25}),
        (["--precision", "32-true"], {"precision": "32-true"}),
        (["--predictor", "node"], {"predictor": "node"}),
        (["--seed", "3", "--epochs", "9"], {"seed": 3, "epochs": 9}),
    ],
)
def test_an_option_that_is_given_changes_that_setting_alone(options, changes, handed):
    assert handed("fit", OTHER, *options) == GeodesicConfig(**{**OTHER, **changes})


def test_the_seed_of_evaluate_is_the_files_unless_given(handed):
    assert handed("evaluate", OTHER, "--seed", "0").seed == 0 and handed("evaluate", OTHER).seed == 7


def test_no_option_of_a_command_with_settings_has_a_default_of_its_own():
    """The law: such a default would take the place of the file's."""
    takers = {"settings", "config", "fit"}
    names = {field.name for field in dataclasses.fields(GeodesicConfig)} | set(ALIASES)
    commands = get_command(app).commands  # type: ignore[attr-defined]
    with_settings = {name for name, command in commands.items() if takers & {p.name for p in command.params}}
    assert with_settings == set(COMMANDS)
    for name in with_settings:
        for parameter in commands[name].params:
            if parameter.name in names:
                assert parameter.default is None, f"geonode {name}: {parameter.opts[0]}"


@pytest.mark.parametrize("place", ["none.json", "folder"])
def test_what_cannot_be_read_is_told_without_the_number_of_the_system(tmp_path, place):
    (tmp_path / "folder").mkdir()
    for read in (partial(read_config, blueprint=False), read_spec):
        with pytest.raises(InputError) as told:
            read(tmp_path / place)
        assert place in str(told.value) and "Errno" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"seed": 1, "seed": 2}', "'seed' stands twice; leave one"),
        ('{"training": {"epochs": 1, "epochs": 2}}', "'epochs' stands twice; leave one"),
        ('{"flow": "path_independent", "training": {"epochs": 2}, "epochs": 3}', "'epochs' stands twice, as training"),
        ("[1]", "Settings are an object"),
        ("null", "Settings are an object"),
    ],
)
def test_of_two_values_of_one_setting_none_is_taken(tmp_path, text, said):
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"settings\.json is not a file of settings \({said}"):
        read_config(path, blueprint=False)


@pytest.mark.parametrize(("options", "seed"), [({}, 11), ({"seed": 0}, 0), ({"seed": 4}, 4)])
def test_in_python_too_the_seed_of_the_settings_counts(options, seed):
    seen = []

    def trainer(gps, targets, wavelengths, config, seed=0, progress=None, device="cpu"):
        seen.append(seed)
        return [np.zeros((len(t), len(wavelengths))) for t in targets]

    assay = geonode.simulate_assay(wavelengths=[300.0 + 40.0 * k for k in range(11)])
    report = geonode.evaluate(
        assay, GeodesicConfig(seed=11), methods=["node", "linear"], inner=False, node_trainer=trainer, **options
    )
    assert seen == [seed] and report.seed == seed
