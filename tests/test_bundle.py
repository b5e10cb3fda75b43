"""The bundle file: what was saved comes back to the bit; truncated, altered, foreign and later files are refused."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from geonode import bundle
from geonode.bundle import is_bundle, read_bundle, write_bundle
from geonode.errors import BundleError, InputError, OutputError

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5], dtype=torch.float64), "none": torch.zeros(0)}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "x.bundle"
    write_bundle(path, TENSORS, {"words": {"ä": [1, None]}})
    return path


@pytest.mark.smoke
def test_there_and_back(written):
    tensors, metadata = read_bundle(written)
    assert set(tensors) == set(TENSORS)
    for name, value in TENSORS.items():
        assert torch.equal(tensors[name], value)
        assert tensors[name].dtype == value.dtype
    assert metadata["words"] == {"ä": [1, None]}
    assert [p.name for p in written.parent.iterdir()] == ["x.bundle"]


def test_any_strides_are_written(tmp_path):
    odd = torch.arange(8.0).as_strided((1, 8, 1), (1, 1, 5))
    turned = torch.arange(6.0).reshape(2, 3).mT
    write_bundle(tmp_path / "odd", {"odd": odd, "turned": turned, "half": odd.bfloat16()}, {})
    tensors, _ = read_bundle(tmp_path / "odd")
    assert torch.equal(tensors["odd"], odd)
    assert torch.equal(tensors["turned"], turned)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_anywhere_is_refused(written, share):
    content = written.read_bytes()
    written.write_bytes(content[: int(share * len(content))])
    with pytest.raises(BundleError, match=r"x\.bundle is not a geonode bundle or is truncated"):
        read_bundle(written)


def test_any_flipped_bit_is_noticed(written):
    """In the tensors, in the words, in the header between them: nothing altered is ever loaded."""
    content = written.read_bytes()
    before = read_bundle(written)
    for place in range(0, len(content), 3):
        altered = bytearray(content)
        altered[place] ^= 1 << (place % 8)
        written.write_bytes(bytes(altered))
        try:
            tensors, metadata = read_bundle(written)
        except BundleError as error:
            assert "x.bundle" in str(error)
            continue
        assert metadata == before[1], place
        assert all(torch.equal(tensors[name], value) for name, value in before[0].items())


def test_altered_words_are_noticed(written):
    content = written.read_bytes()
    assert b"words" in content
    written.write_bytes(content.replace(b"words", b"swords"[:5]))
    with pytest.raises(BundleError, match="was altered"):
        read_bundle(written)


def test_a_bundle_of_version_1_still_loads(tmp_path):
    header = {"version": 1, "geonode": "0.1", "checksum": bundle.checksum(TENSORS), "words": [1]}
    save_file(TENSORS, tmp_path / "old", {"geonode_bundle": json.dumps(header)})
    tensors, metadata = read_bundle(tmp_path / "old")
    assert metadata["words"] == [1]
    assert torch.equal(tensors["a"], TENSORS["a"])


@pytest.mark.parametrize(
    "content", [b"wavelength,0,10\n400,1,2\n", b"\x89HDF\r\n", pickle.dumps({"a": 1}), b"\xff" * 64]
)
def test_foreign_files_are_refused_and_never_unpickled(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(BundleError, match="foreign"):
        read_bundle(path)


def test_tensors_of_another_program_are_refused(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(BundleError, match="is no geonode bundle"):
        read_bundle(tmp_path / "model.safetensors")


def test_a_later_version_is_refused_with_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "VERSION", 99)
    write_bundle(tmp_path / "later", TENSORS, {})
    monkeypatch.undo()
    with pytest.raises(BundleError, match="version 99"):
        read_bundle(tmp_path / "later")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(BundleError, match="does not exist"):
        read_bundle(tmp_path / "none")
    with pytest.raises(BundleError, match="is not a file"):
        read_bundle(tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        write_bundle(tmp_path, TENSORS, {})
    with pytest.raises(InputError, match="create the folder"):
        write_bundle(tmp_path / "no" / "x", TENSORS, {})


def test_a_failed_write_leaves_the_old_bundle(written, monkeypatch):
    before = written.read_bytes()

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(bundle, "save_file", fail)
    with pytest.raises(OutputError, match=r"x\.bundle could not be written .no space left.; give another place"):
        write_bundle(written, TENSORS, {})
    assert written.read_bytes() == before
    assert [p.name for p in written.parent.iterdir()] == ["x.bundle"]


def test_the_header_is_json_that_anyone_can_read(written):
    content = written.read_bytes()
    length = int(np.frombuffer(content[:8], dtype="<u8")[0])
    header = json.loads(content[8 : 8 + length])
    assert json.loads(header["__metadata__"]["geonode_bundle"])["version"] == bundle.VERSION


@pytest.mark.parametrize(
    "name", [b"caf\xe9", b"\xff\xfe", b"M\xfcller \xb5M"], ids=["latin-1", "bytes", "latin-1 with a blank"]
)
def test_a_folder_whose_name_is_no_utf8(name, tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), name)
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    path = Path(os.fsdecode(folder)) / "x.bundle"
    write_bundle(path, TENSORS, {"words": 1})
    tensors, metadata = read_bundle(path)
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items()) and metadata["words"] == 1
    assert os.listdir(folder) == [b"x.bundle"]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BundleError, match="truncated"):
        read_bundle(path)


@pytest.mark.parametrize("content", [b"my notes", b"\x00" * 40, b"\xff" * 12])
def test_a_file_that_is_no_bundle_is_not_replaced(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"notes\.txt is there already and is no bundle; give another name"):
        write_bundle(path, {"x": torch.zeros(2)}, {})
    assert path.read_bytes() == content and len(list(tmp_path.iterdir())) == 1


def test_a_bundle_and_an_empty_file_are_replaced(tmp_path):
    path = tmp_path / "a.bundle"
    path.touch()
    for value in (1.0, 2.0):
        write_bundle(path, {"x": torch.full((2,), value)}, {})
    assert is_bundle(path)
