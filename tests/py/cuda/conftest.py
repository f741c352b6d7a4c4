"""Makes `driver_fixtures` those of the tests here, which never share a process with those about a missing driver."""

from driver_fixtures import *  # noqa: F403 (mypy takes no second module named conftest)
