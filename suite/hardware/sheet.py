"""Reads and checks one file of ``configs/hardware``: human units there (MHz, GB/s, TFLOP/s), base units in the spec.

A figure is ``{value, source, confidence}`` with ``derived`` and ``note`` where they say something; ``null`` means that no
source was found.  ``source`` lists documents, usually as YAML anchors into the file's own ``sources``.  Cache sizes in KB and
MB are binary, as vendors count them; memory says GB or GiB in ``unit``.
"""

from typing import Any

from suite.hardware.figure import Figure
from suite.hardware.reader import Reader
from suite.hardware.runtime import DeviceName, MigProfiles, Partitions, Parts, ReportedUnit, Runtime
from suite.hardware.spec import RATES, Caches, Check, Clocks, HardwareSpec, Link, Memory, Threads

MHZ, GB_S, TFLOP_S, KIB, MIB = 1e6, 1e9, 1e12, 2**10, 2**20
CAPACITY_UNITS = {"GB": 10**9, "GiB": 2**30}
MISMATCH_LIMIT = 0.02  # past this the file has to say why


def parse(data: Any, file: str) -> HardwareSpec:
    """Turn a loaded YAML file into a spec; ``UsageError`` names the file, the key and what is wrong with it."""
    reader = Reader(data, file)
    units, clocks, formats = reader.child("units", required=True), reader.child("clocks_mhz"), reader.child("formats")
    power, peaks = reader.child("power_w"), reader.figures("peaks_tflop_s", TFLOP_S, RATES)
    spec = HardwareSpec(
        id=reader.text("id", required=True),
        name=reader.text("name", required=True),
        vendor=reader.text("vendor", required=True),
        unit_name=units.text("name", required=True),
        units=units.figure("count", is_count=True),
        unit_detail=units.text("detail"),
        memory=_memory(reader.child("memory", required=True)),
        peaks=peaks,
        ops_per_clock=reader.figures("ops_per_clock_per_unit", 1.0, RATES),
        clocks=Clocks(clocks.figure("boost", MHZ), clocks.figure("base", MHZ), clocks.figure("tensor_peak", MHZ)),
        caches=_caches(reader.child("caches")),
        threads=_threads(reader.child("threads")),
        runtime=_runtime(reader.child("runtime")),
        interconnect=_link(reader.child("interconnect")),
        host_link=_link(reader.child("host_link")),
        tdp_w=power.figure("tdp"),
        measured_power_w=power.figure("measured"),
        peak_variants=reader.figures("peak_variants_tflop_s", TFLOP_S),
        sparse_peaks=reader.figures("sparse_peaks_tflop_s", TFLOP_S, RATES),
        checks=tuple(_check(item) for item in reader.items("cross_check")),
        formats=formats.texts("list"),
        format_sources=formats.sources(required=bool(formats.data)),
        architecture=reader.text("architecture"),
        form_factor=reader.text("form_factor"),
        status=reader.text("status"),
        release=reader.figure("release"),
        notes=reader.texts("notes"),
    )
    for section in (units, clocks, formats, power):
        section.finish()
    reader.finish("sources")  # the anchors that figures refer to
    return spec


def _memory(reader: Reader) -> Memory:
    unit = reader.child("capacity", required=True).text("unit", required=True, among=tuple(CAPACITY_UNITS))
    memory = Memory(
        type=reader.text("type") or None,
        bus_bits=reader.whole("bus_bits"),
        capacity_bytes=reader.figure("capacity", CAPACITY_UNITS[unit]),
        visible_bytes=reader.figure("visible_bytes"),
        bandwidth_bytes_s=reader.figure("bandwidth_gb_s", GB_S),
    )
    reader.finish()
    return memory


def _caches(reader: Reader) -> Caches:
    caches = Caches(
        l2_bytes=reader.figure("l2_mb", MIB),
        llc_bytes=reader.figure("llc_mb", MIB),
        l1_per_unit_bytes=reader.figure("l1_per_unit_kb", KIB),
        shared_memory_per_unit_bytes=reader.figure("shared_memory_per_unit_kb", KIB),
        registers_per_unit_bytes=reader.figure("registers_per_unit_kb", KIB),
        on_chip_bytes=reader.figures("on_chip_mb", MIB),
    )
    reader.finish()
    return caches


