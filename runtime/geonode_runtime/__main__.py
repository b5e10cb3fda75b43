"""`geonode-runtime`, or `python -m geonode_runtime`: predict and quantify with an exported model."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geonode_runtime.amounts import diluted
from geonode_runtime.errors import GeonodeError, InputError
from geonode_runtime.files import write_text
from geonode_runtime.given_paths import as_path
from geonode_runtime.model import ExportedAnswer, Model, load
from geonode_runtime.outputs import ANSWER, PREDICTION, check_output
from geonode_runtime.refused import Refused, answered, not_answered
from geonode_runtime.text_files import read_replicates
from geonode_runtime.wording import CommandLine, on_command_line

SCHEMA = 1
"""Version of the JSON that ``quantify --json`` writes: that of `geonode quantify`."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; what the user can put right is one sentence on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        options = _parser().parse_args(arguments)
        with on_command_line(CommandLine(options.called)):
            options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # who read the output has enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except GeonodeError as error:
        print(f"geonode-runtime: {error}", file=sys.stderr)
        return 2
    return 0


class _Once(argparse.Action):
    """A value that may be given once: argparse would let the last one win."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        given = vars(namespace).setdefault("_given", set())
        if option_string is not None and self.dest in given:
            raise InputError(f"{option_string} is given twice, and takes one value; give it once.")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Options without an action of their own are given once."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.register("action", None, _Once)


def _path(text: str) -> Path:
    try:
        return as_path(text, "the name of a file")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="geonode-runtime", description="Predict and quantify with an exported model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    predict = commands.add_parser("predict", help="spectra at given concentrations")
    predict.add_argument("model", type=_path, metavar="MODEL.onnx")
    predict.add_argument("--at", type=float, action="append", required=True, help="concentration; repeatable")
    predict.add_argument("--out", "-o", type=_path, help="CSV to write; without it, to the screen")
    predict.set_defaults(run=_predict)
    quantify = commands.add_parser("quantify", help="the concentration of an unknown")
    quantify.add_argument("model", type=_path, metavar="MODEL.onnx")
    quantify.add_argument(
        "unknown", type=_path, nargs="+", metavar="UNKNOWN.csv",
        help="text files of wavelength and absorbance; several are replicates of one unknown",
    )  # fmt: skip
    quantify.add_argument("--each", action="store_true", help="every file is an unknown of its own")
    quantify.add_argument("--level", type=float, default=0.8, help="nominal coverage of the interval")
    quantify.add_argument("--dilution", default="1", help="factor of dilution before measuring: 5, 1:5 or 1+4")
    quantify.add_argument("--dilution-std", default="0", help="standard uncertainty of that factor: 0.1 or 2%%")
    quantify.add_argument("--blank", type=_path, action="append", help="spectrum of the matrix without analyte")
    quantify.add_argument("--method", help="posterior (the default, wherever it can answer) or profile")
    quantify.add_argument("--saturation", type=float, help="values at or above this are masked")
    quantify.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="everything that was found, as JSON; without FILE, printed"
    )
    quantify.set_defaults(run=_quantify)
    for command in (predict, quantify):
        command.add_argument("--force", action="store_true", help="replace an output of geonode that is there already")
    inspect = commands.add_parser("inspect", help="what a model says of itself")
    inspect.add_argument("model", type=_path, metavar="MODEL.onnx")
    inspect.set_defaults(run=_inspect)
    for command in (predict, quantify, inspect):
        command.set_defaults(called=_named(command))
    return parser


def _named(command: argparse.ArgumentParser) -> dict[str, str]:
    """Names of arguments → what the options of a ``command`` are called."""
    return {one.dest: one.option_strings[0] for one in command._actions if one.option_strings}


def _predict(options: argparse.Namespace) -> None:
    if options.out is not None:
        check_output(options.out, PREDICTION, [options.model], force=options.force)
    model = load(options.model)
    mean, std = model.predict(options.at)
    kinds = ("mean", "std") if model.facts["preprocessing"] is None else ("preprocessed_mean", "preprocessed_std")
    asked = [
        (c, "_extrapolated" * bool(far)) for c, far in zip(options.at, model.extrapolated(options.at), strict=True)
    ]
    heads = ["wavelength", *(f"{kind}_{c:g}{far}" for c, far in asked for kind in kinds)]
    columns = [model.wavelengths, *(column for pair in zip(mean, std, strict=True) for column in pair)]
    rows = (",".join(f"{value:.10g}" for value in row) for row in zip(*columns, strict=True))
    text = "\n".join([",".join(heads), *rows]) + "\n"
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(options.out, text)
    low, high = model.calibrated_range
    for c, beyond in zip(options.at, model.extrapolated(options.at), strict=True):
        if beyond:
            said = f"note: {c:g} lies outside the calibrated range {low:g} … {high:g} {model.unit}: an extrapolation"
            print(said, file=sys.stderr)
    for doubt in model.doubts:
        print(f"note: {doubt}", file=sys.stderr)


def _quantify(options: argparse.Namespace) -> None:
    if options.json not in (None, "-"):
        read = [options.model, *options.unknown, *(options.blank or [])]
        check_output(Path(options.json), ANSWER, read, force=options.force)
    model = load(options.model)
    factor, factor_std, understood = diluted(options.dilution, options.dilution_std, options.level)
    if understood:
        print(understood, file=sys.stderr)
    groups = [[path] for path in options.unknown] if options.each else [options.unknown]
    settings: dict[str, Any] = {
        "level": options.level,
        "dilution": factor,
        "dilution_std": factor_std,
        "saturation": options.saturation,
        "method": options.method,
    }
    if options.blank:
        settings["blank_wavelengths"], settings["blank"] = read_replicates(options.blank)
    standing = model.standing(options.method)
    entries, answers, said = [], [], []
    for group in groups:
        asked = _Asked(group[0].name if len(group) == 1 else f"{group[0].name} and {len(group) - 1} more", group)
        answer = answered(asked, lambda one: one.answer(model, settings), alone=len(groups) == 1)
        answers.append(answer)
        if isinstance(answer, Refused):
            entries.append(answer.to_dict())
            said += answer.lines()
            continue
        entries.append({"name": asked.name, "spectra": list(asked.spectra_names), **answer.to_dict()})
        entries[-1]["explanation"] = answer.explanation_dict()
        said.append(f"{asked.name}: {answer.sentence(model.unit)}")
        said += [f"  cause: {reason}" for reason in answer.why]
        said += [f"  note: {note}" for note in answer.notes if note not in standing["sentence"]]
    said.append(standing["sentence"])
    if options.json != "-":
        print("\n".join(said))
    if options.json is not None:
        head = {"schema_version": SCHEMA, "bundle": str(options.model), "unit": model.unit, "standards": standing}
        _write_json(options.json, {**head, "unknowns": entries})
    if any(isinstance(one, Refused) for one in answers):
        raise InputError(not_answered(answers, said=options.json != "-"))


def _write_json(where: str, data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if where == "-":
        sys.stdout.write(text)
    else:
        write_text(where, text)


@dataclass(frozen=True)
class _Asked:
    """The files of one unknown; ``name``: of it."""

    name: str
    files: list[Path]

    @property
    def spectra_names(self) -> tuple[str, ...]:
        return tuple(path.name for path in self.files)

    def answer(self, model: Model, settings: dict[str, Any]) -> ExportedAnswer:
        """Raises InputError where its files cannot be read, or ``model`` refuses it."""
        grid, spectra = read_replicates(self.files)
        return model.quantify(spectra, grid, replicates=True, name=self.name, **settings)


def _inspect(options: argparse.Namespace) -> None:
    model = load(options.model)
    shown = {name: value for name, value in model.facts.items() if name not in ("steps",)}
    print(json.dumps({**shown, "checksum": model.checksum}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
