"""Colours and symbols: one colour a format, one a device and one symbol a regime, the same in every figure.

A figure tells either formats or devices apart, so that both have the same eight colours, in an order of their own.

The eight colours keep at least 3:1 contrast against their page's background and stay apart (CIE76 difference over 20)
for readers without red, green or blue cones; ``tests/report/test_palette.py`` computes both.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar, get_args

Theme = Literal["light", "dark"]

FORMAT_COLOURS = {
    "fp64": "#9e956f",
    "fp32": "#a22cad",
    "tf32": "#7e2af8",
    "fp16": "#086e70",
    "bf16": "#0099fe",
    "fp8_e4m3": "#bd8900",
    "fp8_e5m2": "#a64621",
    "int8": "#ff4fb0",
}
OTHER_FORMAT_COLOUR = "#7f7f7f"
# Eight colours are as many as everybody can tell apart: a format that shares one has a dot in the middle of its points, or
# where the shape of points is free, in a figure of one regime, the shape of its family.  No two of a family share a colour.
MICROSCALED = {
    "mxfp8_e4m3": FORMAT_COLOURS["fp8_e4m3"],
    "mxfp8_e5m2": FORMAT_COLOURS["fp8_e5m2"],
    "mxfp6_e2m3": FORMAT_COLOURS["fp64"],
    "mxfp6_e3m2": FORMAT_COLOURS["fp16"],
    "mxfp4": FORMAT_COLOURS["bf16"],
    "nvfp4": FORMAT_COLOURS["tf32"],
}
WEIGHTS_ONLY = {
    "w8a16": FORMAT_COLOURS["int8"],
    "w4a16": FORMAT_COLOURS["fp32"],
    "mxfp4a16": OTHER_FORMAT_COLOUR,
}
DOTTED = {**MICROSCALED, **WEIGHTS_ONLY}
DOT_PX = 1.8  # of the line that a dot is drawn by: thinner ones are not seen
DOUBTFUL_OPACITY = 0.6  # of points in doubt: in the dark colours they keep a contrast of 2.5:1
DEVICE_COLOURS = tuple(
    FORMAT_COLOURS[name] for name in ("bf16", "fp8_e5m2", "fp16", "fp32", "fp8_e4m3", "int8", "tf32", "fp64")
)
# From the least to the most, even in lightness for every kind of colour vision (Nunez, Anderton and Renslow, "Optimizing
# colormaps with consideration for color vision deficiency", PLOS ONE 13, 2018).
SEQUENTIAL = "cividis"

REGIME_SYMBOLS = {
    ("cold", "sustained", "device"): "circle",
    ("cold", "burst", "device"): "triangle-up",
    ("warm", "sustained", "device"): "square",
    ("warm", "burst", "device"): "diamond",
    ("cold", "sustained", "call"): "cross",
    ("cold", "burst", "call"): "x",
    ("warm", "sustained", "call"): "star",
    ("warm", "burst", "call"): "triangle-down",
}
REGIME_GLYPHS = dict(zip(REGIME_SYMBOLS, "●▲■◆✚✖★▼", strict=True))  # the same shapes, for words
OTHER_REGIME_SYMBOL, OTHER_REGIME_GLYPH = "hexagon", "⬢"

EVIDENCE_STYLES = {"measured": "", "simulated": "-open", "imported": "-open-dot"}
OTHER_EVIDENCE_STYLE = "-dot"

KIND_DASHES = {"spec": "solid", "boost": "longdash", "at clock": "dashdot", "empirical": "dash"}
KIND_STROKES = {"boost": "long dashes", "at clock": "dash-dotted"}  # the same, for words
LOAD_DASHES = {"sustained": "dash", "burst": "dot"}
LOAD_STROKES = {"sustained": "dashed", "burst": "dotted"}  # the same, for words

# Of points that are of another backend or execution than the first: the field of ``Ink`` that their rim is of, and in words.
RIMS = ("", "text", "accent", "alert")
RIM_WORDS = ("no rim", "rimmed", "rimmed blue", "rimmed red")
RIM_PX = 1.6


class Ink(NamedTuple):
    """The neutral colours of one theme, one that stands out, and one for what is wrong."""

    background: str
    text: str
    muted: str
    grid: str
    accent: str
    alert: str


THEMES: tuple[Theme, ...] = get_args(Theme)
INKS: dict[Theme, Ink] = {
    "light": Ink(background="#ffffff", text="#1c2128", muted="#57606a", grid="#dde1e6", accent="#0a5fb4", alert="#a40e26"),
    "dark": Ink(background="#11161c", text="#e6e9ed", muted="#a3acb8", grid="#2b323b", accent="#7cb8ff", alert="#ff9aa5"),
}
# The same colours on a dark page, where what is faded would else sink into it.
DARK_COLOURS = {
    FORMAT_COLOURS["fp64"]: "#93935b",
    FORMAT_COLOURS["fp32"]: "#b26ebf",
    FORMAT_COLOURS["tf32"]: "#8b70ff",
    FORMAT_COLOURS["fp16"]: "#ccfff1",
    FORMAT_COLOURS["bf16"]: "#0de7ff",
    FORMAT_COLOURS["fp8_e4m3"]: "#e6da94",
    FORMAT_COLOURS["fp8_e5m2"]: "#ff731c",
    FORMAT_COLOURS["int8"]: "#f28fab",
    OTHER_FORMAT_COLOUR: "#9a9a9a",
}


Key = TypeVar("Key")


def device_colours(known: Sequence[Key], shown: Iterable[Key]) -> dict[Key, str]:
    """A colour for each of the devices ``shown``, by its place among all that are ``known``.

    Up to as many as there are colours, each has its own: of two whose places say the same, the later has the next free one.
    """
    found: dict[Key, str] = {}
    wanted = set(shown)
    for place, key in enumerate(known):
        if key in wanted:
            turns = [DEVICE_COLOURS[(place + step) % len(DEVICE_COLOURS)] for step in range(len(DEVICE_COLOURS))]
            found[key] = next((colour for colour in turns if colour not in found.values()), turns[0])
    return found


def themed(colour: str, ink: Ink) -> str:
    """A colour of a format or device as the theme of ``ink`` has it."""
    return DARK_COLOURS.get(colour, colour) if ink == INKS["dark"] else colour


def format_colour(name: str, ink: Ink = INKS["light"]) -> str:
    """The format's colour, which one that is ``DOTTED`` shares with another; what is unknown has a neutral grey."""
    return themed(FORMAT_COLOURS.get(name) or DOTTED.get(name, OTHER_FORMAT_COLOUR), ink)