def _threads(reader: Reader) -> Threads:
    names = ("warp_size", "max_warps_per_unit", "max_threads_per_unit")
    figures: list[Figure] = [reader.figure(name, is_count=True) for name in names]
    reader.finish()
    return Threads(*figures)


def _link(reader: Reader) -> Link:
    link = Link(
        name=reader.text("name") or None,
        links=reader.whole("links", least=0),
        generation=reader.whole("generation"),
        lanes=reader.whole("lanes"),
        bidirectional_bytes_s=reader.figure("bidirectional_gb_s", GB_S),
        per_direction_bytes_s=reader.figure("per_direction_gb_s", GB_S),
        note=reader.text("note"),
    )
    reader.finish()
    return link


def _check(reader: Reader) -> Check:
    clock_mhz = reader.number("clock_mhz")
    check = Check(
        pipe=reader.text("pipe", required=True, among=RATES),
        units=reader.number("units", required=True) or 0.0,
        ops_per_clock=reader.number("ops_per_clock", required=True) or 0.0,
        clock=reader.text("clock", required=True),
        clock_hz=None if clock_mhz is None else clock_mhz * MHZ,
        published_flop_s=(reader.number("published_tflop_s", required=True) or 0.0) * TFLOP_S,
        circular=reader.flag("circular"),
        reason=reader.text("reason"),
    )
    reader.finish()
    explained = check.reason or (check.mismatch is not None and abs(check.mismatch) <= MISMATCH_LIMIT)
    if not explained:
        off = "has no clock" if check.mismatch is None else f"is {check.mismatch:+.1%} off the published peak"
        reader.fail("reason", f"is missing: {check.units:g} x {check.ops_per_clock:g} a clock in {check.pipe} {off}")
    return check


def _runtime(reader: Reader) -> Runtime:
    pci = reader.child("pci_device_ids")
    runtime = Runtime(
        device_names=tuple(_device_name(item) for item in reader.items("device_names")),
        compute_capability=reader.text("compute_capability") or None,
        gfx_target=reader.text("gfx_target") or None,
        pci_device_ids=tuple(text.lower() for text in pci.texts("ids")),
        pci_sources=pci.sources(required=bool(pci.data)),
        reported_unit=_reported_unit(reader.child("reported_unit")),
        parts=_parts(reader.child("parts")),
        mig=_mig(reader.child("mig")),
        partitions=_partitions(reader.child("partitions")),
    )
    pci.finish("confidence")
    reader.finish()
    return runtime


def _device_name(reader: Reader) -> DeviceName:
    name = DeviceName(
        string=reader.text("string", required=True),
        api=reader.text("api"),
        sources=reader.sources(),
        confidence=reader.confidence(),
        note=reader.text("note"),
        confirm=reader.text("confirm", among=("units",)),
    )
    reader.finish()
    return name


def _reported_unit(reader: Reader) -> ReportedUnit | None:
    if not reader.data:
        return None
    name, units = reader.text("name", required=True), reader.number("units", required=True) or 1.0
    unit = ReportedUnit(name, units, reader.sources(required=False), reader.confidence(required=False), reader.text("note"))
    reader.finish()
    return unit


def _parts(reader: Reader) -> Parts | None:
    if not reader.data:
        return None
    name, devices = reader.text("name", required=True), reader.whole("devices", required=True) or 1
    parts = Parts(name, devices, reader.sources(), reader.confidence(), reader.text("note"))
    reader.finish()
    return parts


def _mig(reader: Reader) -> MigProfiles | None:
    if not reader.data:
        return None
    slices, profiles = reader.whole("memory_slices", required=True) or 1, reader.counts("profiles")
    for name, count in profiles.items():
        if count > slices:
            reader.fail(f"profiles.{name}", f"is {count}, above the {slices} memory slices")
    mig = MigProfiles(slices, profiles, reader.sources(), reader.confidence(), reader.text("note"))
    reader.finish()
    return mig


def _partitions(reader: Reader) -> Partitions | None:
    if not reader.data:
        return None
    compute, memory = reader.counts("compute"), reader.counts("memory")
    partitions = Partitions(compute, memory, reader.sources(), reader.confidence(), reader.text("note"))
    reader.finish()
    return partitions
