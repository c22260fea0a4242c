import itertools

import numpy as np
import pytest

from suite.jobs.gemm import GemmJob
from suite.report.figures import roofline_figure
from suite.report.palette import (
    DOTTED,
    DOUBTFUL_OPACITY,
    FORMAT_COLOURS,
    INKS,
    REGIME_GLYPHS,
    REGIME_SYMBOLS,
    dotted,
    format_colour,
    symbol,
)
from suite.report.roofs import RoofSet
from tests.report.builders import result

# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
VISION = {
    "full": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], LUMINANCE, [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ rgb.clip(0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    low, high = sorted(LUMINANCE @ linear(each) + 0.05 for each in (one, other))
    return high / low


@pytest.mark.parametrize("theme", INKS)
@pytest.mark.parametrize("vision", VISION)
def test_formats_stay_apart_for_every_kind_of_colour_vision(vision, theme):
    seen = {name: lab(VISION[vision] @ linear(format_colour(name, INKS[theme]))) for name in FORMAT_COLOURS}
    distances = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in itertools.combinations(seen, 2)}
    assert min(distances.values()) > 20, distances


@pytest.mark.parametrize("theme", INKS)
def test_points_and_text_stand_out_from_the_background(theme):
    ink = INKS[theme]
    assert min(contrast(format_colour(name, ink), ink.background) for name in (*FORMAT_COLOURS, "unheard of")) >= 2.99
    assert min(contrast(ink.text, ink.background), contrast(ink.muted, ink.background)) >= 4.5


@pytest.mark.parametrize(("theme", "least"), [("light", 1.8), ("dark", 2.5)])
def test_what_is_faded_is_still_seen(theme, least):
    """On white the palest are as pale as a faded point can be told from one that is not."""
    ink = INKS[theme]
    for name in (*FORMAT_COLOURS, *DOTTED):
        parts = zip(channels(format_colour(name, ink)), channels(ink.background), strict=True)
        seen = [round(DOUBTFUL_OPACITY * colour + (1 - DOUBTFUL_OPACITY) * behind) for colour, behind in parts]
        assert contrast("#" + "".join(f"{each:02x}" for each in seen), ink.background) >= least, name


def channels(colour):
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


@pytest.mark.parametrize("theme", INKS)
def test_no_two_formats_look_alike(theme):
    looks = {(format_colour(name, INKS[theme]), dotted("circle", name)) for name in GemmJob.formats}
    assert len(looks) == len(GemmJob.formats)
    points = {
        (trace.marker.color, trace.marker.symbol)
        for trace in roofline_figure([result(format=name) for name in GemmJob.formats], RoofSet((), ()), theme).data
        if trace.meta == "points"
    }
    assert points == looks


def test_each_regime_and_kind_of_evidence_has_a_symbol_of_its_own():
    kinds = ("measured", "simulated", "imported")
    symbols = {symbol(*regime, kind) for regime in REGIME_SYMBOLS for kind in kinds}
    assert len(symbols) == len(REGIME_SYMBOLS) * len(kinds)
    assert len(set(REGIME_GLYPHS.values())) == len(REGIME_SYMBOLS)
