"""The form of traces that chrome://tracing and Perfetto read, as a check."""

from __future__ import annotations

from typing import Any

NUMBER = (int, float)


def check(trace: Any) -> list[dict[str, Any]]:
    """The Trace Event Format: what each phase needs, slices of a row nested, flows with both ends inside slices."""
    assert trace["schemaVersion"] == 1 and trace["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = trace["traceEvents"]
    rows: dict[tuple[Any, Any], list[tuple[float, float]]] = {}
    flows: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for e in events:
        assert e["ph"] in "XMisf", e
        assert isinstance(e["name"], str) and isinstance(e["ts"], NUMBER), e
        assert isinstance(e["pid"], (int, str)) and isinstance(e["tid"], (int, str)), e
        if e["ph"] == "X":
            assert isinstance(e["dur"], NUMBER) and e["dur"] >= 0 and isinstance(e["args"], dict), e
            # An annotation begins in one Python function and ends in another.
            if e.get("cat") != "python_function":
                rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] == "M":
            assert e["name"] in {
                f"{w}_{what}" for w in ("process", "thread") for what in ("name", "labels", "sort_index")
            }
            assert isinstance(e["args"], dict)
        elif e["ph"] == "i":
            assert e["s"] in "gpt"
        else:
            flows.setdefault((e["cat"], e["id"]), {})[e["ph"]] = e
            assert e["ph"] == "s" or e["bp"] == "e"
    for row in rows.values():
        open_slices: list[tuple[float, float]] = []
        for start, end in sorted(row, key=lambda s: (s[0], -s[1])):
            while open_slices and start >= open_slices[-1][1]:
                open_slices.pop()
            # Times are microseconds with three digits; nanoseconds of a day do not fit a float exactly.
            assert not open_slices or end <= open_slices[-1][1] + 0.05
            open_slices.append((start, end))
    for kind, ends in flows.items():
        assert set(ends) == {"s", "f"}, kind
        assert ends["s"]["ts"] <= ends["f"]["ts"] + 0.05, kind
        for e in ends.values():
            assert any(a - 0.05 <= e["ts"] <= b + 0.05 for a, b in rows[e["pid"], e["tid"]]), kind
    return events