def dotted(shape: str, name: str) -> str:
    """Plotly's symbol for a point of a format: with a dot where the format shares its colour."""
    return f"{shape}-dot" if name in DOTTED else shape


class Family(NamedTuple):
    """Formats that share the colours of others: the shape of their points, which is no regime's, as a glyph, and in words."""

    symbol: str
    glyph: str
    words: str
    formats: Collection[str]


FAMILIES = (
    Family("triangle-right", "▶", "microscaled (mx, nvfp4)", tuple(MICROSCALED)),
    Family("triangle-left", "◀", "weights only (a16)", tuple(WEIGHTS_ONLY)),
)


def family_of(name: str) -> Family | None:
    """The family of a format; ``None`` where its colour is its own."""
    return next((family for family in FAMILIES if name in family.formats), None)


def faint(colour: str, opacity: float) -> str:
    """A colour of six hexadecimal digits as one that shines through."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def symbol(cache: str, load: str, dispatch: str, evidence: str) -> str:
    """Plotly's symbol for a regime, hollow or dotted when the number was not measured."""
    shape = REGIME_SYMBOLS.get((cache, load, dispatch), OTHER_REGIME_SYMBOL)
    return shape + EVIDENCE_STYLES.get(evidence, OTHER_EVIDENCE_STYLE)
