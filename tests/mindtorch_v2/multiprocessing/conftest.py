"""Processes that Python starts once and keeps are running before anything is counted."""

from __future__ import annotations

from multiprocessing import resource_tracker

import pytest


@pytest.fixture(autouse=True, scope="session")
def tracker() -> None:
    resource_tracker.ensure_running()
