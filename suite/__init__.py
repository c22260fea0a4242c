"""The benchmark itself: plan, measure, judge and store.  Knows no framework, no GPU library and no web page."""

__version__ = "0.1.0"
