"""The fixtures of `driver_fixtures`, but for one."""

import pytest


@pytest.fixture(autouse=True)
def check_driver_use() -> None:
    """The programs check their own processes; here nothing uses the driver."""
