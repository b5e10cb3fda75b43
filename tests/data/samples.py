"""Small files of every format that the readers know, made here: for fuzzing and for tests without real data."""

from __future__ import annotations

import io
import itertools
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np

WAVELENGTHS = np.arange(400.0, 424.0)
LEVELS = (0.0, 5.0, 10.0, 20.0)


def spectrum(c: float) -> np.ndarray:
    return np.round(0.1 + 0.02 * c + 0.01 * np.sin(np.arange(len(WAVELENGTHS)) * (1 + 0.1 * c)), 4)


def _table(delimiter: str, decimal: str = ".", levels=LEVELS) -> list[str]:
    spectra = [spectrum(c) for c in levels]
    return [
        delimiter.join([f"{x:g}", *(f"{y[i]:.4f}" for y in spectra)]).replace(".", decimal)
        for i, x in enumerate(WAVELENGTHS)
    ]


def tidy() -> bytes:
    return "\n".join(["wavelength,0.0,5.0,10.0,20.0", *_table(",")]).encode()


def cary() -> bytes:
    names = ["Baseline 100%T", *(f"A_{c:g}mM" for c in LEVELS)]
    lines = ["".join(f"E{k},," for k in range(len(names))), "Wavelength (nm),Abs," * len(names)]
    for i in reversed(range(len(WAVELENGTHS))):
        cells = [(WAVELENGTHS[i], spectrum(c)[i]) for c in (0.5, *LEVELS)]
        lines.append("".join(f"{x:g},{y:.4f}," for x, y in cells))
    lines.append("")
    for name in names:
        lines += [f"{name},", name, "Collection Time: 1/2/2024", ""]
    return "\r\n".join(lines).encode()


def clariostar() -> bytes:
    head = ["User: USER,,,", "Path: C:\\BMG,,,", "Test ID: 1,,,", "Absorbance spectrum,,Absorbance as OD,", ",,,"]
    lines = [*head, "Well,Sample,Dilution," + ",".join(f"{x:g}" for x in WAVELENGTHS)]
    for k, (sample, dilution) in enumerate([("S1", 1), ("S1", 2), ("S1", 4), ("Blank", 1), ("X1", 1)]):
        y = spectrum(10.0 / dilution + k).clip(max=5.287)
        lines.append(f"A{k + 1},{sample},{dilution}," + ",".join(f"{v:.3f}" for v in y))
    return b"\xef\xbb\xbf" + "\r\n".join(lines).encode()


def enspire() -> bytes:
    lines = [
        "Plate information ",
        "Plate\tRepeat\t",
        "1\t1\t",
        "",
        "Well\tSample\tMeasA:Result\tMeasA:WavelengthExc\tMeasA:WavelengthEms\t",
    ]
    for k, c in enumerate(LEVELS):
        lines += [
            f"A0{k + 1}\tUNK{k}\t{v * 1000:.0f}\t{x:g}\t520\t" for x, v in zip(WAVELENGTHS, spectrum(c), strict=True)
        ]
    return "\r\n".join([*lines, "", "Instrument:\t\t", "Exported with EnSpire"]).encode()


def peds() -> bytes:
    head = [
        "PE FL                   SPECTRUM    ASCII       PEDS        1.60",
        "  -1",
        "A_5mM",
        *[""] * 40,
        "#HDR",
        "-1",
        "-1",
    ]
    graph = ["#GR", "NM", "", "1.0", "0.0", "400.0", "1.0", str(len(WAVELENGTHS)), "8", "1", "0"]
    data = [f"{x:.6f}\t{v:.6f}  " for x, v in zip(WAVELENGTHS, spectrum(5.0), strict=True)]
    return "\n".join([*head, *graph, "#DATA", *data, ""]).encode("latin-1")


def shimadzu() -> bytes:
    return "\r\n".join(['"A 5 mM - RawData"', '"Wavelength nm."\t"Abs."', *_table("\t", ",", (5.0,))]).encode()


def nanodrop() -> bytes:
    return "\n".join([",0,2,1,3", *_table(",")]).encode()


