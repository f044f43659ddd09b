"""One hypothesis profile for all tests: the same examples in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile("cgorl", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cgorl")
