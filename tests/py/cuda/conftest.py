"""What `watching` has, for every test in here. Never beside the other tests, which are about having no driver."""

from watching import collect_ignore, collect_ignore_glob, driver, kept_for_good, pytest_configure, watched

__all__ = ["collect_ignore", "collect_ignore_glob", "driver", "kept_for_good", "pytest_configure", "watched"]