def ocean() -> bytes:
    head = [
        "SpectraSuite Data File",
        "+++++",
        "Integración: 5",
        f"Number of Pixels in Processed Spectrum: {len(WAVELENGTHS)}",
    ]
    body = [
        ">>>>>Begin Processed Spectral Data<<<<<",
        *_table("\t", ",", (5.0,)),
        ">>>>>End Processed Spectral Data<<<<<",
    ]
    return "\r\n".join([*head, *body]).encode("latin-1")


def delimited() -> bytes:
    return "\n".join(['"Operator";"x"', "nm;A 0 ppb;A 5 ppb;A 10 ppb;A 20 ppb", *_table(";", ",")]).encode("utf-8-sig")


def pairs() -> bytes:
    lines = ["\t\t".join(f"A_{c:g}mM" for c in LEVELS), "\t".join(["nm\tA"] * len(LEVELS))]
    lines += ["\t".join(f"{x:g}\t{spectrum(c)[i]:.4f}" for c in LEVELS) for i, x in enumerate(WAVELENGTHS)]
    return "\n".join(lines).encode()


def samples_in_rows() -> bytes:
    lines = ["conc (ppb)," + ",".join(f"{x:g}" for x in WAVELENGTHS)]
    lines += [f"{c:g}," + ",".join(f"{v:.4f}" for v in spectrum(c)) for c in LEVELS]
    return "\n".join(lines).encode()


def note() -> bytes:
    return b"name,pH,conc (mM)\n0,7,0\n1,7,5\n2,7,10\n3,7,NaN\n"


def file_list() -> bytes:
    return b"file,concentration (mM),group\nshimadzu.bin,1,a\nshimadzu_2.bin,2,a\nocean.bin,NaN,b\n"


# --- JCAMP-DX ---------------------------------------------------------------------------------------------------------

_SQZ = ("@ABCDEFGHI", "@abcdefghi")
_DIF = ("%JKLMNOPQR", "%jklmnopqr")
_DUP = "0STUVWXYZs"


def _packed(value: int, digits: tuple[str, str]) -> str:
    text = str(abs(value))
    return digits[value < 0][int(text[0])] + text[1:]


def pack(x: list[int], y: list[int], form: str, per_line: int = 8) -> list[str]:
    """Lines of ``(X++(Y..Y))`` in the form AFFN, PAC, SQZ, DIF or DIFDUP."""
    lines, start = [], 0
    while start < len(y):
        end = min(start + per_line, len(y))
        mine = y[start:end]
        if form == "AFFN":
            body = " " + " ".join(map(str, mine))
        elif form == "PAC":
            body = " " + "".join(f"{v:+d}" for v in mine)
        elif form == "SQZ":
            body = "".join(_packed(v, _SQZ) for v in mine)
        else:
            body = _packed(mine[0], _SQZ)
            steps = [b - a for a, b in itertools.pairwise(mine)]
            k = 0
            while k < len(steps):
                run = 1
                while form == "DIFDUP" and k + run < len(steps) and steps[k + run] == steps[k] and run < 9:
                    run += 1
                body += _packed(steps[k], _DIF) + (_DUP[run] if run > 1 else "")
                k += run
        lines.append(f"{x[start]}{body}")
        # In DIF form the last ordinate is repeated as the first of the next line, unless the line held one alone.
        start = end - 1 if form.startswith("DIF") and len(mine) > 1 and end < len(y) else end
        if form.startswith("DIF") and end == len(y) and len(mine) > 1:
            lines.append(f"{x[-1]}{_packed(y[-1], _SQZ)}")
    return lines


def jcamp_block(title: str, form: str = "DIFDUP", values: np.ndarray | None = None) -> list[str]:
    y = np.round((spectrum(5.0) if values is None else values) * 1e4).astype(int).tolist()
    x = [int(v) for v in WAVELENGTHS]
    return [
        f"##TITLE={title}", "##JCAMP-DX=4.24 $$ comment", "##DATA TYPE=UV/VIS SPECTRUM", "##ORIGIN=x", "##OWNER=public",
        "##XUNITS=NANOMETERS", "##YUNITS=ABSORBANCE", "##XFACTOR=1", "##YFACTOR=0.0001", f"##FIRSTX={x[0]}",
        f"##LASTX={x[-1]}", f"##NPOINTS={len(x)}", f"##FIRSTY={y[0] / 1e4}", "##XYDATA=(X++(Y..Y))",
        *pack(x, y, form), "##END=",
    ]  # fmt: skip


def jcamp() -> bytes:
    head = ["##TITLE=compound", "##JCAMP-DX=4.24", "##DATA TYPE=LINK", "##BLOCKS=4"]
    blocks = [line for c in LEVELS for line in jcamp_block(f"A_{c:g}mM", values=spectrum(c))]
    return "\n".join([*head, *blocks, "##END="]).encode()


def jcamp_squeezed() -> bytes:
    return "\r\n".join(jcamp_block("A_5mM", "SQZ")).encode()


# --- SPC --------------------------------------------------------------------------------------------------------------


def spc(order: str = "<", own_x: bool = False, integers: bool = False) -> bytes:
    """A multi-trace file, with floats or 32-bit integers, with even abscissae or an own set for each trace."""
    n = len(WAVELENGTHS)
    flags = 0x04 | (0xC0 if own_x else 0)
    head = bytearray(512)
    version = 0x4B if order == "<" else 0x4C
    struct.pack_into(order + "BBBbi", head, 0, flags, version, 0, 0 if integers else -128, 0 if own_x else n)
    struct.pack_into(order + "ddi", head, 8, WAVELENGTHS[0], WAVELENGTHS[-1], len(LEVELS))
    head[28], head[29] = 3, 2
    head[88:97] = b"A comment"
    body = b""
    for k, c in enumerate(LEVELS):
        sub = bytearray(32)
        struct.pack_into(order + "BbH", sub, 0, 0, 1 if integers else -128, k)
        struct.pack_into(order + "i", sub, 16, n)
        y = spectrum(c)
        values = np.round(y * 2**31).astype(order + "i4") if integers else y.astype(order + "f4")
        body += bytes(sub) + (WAVELENGTHS.astype(order + "f4").tobytes() if own_x else b"") + values.tobytes()
    return bytes(head) + body


def spc_own_x() -> bytes:
    return spc(own_x=True, integers=True)


# --- formats of other people's parsers --------------------------------------------------------------------------------


def wdf() -> bytes:
    """Header, abscissae and spectra of a Renishaw file."""
    n = len(WAVELENGTHS)
    head = struct.pack(
        "<IIQQ16s12x IIIQQI III24s4H IIQQI f48x32s160s 48x32x32x",
        *(0x31464457, 1, 512, 0, b"\1" * 16, 1, 0, n, len(LEVELS), len(LEVELS), 1, 1, n, 0, b"WiRE", 5, 0, 0, 0),
        *(0, 1, 0, 0, 6, 532.0, b"user", b"A series"),
    )
    axis = struct.pack("<IIQII", 0x54534C58, 0, 16 + 8 + 4 * n, 1, 3) + WAVELENGTHS.astype("<f4").tobytes()
    values = np.array([spectrum(c) for c in LEVELS], dtype="<f4").tobytes()
    return head + struct.pack("<IIQ", 0x41544144, 0, 16 + len(values)) + values + axis


def opus() -> bytes:
    """Directory, sample parameters, absorbance and its status block of a Bruker file."""
    n = len(WAVELENGTHS)

    def parameter(key: str, value) -> bytes:
        if isinstance(value, str):
            raw = value.encode() + b"\0" * (2 - len(value) % 2)
            return struct.pack("<3sx2h", key.encode(), 2, len(raw) // 2) + raw
        if isinstance(value, int):
            return struct.pack("<3sx2hi", key.encode(), 0, 2, value)
        return struct.pack("<3sx2hd", key.encode(), 1, 4, value)

    y = spectrum(5.0).astype("<f4")
    status = {"DPF": 1, "NPT": n, "FXV": 4000.0, "LXV": 4000.0 - 4 * (n - 1), "CSF": 1.0, "MXY": float(y.max())}
    blocks = [
        (0, 0, 0, 4, 0, 0, y.tobytes()),
        (0, 0, 1, 4, 0, 0, b"".join(parameter(k, v) for k, v in {**status, "DXU": "WN"}.items()) + b"END\0" + bytes(4)),
        (0, 0, 10, 0, 0, 0, parameter("SNM", "A 5 mM") + b"END\0" + bytes(4)),
    ]
    start = 24 + 12 * len(blocks)
    directory, body = b"", b""
    for *kind, raw in blocks:
        raw += bytes(-len(raw) % 4)
        shifts = (0, 2, 4, 10, 17, 19)
        code = sum(part << shift for part, shift in zip(kind, shifts, strict=True))
        directory += struct.pack("<3i", code, len(raw) // 4, start + len(body))
        body += raw
    return b"\n\n\xfe\xfe" + struct.pack("<d3i", 1.0, 24, len(blocks), len(blocks)) + directory + body


# --- workbooks --------------------------------------------------------------------------------------------------------


def _sheet_rows(levels=LEVELS) -> list[list[float | str]]:
    values = [spectrum(c) for c in levels]
    rows = [[float(x), *(float(y[i]) for y in values)] for i, x in enumerate(WAVELENGTHS)]
    return [["wavelength", *map(float, levels)], *rows]


def xlsx(sheets: dict[str, list[list[float | str]]] | None = None) -> bytes:
    """A workbook as the standard of Office Open XML asks for at least; numbers as numbers, text in place."""
    sheets = {"Sheet1": _sheet_rows()} if sheets is None else sheets
    main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org"
    related = f"{office}/officeDocument/2006/relationships"

    def cell(value: float | str) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if value else "<c/>"
        return f"<c><v>{value!r}</v></c>"

    names = "".join(f'<sheet name="{n}" sheetId="{k}" r:id="r{k}"/>' for k, n in enumerate(sheets, start=1))
    links = "".join(
        f'<Relationship Id="r{k}" Type="{related}/worksheet" Target="worksheets/sheet{k}.xml"/>'
        for k in range(1, len(sheets) + 1)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types"><Default Extension="xml" '
        'ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r" '
        f'Type="{related}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{related}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{office}/package/2006/relationships">{links}'
        "</Relationships>",
    }
    for k, rows in enumerate(sheets.values(), start=1):
        body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{k}.xml"] = f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'
    return _zipped(parts)


def ods(sheets: dict[str, list[list[float | str]]] | None = None) -> bytes:
    """The same as OpenDocument."""
    sheets = {"Sheet1": _sheet_rows()} if sheets is None else sheets
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(
        f'xmlns:{k}="{urn}:{v}:1.0"' for k, v in [("office", "office"), ("table", "table"), ("text", "text")]
    )

    def cell(value: float | str) -> str:
        if isinstance(value, str):
            kind = f'office:value-type="string"><text:p>{value}</text:p>' if value else ">"
            return f"<table:table-cell {kind}</table:table-cell>"
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'

    body = "".join(
        f'<table:table table:name="{name}">'
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    head = "<?xml version='1.0'?>"
    return _zipped(
        {
            "mimetype": kind,
            "content.xml": f"{head}<office:document-content {spaces}><office:body><office:spreadsheet>{body}"
            "</office:spreadsheet></office:body></office:document-content>",
            "META-INF/manifest.xml": f'{head}<manifest:manifest xmlns:manifest="{urn}:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
        }
    )


def _zipped(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            kind = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=kind)
    return buffer.getvalue()


def netcdf() -> bytes:
    from geonode.data import SpectralDataset

    data = SpectralDataset([spectrum(c) for c in LEVELS], LEVELS, WAVELENGTHS, concentration_unit="ppb")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        data.save(path)
        return path.read_bytes()


MAKERS = (
    *(tidy, cary, clariostar, enspire, peds, shimadzu, nanodrop, ocean, delimited, pairs, samples_in_rows, note),
    *(file_list, jcamp, jcamp_squeezed, spc, spc_own_x, netcdf, opus, wdf, xlsx, ods),
)
